//! Texts that are shown to nobody: they leave memory with their owner, and print as nothing.

use std::fmt;

use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A client secret, a refresh token, a private key.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Secret(SecretString::from(text.into()))
    }

    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// For what is sealed before it is kept, and for nothing else.
impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.expose())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Secret::new)
    }
}

/// An access token: what a request shows.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Secret", into = "Secret")]
pub struct Token(Secret);

impl Token {
    /// The value of the header `Authorization`.
    pub fn authorization(&self) -> HeaderValue {
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.0.expose())).expect("checked when it was made");
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a token")]
pub struct NotAToken;

impl TryFrom<Secret> for Token {
    type Error = NotAToken;

    fn try_from(secret: Secret) -> Result<Self, NotAToken> {
        let is_token = !secret.expose().is_empty() && secret.expose().bytes().all(|byte| byte.is_ascii_graphic());
        if is_token { Ok(Token(secret)) } else { Err(NotAToken) }
    }
}

impl From<Token> for Secret {
    fn from(token: Token) -> Secret {
        token.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_print_as_nothing() {
        let token = Token::try_from(Secret::new("ya29.canary")).unwrap();
        let shown = format!("{token:?} {:?} {:?}", Secret::new("canary"), token.authorization());
        assert!(!shown.contains("canary"), "{shown}");
        assert_eq!(token.authorization().as_bytes(), b"Bearer ya29.canary");
        for wrong in ["", "two words", "line\n", "ä"] {
            assert!(Token::try_from(Secret::new(wrong)).is_err(), "{wrong}");
        }
    }
}
