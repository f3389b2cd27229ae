//! The OAuth client an account gives its consent to: an id and a secret, by hand or from Google's file.

use serde::{Deserialize, Serialize};

use super::{BadFile, Secret};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Client {
    #[serde(rename = "client_id")]
    pub id: String,
    #[serde(rename = "client_secret")]
    pub secret: Secret,
}

/// As Google's console hands it out, for desktop or for web clients.
#[derive(Deserialize)]
struct ClientFile {
    installed: Option<Client>,
    web: Option<Client>,
}

impl Client {
    pub fn from_file(text: &str) -> Result<Client, BadFile> {
        let file: Option<ClientFile> = serde_json::from_str(text).ok();
        file.and_then(|file| file.installed.or(file.web))
            .ok_or(BadFile("not a client_secret.json as Google's console gives it for a desktop app"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_read_from_google_s_file() {
        for kind in ["installed", "web"] {
            let text = format!(r#"{{"{kind}":{{"client_id":"id","client_secret":"s","auth_uri":"x"}}}}"#);
            assert_eq!(Client::from_file(&text), Ok(Client { id: "id".into(), secret: Secret::new("s") }));
        }
        for wrong in ["", "{}", r#"{"installed":{"client_id":"id"}}"#, r#"{"type":"service_account"}"#] {
            assert!(Client::from_file(wrong).is_err(), "{wrong}");
        }
    }
}
