//! The claims of a service account. Signatures are believed.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;

use super::Denied;

const LIFETIME_MAX_S: i64 = 3_600;
/// How far clocks may differ.
const SKEW_S: i64 = 300;

#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    iss: String,
    pub(super) sub: Option<String>,
    pub(super) scope: String,
    aud: String,
    iat: i64,
    exp: i64,
}

impl Claims {
    pub(super) fn parse(assertion: &str) -> Result<Self, Denied> {
        let malformed = |why: String| Denied::new("invalid_grant", format!("Invalid JWT: {why}"));
        let mut parts = assertion.split('.');
        let (Some(_), Some(claims), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return Err(malformed("not three parts".to_owned()));
        };
        let bytes = URL_SAFE_NO_PAD.decode(claims).map_err(|error| malformed(error.to_string()))?;
        serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))
    }

    /// `now` in seconds since 1970.
    pub(super) fn check(&self, now: i64) -> Result<(), Denied> {
        if !self.iss.contains('@') {
            return Err(Denied::new("invalid_grant", "Invalid grant: account not found"));
        }
        if !self.aud.ends_with("/token") {
            return Err(Denied::new(
                "invalid_grant",
                "Invalid JWT: Failed audience check. The right audience is the token endpoint",
            ));
        }
        let timely = self.exp - self.iat <= LIFETIME_MAX_S && self.exp > now && self.iat <= now + SKEW_S;
        if !timely {
            let why = "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. \
                Check your iat and exp values in the JWT claim.";
            return Err(Denied::new("invalid_grant", why));
        }
        Ok(())
    }
}
