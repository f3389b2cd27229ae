//! Names and keys: which source, which stream, which remote object.

use std::{fmt, str::FromStr, sync::Arc};

use crate::Span;

/// One remote account, as the configuration calls it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceName(Arc<str>);

/// A sequence inside a source that makes progress on its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName(Arc<str>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a name: use 1 to 64 of a-z, 0-9, '_' and '-'")]
pub struct BadName(String);

fn parse_name(text: &str) -> Result<Arc<str>, BadName> {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if (1..=64).contains(&text.len()) && text.chars().all(legal) { Ok(text.into()) } else { Err(BadName(text.into())) }
}

macro_rules! name {
    ($type:ident) => {
        impl $type {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = BadName;

            fn from_str(text: &str) -> Result<Self, BadName> {
                parse_name(text).map($type)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(SourceName);
name!(StreamName);

/// A stream of a source: what a frontier belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    pub source: SourceName,
    pub stream: StreamName,
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.source, self.stream)
    }
}

/// One remote object. Numbers stay numbers, so that tens of thousands a second cost no allocation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    Number(i64),
    Text(Arc<str>),
}

impl Key {
    pub fn number(&self) -> Option<i64> {
        match self {
            Key::Number(number) => Some(*number),
            Key::Text(_) => None,
        }
    }
}

impl From<&str> for Key {
    /// Only the canonical spelling of a number is a number: `007` names another object than `7`.
    fn from(text: &str) -> Self {
        match text.parse::<i64>() {
            Ok(number) if number.to_string() == text => Key::Number(number),
            _ => Key::Text(text.into()),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Number(number) => number.fmt(f),
            Key::Text(text) => f.write_str(text),
        }
    }
}

/// Keys of a segment: named one by one, or every position of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySet {
    Range(Span),
    List(Vec<Key>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        assert!("hn".parse::<SourceName>().is_ok());
        for bad in ["", "Mail", "a b", "ä", &"x".repeat(65)] {
            assert!(bad.parse::<SourceName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_key_reads_back_as_itself() {
        for text in ["1", "-3", "007", "18c5f", "9223372036854775808", ""] {
            assert_eq!(Key::from(text).to_string(), text);
        }
    }
}
