//! The claims of a service account. Signatures are believed, unless the plan names the key to check them with.

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde::Deserialize;
use serde_json::Value;

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
    /// `key` is PEM.
    pub(super) fn parse(assertion: &str, key: Option<&str>) -> Result<Self, Denied> {
        let malformed = |why: String| Denied::new("invalid_grant", format!("Invalid JWT: {why}"));
        let parts: Vec<&str> = assertion.split('.').collect();
        let [head, claims, signature] = parts[..] else { return Err(malformed("not three parts".to_owned())) };
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|error| malformed(error.to_string()));
        let found = serde_json::from_slice(&decode(claims)?).map_err(|error| malformed(error.to_string()))?;
        if let Some(key) = key {
            let signed = &assertion[..head.len() + 1 + claims.len()];
            let verified = is_signed(key, &decode(head)?, signed, &decode(signature)?);
            verified.then_some(()).ok_or_else(|| Denied::new("invalid_grant", "Invalid JWT Signature."))?;
        }
        Ok(found)
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

fn is_signed(pem: &str, head: &[u8], signed: &str, signature: &[u8]) -> bool {
    let algorithm = serde_json::from_slice(head).ok().and_then(|head: Value| head["alg"].as_str().map(str::to_owned));
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public_key(pem).unwrap_or_default());
    algorithm.as_deref() == Some("RS256") && key.verify(signed.as_bytes(), signature).is_ok()
}

/// The bytes between the lines of a PEM file.
pub(in crate::gmail) fn public_key(pem: &str) -> Option<Vec<u8>> {
    let inside = pem.trim().strip_prefix("-----BEGIN PUBLIC KEY-----")?.strip_suffix("-----END PUBLIC KEY-----")?;
    STANDARD.decode(inside.split_whitespace().collect::<String>()).ok()
}
