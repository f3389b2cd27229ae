//! A service account that acts for the members of its domain: its key file, and the signed claims it shows.

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use highwater_core::Timestamp;
use rustls::pki_types::{PrivateKeyDer, pem::PemObject};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{BadFile, READONLY, Secret};

/// The longest that Google takes.
const LIFETIME_S: i64 = 3_600;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceAccount {
    client_email: String,
    private_key: Secret,
    private_key_id: Option<String>,
}

impl ServiceAccount {
    /// As Google's console hands it out; the key is tried, so that a bad one is found now.
    pub fn from_file(text: &str) -> Result<ServiceAccount, BadFile> {
        let account: ServiceAccount =
            serde_json::from_str(text).map_err(|_| BadFile("not the key file of a service account"))?;
        account.signer()?;
        Ok(account)
    }

    /// A signed claim to act for `subject`, for the token endpoint at `audience`.
    pub(super) fn assertion(&self, subject: &str, audience: &str, now: Timestamp) -> Result<Secret, BadFile> {
        let issued = now.as_millis().div_euclid(1000);
        let header = json!({ "alg": "RS256", "typ": "JWT", "kid": self.private_key_id });
        let claims = json!({
            "iss": self.client_email,
            "sub": subject,
            "scope": READONLY,
            "aud": audience,
            "iat": issued,
            "exp": issued + LIFETIME_S,
        });
        let part = |json: &serde_json::Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = URL_SAFE_NO_PAD.encode(self.sign(signed.as_bytes())?);
        Ok(Secret::new(format!("{signed}.{signature}")))
    }

    fn sign(&self, text: &[u8]) -> Result<Vec<u8>, BadFile> {
        let signer = self.signer()?;
        let mut signature = vec![0; signer.public_modulus_len()];
        signer
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut signature)
            .map_err(|_| BadFile("the key of the service account cannot sign"))?;
        Ok(signature)
    }

    fn signer(&self) -> Result<RsaKeyPair, BadFile> {
        let bad = BadFile("the private key of the service account is not an RSA key in PEM form");
        match PrivateKeyDer::from_pem_slice(self.private_key.expose().as_bytes()) {
            Ok(PrivateKeyDer::Pkcs8(key)) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).map_err(|_| bad),
            Ok(PrivateKeyDer::Pkcs1(key)) => RsaKeyPair::from_der(key.secret_pkcs1_der()).map_err(|_| bad),
            _ => Err(bad),
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::{
        encoding::{AsDer, Pkcs8V1Der},
        rsa::KeySize,
        signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey},
    };
    use base64::engine::general_purpose::STANDARD;
    use serde_json::Value;

    use super::*;

    fn account() -> (ServiceAccount, RsaKeyPair) {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
        let pem =
            format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der.as_ref()));
        let file = json!({
            "type": "service_account", "client_email": "robot@example.iam", "private_key": pem, "private_key_id": "k1",
        });
        (ServiceAccount::from_file(&file.to_string()).unwrap(), pair)
    }

    #[test]
    fn claims_are_signed_with_the_key_of_the_file() {
        let (account, pair) = account();
        let assertion = account.assertion("ann@example.com", "https://t/token", Timestamp::from_millis(7_999)).unwrap();
        let (signed, signature) = assertion.expose().rsplit_once('.').unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
        public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let part = |text: &str| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        assert_eq!(part(header), json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" }));
        let expected = json!({
            "iss": "robot@example.iam", "sub": "ann@example.com", "scope": READONLY, "aud": "https://t/token",
            "iat": 7, "exp": 3607,
        });
        assert_eq!(part(claims), expected);
    }

    #[test]
    fn a_file_without_a_sound_key_is_refused_at_once() {
        let pem = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        for text in [
            "{}".to_owned(),
            r#"{"installed":{}}"#.to_owned(),
            json!({ "client_email": "robot@example.iam", "private_key": "canary" }).to_string(),
            json!({ "client_email": "robot@example.iam", "private_key": pem }).to_string(),
        ] {
            let error = ServiceAccount::from_file(&text).unwrap_err();
            assert!(!error.to_string().contains("canary"), "{error}");
        }
    }
}
