//! Marks by which a body is recognised: as long as Firebase's, 28 characters of base64 over a hash of 20 bytes.

use std::fmt;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::{Engine as _, engine::general_purpose::STANDARD};

const LEN: usize = 28;

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Etag([u8; LEN]);

impl Etag {
    pub fn of(body: &[u8]) -> Self {
        let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, body);
        let mut text = [0; LEN];
        let written = STANDARD.encode_slice(hash.as_ref(), &mut text);
        assert_eq!(written, Ok(LEN), "20 bytes are 28 characters");
        Etag(text)
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("base64 is text")
    }
}

impl fmt::Debug for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a client says about tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfNoneMatch<'a> {
    #[default]
    Unasked,
    /// `X-Firebase-ETag: true`: the answer shall have a tag.
    Wished,
    /// The tag of a body the client has. Clients that show one are given one, too.
    Shown(&'a str),
}

impl IfNoneMatch<'_> {
    pub const WISH: &'static str = "x-firebase-etag";

    pub(crate) fn wished(self, value: &str) -> Self {
        if self == IfNoneMatch::Unasked && value.eq_ignore_ascii_case("true") { IfNoneMatch::Wished } else { self }
    }

    pub(crate) fn matches(self, etag: &Etag) -> bool {
        // Firebase gives tags without quotes; clients that follow the standard add them.
        matches!(self, IfNoneMatch::Shown(tag) if tag.trim_matches('"') == etag.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_the_hash_of_the_body_in_base64() {
        // SHA-1 of "abc" is in the standard.
        assert_eq!(Etag::of(b"abc").as_str(), "qZk+NkcGgWq6PiVxeFDCbJzQ2J0=");
    }

    #[test]
    fn a_tag_matches_with_quotes_and_without() {
        let etag = Etag::of(b"abc");
        assert!(IfNoneMatch::Shown("qZk+NkcGgWq6PiVxeFDCbJzQ2J0=").matches(&etag));
        assert!(IfNoneMatch::Shown("\"qZk+NkcGgWq6PiVxeFDCbJzQ2J0=\"").matches(&etag));
        assert!(!IfNoneMatch::Shown("").matches(&etag) && !IfNoneMatch::Wished.matches(&etag));
    }
}
