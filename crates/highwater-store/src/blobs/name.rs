//! The name of a blob: the hash of its content, and with it the path it is stored at.

use std::{fmt, str::FromStr};

use aws_lc_rs::digest::{SHA256, digest};
use highwater_core::hex;

use crate::{ErrorKind, StoreError};

const ALGORITHM: &str = "sha256";
const HEX_DIGITS: usize = 64;
/// A folder for each of the first two digits: 256 folders hold millions of files.
const FAN_DIGITS: usize = 2;

/// Written `sha256/ab/cdef…`, which is the path below the folder or prefix of the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobName {
    /// In lower case.
    hash: String,
}

impl BlobName {
    pub fn of(content: &[u8]) -> Self {
        BlobName { hash: hex(digest(&SHA256, content).as_ref()) }
    }

    /// SHA-256 of the content, in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.hash
    }

    pub(super) fn algorithm(&self) -> &'static str {
        ALGORITHM
    }

    pub(super) fn fan(&self) -> &str {
        &self.hash[..FAN_DIGITS]
    }

    pub(super) fn rest(&self) -> &str {
        &self.hash[FAN_DIGITS..]
    }
}

impl fmt::Display for BlobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ALGORITHM}/{}/{}", self.fan(), self.rest())
    }
}

impl FromStr for BlobName {
    type Err = StoreError;

    /// Only what was written by `Display`: no other path can be reached through a name.
    fn from_str(text: &str) -> Result<Self, StoreError> {
        let parts: Vec<_> = text.split('/').collect();
        let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match parts.as_slice() {
            [ALGORITHM, fan, rest]
                if fan.len() == FAN_DIGITS && fan.len() + rest.len() == HEX_DIGITS && is_hex(fan) && is_hex(rest) =>
            {
                Ok(BlobName { hash: format!("{fan}{rest}") })
            }
            _ => Err(StoreError::new(ErrorKind::Corrupt, "what should name a blob does not")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_path_of_the_hash() {
        let name = BlobName::of(b"");
        let text = "sha256/e3/b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(name.to_string(), text);
        assert_eq!(name.sha256(), text.replace('/', "").strip_prefix("sha256").unwrap());
        assert_eq!(text.parse::<BlobName>().unwrap(), name);
    }

    #[test]
    fn no_other_path_is_a_name() {
        let name = BlobName::of(b"").to_string();
        for other in [
            String::new(),
            name.to_uppercase(),
            name.replace("sha256", "sha512"),
            name.replacen("/e3/", "/../", 1),
            format!("{name}0"),
            format!("/{name}"),
            format!("{name}/"),
            format!("{name}#1"),
            name[..name.len() - 1].to_owned(),
            name.replace("/e3/b0", "/e3b/0"),
        ] {
            assert_eq!(other.parse::<BlobName>().unwrap_err().kind, ErrorKind::Corrupt, "{other}");
        }
    }
}
