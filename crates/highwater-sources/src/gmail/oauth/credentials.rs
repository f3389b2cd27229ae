//! What is kept of an account between runs, sealed: what access tokens are got with, and the newest of them.

use std::time::Duration;

use highwater_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::{BadFile, Client, Secret, ServiceAccount, Token};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Credentials {
    pub grant: Grant,
    /// So that processes share it.
    pub access: Option<Access>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Grant {
    /// Good only together with the client it was given to.
    RefreshToken {
        refresh_token: Secret,
        client: Client,
    },
    ServiceAccount(ServiceAccount),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Access {
    pub token: Token,
    #[serde(with = "millis")]
    pub obtained_at: Timestamp,
    #[serde(with = "millis")]
    pub expires_at: Timestamp,
    pub scopes: Vec<String>,
}

impl Access {
    /// Three quarters of its life are left to use; the last one is for getting the next.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let life = self.expires_at.since(self.obtained_at);
        now < self.obtained_at + life * 3 / 4 && now >= self.obtained_at.minus(CLOCKS_DIFFER)
    }

    pub fn is_alive(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }
}

/// A token from further in the future was dated by a clock that was wrong.
const CLOCKS_DIFFER: Duration = Duration::from_secs(300);

impl Credentials {
    /// To be sealed; never to be shown.
    pub fn to_json(&self) -> Secret {
        Secret::new(serde_json::to_string(self).expect("texts and numbers make JSON"))
    }

    pub fn from_json(json: &[u8]) -> Result<Credentials, BadFile> {
        serde_json::from_slice(json).map_err(|_| BadFile("the stored credentials are not of this version"))
    }
}

mod millis {
    use highwater_core::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        at.as_millis().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        i64::deserialize(deserializer).map(Timestamp::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + seconds * 1000)
    }

    fn access() -> Access {
        let token = Token::try_from(Secret::new("ya29.canary")).unwrap();
        Access { token, obtained_at: at(0), expires_at: at(3600), scopes: vec!["a".into()] }
    }

    #[test]
    fn a_token_is_fresh_for_three_quarters_of_its_life() {
        let states = |seconds| (access().is_fresh(at(seconds)), access().is_alive(at(seconds)));
        assert_eq!(states(2699), (true, true));
        assert_eq!(states(2700), (false, true));
        assert_eq!(states(3600), (false, false));
        assert_eq!(states(-301), (false, true), "the clock was set back");
    }

    #[test]
    fn credentials_are_kept_whole_and_printed_empty() {
        let client = Client { id: "id".into(), secret: Secret::new("canary") };
        let grant = Grant::RefreshToken { refresh_token: Secret::new("1//canary"), client };
        let credentials = Credentials { grant, access: Some(access()) };
        let json = credentials.to_json();
        assert_eq!(Credentials::from_json(json.expose().as_bytes()).unwrap(), credentials);
        assert!(json.expose().contains("1//canary"));
        assert!(!format!("{credentials:?} {json:?}").contains("canary"));
        assert!(
            Credentials::from_json(b"{\"grant\":\"canary\"}").is_err_and(|error| !error.to_string().contains("canary"))
        );
    }
}
