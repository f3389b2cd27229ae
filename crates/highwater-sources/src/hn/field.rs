//! Reads a raw JSON value as what a column wants, if that loses nothing. Firebase and old items give numbers as
//! strings, flags as lists and sparse lists as objects.

use serde_json::value::RawValue;

use super::members;
use crate::text::{self, Text};

/// A decimal of so many characters is exact as a double.
const EXACT_DECIMAL: usize = 15;

pub(super) fn int(raw: &str) -> Option<i64> {
    if let Ok(number) = raw.parse() {
        return Some(number);
    }
    match raw.as_bytes().first()? {
        b'"' => int_in_text(raw),
        b'-' | b'0'..=b'9' => integral(raw),
        _ => None,
    }
}

/// Only the canonical spelling: `007` would not come back as it was.
fn int_in_text(raw: &str) -> Option<i64> {
    let Text::Plain(text) = text::read(raw)? else { return None };
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

fn integral(raw: &str) -> Option<i64> {
    if let Some((whole, fraction)) = raw.split_once('.')
        && fraction.bytes().all(|digit| digit == b'0')
    {
        return whole.parse().ok();
    }
    let value: f64 = raw.parse().ok().filter(|_| raw.len() <= EXACT_DECIMAL)?;
    let is_exact = value.fract() == 0.0 && value.abs() < 2_f64.powi(53);
    #[expect(clippy::cast_possible_truncation, reason = "an integer below 2^53")]
    is_exact.then_some(value as i64)
}

pub(super) fn bool(raw: &str) -> Option<bool> {
    match raw {
        "true" | "\"true\"" => Some(true),
        "false" | "\"false\"" => Some(false),
        _ => match (int(raw), elements(raw)) {
            (Some(0), _) => Some(false),
            (Some(1), _) => Some(true),
            (_, Some(list)) => bool_in_list(&list),
            _ => None,
        },
    }
}

fn bool_in_list(list: &[&str]) -> Option<bool> {
    match list {
        [] => Some(false),
        ["true"] => Some(true),
        ["false"] => Some(false),
        _ => None,
    }
}

pub(super) fn ints(raw: &str) -> Option<Vec<i64>> {
    if let Some(numbers) = whole(raw) {
        return Some(numbers);
    }
    match elements(raw) {
        Some(list) => list.into_iter().filter(|element| *element != "null").map(int).collect(),
        None => int(raw).map(|number| vec![number]),
    }
}

/// A list of whole numbers without spaces, as nearly all are.
fn whole(raw: &str) -> Option<Vec<i64>> {
    raw.strip_prefix('[')?.strip_suffix(']')?.split(',').map(|number| number.parse().ok()).collect()
}

/// The elements of a list, also of one that is written as an object by index.
fn elements(raw: &str) -> Option<Vec<&str>> {
    match raw.as_bytes().first()? {
        b'[' => {
            let list: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
            Some(list.into_iter().map(RawValue::get).collect())
        }
        b'{' => indexed(raw),
        _ => None,
    }
}

fn indexed(raw: &str) -> Option<Vec<&str>> {
    let index = |name| int_in_text(name).filter(|index| *index >= 0);
    let members = members::all(raw).ok()?;
    let mut list: Vec<(i64, &str)> =
        members.into_iter().map(|(name, value)| Some((index(name)?, value))).collect::<Option<_>>()?;
    list.sort_by_key(|(index, _)| *index);
    let unique = list.windows(2).all(|pair| pair[0].0 != pair[1].0);
    unique.then(|| list.into_iter().map(|(_, value)| value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_every_spelling_that_loses_nothing() {
        for (raw, expected) in [
            ("5", Some(5)),
            ("-1", Some(-1)),
            ("\"5\"", Some(5)),
            ("5.0", Some(5)),
            ("1.5e1", Some(15)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9007199254740993.00", Some(9_007_199_254_740_993)),
            ("9223372036854775808", None),
            ("5.5", None),
            ("1.0000000000000000001", None),
            ("1e400", None),
            ("\"007\"", None),
            ("\" 5\"", None),
            ("\"\"", None),
            ("true", None),
            ("[5]", None),
            ("{}", None),
        ] {
            assert_eq!(int(raw), expected, "{raw}");
        }
    }

    #[test]
    fn flags_are_read_from_lists_and_numbers() {
        for (raw, expected) in [
            ("true", Some(true)),
            ("false", Some(false)),
            ("[true]", Some(true)),
            ("[]", Some(false)),
            ("{\"0\":true}", Some(true)),
            ("\"true\"", Some(true)),
            ("1", Some(true)),
            ("0", Some(false)),
            ("2", None),
            ("\"\"", None),
            ("[true,false]", None),
            ("[[true]]", None),
        ] {
            assert_eq!(bool(raw), expected, "{raw}");
        }
    }

    #[test]
    fn lists_are_read_from_sparse_objects_and_scalars() {
        for (raw, expected) in [
            ("[1, 2]", Some(vec![1, 2])),
            ("[]", Some(vec![])),
            ("{}", Some(vec![])),
            ("[1,null,\"3\",4.0]", Some(vec![1, 3, 4])),
            ("{\"10\":3,\"2\":2,\"0\":1}", Some(vec![1, 2, 3])),
            ("7", Some(vec![7])),
            ("\"7\"", Some(vec![7])),
            ("{\"a\":1}", None),
            ("{\"01\":1}", None),
            ("{\"1\":1,\"1\":2}", None),
            ("[1,\"x\"]", None),
            ("[[1]]", None),
            ("true", None),
        ] {
            assert_eq!(ints(raw), expected, "{raw}");
        }
    }
}
