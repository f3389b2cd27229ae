//! Secrets at rest: AES-256-GCM, bound to the place they are kept in, with the name of the key beside them. Knows nothing
//! of tables; whoever stores a sealed text says where that is.

mod key;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
pub use key::{KEY_FILE, KeyId, VaultKey};
use zeroize::Zeroizing;

/// The first part of every sealed text: another format would have another word.
const VERSION: &str = "v1";

/// Where a secret is kept. A sealed text that is moved to another row, column or account does not open there.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub row: &'a str,
    pub column: &'a str,
    pub account: &'a str,
}

/// Why a secret cannot be had. No text names the secret or the account.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error("there is no key at {0}, and HIGHWATER_KEY is not set")]
    NoKey(String),
    #[error("{0} is not a key: expected 64 hexadecimal digits")]
    NotAKey(String),
    #[error("the key at {path} cannot be used")]
    Unusable {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("sealed with key {sealed_with}, and the key at hand is {ours}")]
    WrongKey { sealed_with: KeyId, ours: KeyId },
    #[error("sealed with this key, but altered since, or moved here from another row")]
    Altered,
    #[error("not a sealed text that this version knows")]
    Unknown,
}

/// Seals with one key; opens also what an earlier or a coming one sealed, while keys are being changed.
pub struct Vault {
    key: VaultKey,
    other: Option<VaultKey>,
}

impl Vault {
    pub fn new(key: VaultKey) -> Self {
        Vault { key, other: None }
    }

    pub fn opening_also(self, other: Option<VaultKey>) -> Self {
        Vault { other, ..self }
    }

    pub fn key_id(&self) -> KeyId {
        self.key.id()
    }

    /// `v1:<key id>:<nonce, text and tag in base64>`.
    pub fn seal(&self, place: Place<'_>, plain: &[u8]) -> String {
        let id = self.key.id();
        let mut sealed = Zeroizing::new(plain.to_vec());
        let nonce = cipher(&self.key)
            .seal_in_place_append_tag(bound_to(place, id), &mut *sealed)
            .expect("a text of a few kilobytes can be sealed");
        let whole = [AsRef::<[u8; NONCE_LEN]>::as_ref(&nonce).as_slice(), sealed.as_slice()].concat();
        format!("{VERSION}:{id}:{}", STANDARD_NO_PAD.encode(whole))
    }

    pub fn open(&self, place: Place<'_>, sealed: &str) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let (id, whole) = parse(sealed).ok_or(VaultError::Unknown)?;
        let key = self.key_named(id).ok_or(VaultError::WrongKey { sealed_with: id, ours: self.key.id() })?;
        let (nonce, text) = whole.split_at_checked(NONCE_LEN).ok_or(VaultError::Unknown)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| VaultError::Unknown)?;
        let mut text = Zeroizing::new(text.to_vec());
        let opened = cipher(key).open_in_place(nonce, bound_to(place, id), &mut text);
        let length = opened.map_err(|_| VaultError::Altered)?.len();
        text.truncate(length);
        Ok(text)
    }

    /// The same secret, sealed with the key at hand.
    pub fn reseal(&self, place: Place<'_>, sealed: &str) -> Result<String, VaultError> {
        Ok(self.seal(place, &self.open(place, sealed)?))
    }

    fn key_named(&self, id: KeyId) -> Option<&VaultKey> {
        [Some(&self.key), self.other.as_ref()].into_iter().flatten().find(|key| key.id() == id)
    }
}

fn cipher(key: &VaultKey) -> RandomizedNonceKey {
    RandomizedNonceKey::new(&AES_256_GCM, key.bytes()).expect("a key has 32 bytes")
}

/// Each part with its length before it, so that no two places read the same.
fn bound_to(place: Place<'_>, id: KeyId) -> Aad<Vec<u8>> {
    let id = id.to_string();
    let parts = [VERSION, &id, place.row, place.column, place.account];
    let part = |part: &str| [&(part.len() as u64).to_be_bytes(), part.as_bytes()].concat();
    Aad::from(parts.into_iter().flat_map(part).collect())
}

fn parse(sealed: &str) -> Option<(KeyId, Vec<u8>)> {
    let rest = sealed.strip_prefix(VERSION)?.strip_prefix(':')?;
    let (id, text) = rest.split_once(':')?;
    Some((id.parse().ok()?, STANDARD_NO_PAD.decode(text).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Place<'static> = Place { row: "7", column: "credentials", account: "ann@example.com" };

    fn key(digit: char) -> VaultKey {
        VaultKey::from_hex(&digit.to_string().repeat(64)).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_with_its_key_in_its_place_only() {
        let vault = Vault::new(key('a'));
        let sealed = vault.seal(HERE, b"secret");
        assert_eq!(vault.open(HERE, &sealed).unwrap().as_slice(), b"secret");
        assert_ne!(sealed, vault.seal(HERE, b"secret"), "each sealing has a nonce of its own");
        assert!(sealed.starts_with(&format!("v1:{}:", key('a').id())), "{sealed}");
        let elsewhere = [
            Place { row: "8", ..HERE },
            Place { column: "token", ..HERE },
            Place { account: "bob@example.com", ..HERE },
            Place { row: "7credentials", column: "", ..HERE },
        ];
        for place in elsewhere {
            assert!(matches!(vault.open(place, &sealed), Err(VaultError::Altered)));
        }
    }

    #[test]
    fn a_wrong_key_is_told_from_an_altered_text() {
        let sealed = Vault::new(key('a')).seal(HERE, b"secret");
        let wrong = Vault::new(key('b')).open(HERE, &sealed);
        let ids = (key('a').id(), key('b').id());
        assert!(matches!(wrong, Err(VaultError::WrongKey { sealed_with, ours }) if (sealed_with, ours) == ids));
        let vault = Vault::new(key('a'));
        let last = if sealed.ends_with('A') { "B" } else { "A" };
        let altered = format!("{}{last}", &sealed[..sealed.len() - 2]);
        assert!(vault.open(HERE, &altered).is_err());
        let middle = sealed.len() - 10;
        let other = if &sealed[middle..=middle] == "A" { "B" } else { "A" };
        let altered = format!("{}{other}{}", &sealed[..middle], &sealed[middle + 1..]);
        assert!(matches!(vault.open(HERE, &altered), Err(VaultError::Altered)));
        for nonsense in ["", "v1", "v1:", "v1:zzzzzzzz:AAAA", "v2:00000000:AAAA", "v1:00000000:%"] {
            assert!(matches!(vault.open(HERE, nonsense), Err(VaultError::Unknown)), "{nonsense}");
        }
        let short = format!("v1:{}:AAAA", key('a').id());
        assert!(matches!(vault.open(HERE, &short), Err(VaultError::Unknown)));
    }

    #[test]
    fn while_keys_are_changed_both_open_and_the_new_one_seals() {
        let old = Vault::new(key('a')).seal(HERE, b"secret");
        let vault = Vault::new(key('b')).opening_also(Some(key('a')));
        assert_eq!(vault.open(HERE, &old).unwrap().as_slice(), b"secret");
        let new = vault.reseal(HERE, &old).unwrap();
        assert!(Vault::new(key('a')).open(HERE, &new).is_err());
        assert!(Vault::new(key('b')).open(HERE, &new).is_ok());
    }
}
