//! Users: which names can be asked for, how, and what the answer says.

use std::borrow::Cow;

use highwater_core::{Failure, FailureKind, Key, Record, Value};

use super::{
    decode,
    schema::{self, USERS},
};
use crate::{Fetched, Request, escape::escaped};

/// Four times the 15 that the site allows, and some.
const NAME_CHARS_MAX: usize = 64;

pub(super) fn request(key: &Key) -> Request {
    Request::get(format!("/v0/user/{}.json", escaped(&name(key))))
}

pub(super) fn read(key: &Key, body: &[u8]) -> Result<Fetched, Failure> {
    let Some(body) = decode::decode(body, &USERS)? else { return Ok(Fetched::Absent) };
    let message = match &body.values[schema::ID] {
        Value::Text(id) if id.as_str() == name(key) => {
            return Ok(Fetched::Found(Record::new(key.clone(), &USERS, body)));
        }
        Value::Text(_) => "the body is about another user",
        _ => "the body has no id",
    };
    Err(Failure::new(FailureKind::WrongIdentity, message))
}

/// Whether a user can be called so: what is no part of a path, or another one, would ask for something else.
pub(super) fn is_name(name: &str) -> bool {
    let is_sound = |c: char| c != '/' && !c.is_control();
    (1..=NAME_CHARS_MAX).contains(&name.chars().count()) && name.chars().all(is_sound) && name != "." && name != ".."
}

/// A name of digits is a number among keys.
pub(super) fn name(key: &Key) -> Cow<'_, str> {
    match key {
        Key::Text(name) => Cow::Borrowed(name),
        Key::Number(number) => Cow::Owned(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_single_part_of_the_path() {
        for (name, escaped) in [
            ("pg", "pg"),
            ("a-b_C9", "a-b_C9"),
            ("123", "123"),
            ("...", "..."),
            ("a b?c#d%2F&é", "a%20b%3Fc%23d%252F%26%C3%A9"),
            (&"é".repeat(64), &"%C3%A9".repeat(64)),
        ] {
            assert!(is_name(name), "{name}");
            assert_eq!(request(&Key::from(name)).path, format!("/v0/user/{escaped}.json"), "{name}");
        }
        for bad in ["", ".", "..", "a/b", "/", "a\nb", "\0", "\u{85}", &"x".repeat(65)] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }
}
