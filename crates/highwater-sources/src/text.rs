//! JSON strings that a database may not be able to hold: NUL and lone surrogates are shown as U+FFFD, and the exact
//! bytes are kept beside.

use std::{borrow::Cow, fmt};

use memchr::memchr;
use serde::{Deserializer, de::Visitor};

const SHOWN: char = '\u{fffd}';

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Text<'a> {
    Plain(Cow<'a, str>),
    /// UTF-8, with lone surrogates encoded as if they were characters (WTF-8).
    Mended {
        shown: String,
        exact: Vec<u8>,
    },
}

impl Text<'_> {
    pub(crate) fn shown(&self) -> &str {
        match self {
            Text::Plain(text) => text,
            Text::Mended { shown, .. } => shown,
        }
    }
}

/// The value of a raw JSON string; none if it is something else.
pub(crate) fn read(raw: &str) -> Option<Text<'_>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Text::Plain(Cow::Borrowed(inner)));
    }
    let bytes = serde_json::Deserializer::from_str(raw).deserialize_bytes(Exact).ok()?;
    Some(match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Text::Plain(Cow::Owned(text)),
        Ok(text) => mended(text.into_bytes()),
        Err(error) => mended(error.into_bytes()),
    })
}

fn mended(exact: Vec<u8>) -> Text<'static> {
    let mut shown = String::with_capacity(exact.len());
    for chunk in exact.utf8_chunks() {
        shown.extend(chunk.valid().chars().map(|c| if c == '\0' { SHOWN } else { c }));
        // A surrogate is three bytes, each of which is a chunk; only the first can begin a character.
        if chunk.invalid().first().is_some_and(|byte| *byte >= 0xc0) {
            shown.push(SHOWN);
        }
    }
    Text::Mended { shown, exact }
}

/// Asked for bytes, the parser does not insist on paired surrogates.
struct Exact;

impl Visitor<'_> for Exact {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(raw: &str) -> String {
        read(raw).unwrap().shown().to_owned()
    }

    #[test]
    fn only_what_cannot_be_held_is_replaced() {
        assert_eq!(read(r#""a\n\u00e9\ud83d\ude00""#), Some(Text::Plain("a\né😀".into())));
        assert_eq!(shown(r#""a\u0000b""#), "a\u{fffd}b");
        assert_eq!(shown(r#""\ud83dx\ude00""#), "\u{fffd}x\u{fffd}");
        assert_eq!(shown(r#""\ude00\ud83d""#), "\u{fffd}\u{fffd}");
        assert_eq!(shown(r#""é\u0000\ud800é""#), "é\u{fffd}\u{fffd}é");
    }

    #[test]
    fn the_exact_bytes_are_kept() {
        let Some(Text::Mended { exact, .. }) = read(r#""é\u0000\udc00""#) else { panic!("not mended") };
        assert_eq!(exact, [0xc3, 0xa9, 0, 0xed, 0xb0, 0x80]);
    }

    #[test]
    fn only_strings_are_texts() {
        for other in ["1", "null", "[\"a\"]", "{}", "true"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
