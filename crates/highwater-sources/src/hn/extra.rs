//! The `extra` column: whatever has no column of its own, or does not fit into it, as JSON in one canonical form.
//!
//! - `{"name": value}` shows a field as it was. A value that databases cannot hold as JSON (nested too deeply, a number
//!   with an exponent or a negative zero, which one of them would rewrite) is kept as the text of its JSON.
//! - `_exact` holds, in base64, what U+FFFD stands for: under the name of a string its bytes, under the name of a list
//!   or an object its JSON.
//! - `_exact._exact` holds the JSON of an object with all members whose names cannot be shown, which includes a remote
//!   `_exact`: so no remote field can pretend to be one of these.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use highwater_core::Value;
use serde_json::value::RawValue;

use super::members;
use crate::text::{self, Text};

pub(super) const EXACT: &str = "_exact";

/// Every level is scanned once more; what is written by people or programs has a handful.
const NESTING_MAX: usize = 32;

/// PostgreSQL's numbers have room for more digits, but an honest one has not.
const NUMBER_MAX: usize = 1_000;

#[derive(Default)]
pub(super) struct Extra<'a> {
    shown: BTreeMap<String, String>,
    exact: BTreeMap<String, Vec<u8>>,
    /// By the exact bytes of the name, raw name and value.
    unnamable: BTreeMap<Vec<u8>, (&'a str, &'a str)>,
}

impl<'a> Extra<'a> {
    pub(super) fn keep(&mut self, name: &str, raw: &'a str) {
        self.exact.remove(name);
        let mut canonical = Canonical::default();
        if nesting(raw) > NESTING_MAX || canonical.write(raw).is_none() {
            canonical = Canonical { json: quoted(raw), is_mended: false };
        }
        if canonical.is_mended {
            self.exact.insert(name.into(), exact_bytes(raw));
        }
        self.shown.insert(name.into(), canonical.json);
    }

    /// A field whose name the column cannot hold.
    pub(super) fn keep_unnamable(&mut self, name: Vec<u8>, raw_name: &'a str, raw: &'a str) {
        self.unnamable.insert(name, (raw_name, raw));
    }

    /// The bytes of a string that a column shows with replacements.
    pub(super) fn keep_exact(&mut self, name: &str, bytes: Vec<u8>) {
        self.exact.insert(name.into(), bytes);
    }

    pub(super) fn into_value(mut self) -> Value {
        if !self.unnamable.is_empty() {
            let members = self.unnamable.values().map(|(name, value)| format!("{name}:{value}"));
            let json = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
            self.exact.insert(EXACT.into(), json.into_bytes());
        }
        if !self.exact.is_empty() {
            let encoded = self.exact.iter().map(|(name, bytes)| (name.as_str(), BASE64_STANDARD.encode(bytes)));
            let encoded = encoded.map(|(name, text)| (name, quoted(&text)));
            self.shown.insert(EXACT.into(), object(encoded));
        }
        if self.shown.is_empty() {
            return Value::Null;
        }
        Value::Json(object(self.shown.iter().map(|(name, json)| (name.as_str(), json))))
    }
}

fn exact_bytes(raw: &str) -> Vec<u8> {
    match text::read(raw) {
        Some(Text::Mended { exact, .. }) => exact,
        _ => raw.as_bytes().to_vec(),
    }
}

/// Compact JSON with sorted names, in which nothing is left that a database cannot hold.
#[derive(Default)]
struct Canonical {
    json: String,
    is_mended: bool,
}

impl Canonical {
    /// None if the value cannot be held as JSON.
    fn write(&mut self, raw: &str) -> Option<()> {
        match raw.as_bytes().first()? {
            b'"' => self.write_text(raw)?,
            b'[' => self.write_list(raw)?,
            b'{' => self.write_object(raw)?,
            b'-' | b'0'..=b'9' if !is_stable(raw) => return None,
            _ => self.json.push_str(raw),
        }
        Some(())
    }

    fn write_text(&mut self, raw: &str) -> Option<()> {
        let text = text::read(raw)?;
        self.is_mended |= matches!(text, Text::Mended { .. });
        self.json.push_str(&quoted(text.shown()));
        Some(())
    }

    fn write_list(&mut self, raw: &str) -> Option<()> {
        let list: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
        self.json.push('[');
        for (index, element) in list.into_iter().enumerate() {
            if index > 0 {
                self.json.push(',');
            }
            self.write(element.get())?;
        }
        self.json.push(']');
        Some(())
    }

    fn write_object(&mut self, raw: &str) -> Option<()> {
        let mut sorted = BTreeMap::new();
        for (name, value) in members::all(raw).ok()? {
            let name = text::read(name)?;
            self.is_mended |= matches!(name, Text::Mended { .. });
            sorted.insert(name.shown().to_owned(), value);
        }
        self.json.push('{');
        for (index, (name, value)) in sorted.into_iter().enumerate() {
            if index > 0 {
                self.json.push(',');
            }
            self.json.push_str(&quoted(&name));
            self.json.push(':');
            self.write(value)?;
        }
        self.json.push('}');
        Some(())
    }
}

/// How deeply lists and objects are nested, in a value known to be JSON.
fn nesting(raw: &str) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in raw.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth -= 1,
            _ => {}
        }
    }
    deepest
}

/// Whether every database gives the number back as it is written.
fn is_stable(number: &str) -> bool {
    let is_negative_zero = number.starts_with('-') && !number.bytes().any(|b| matches!(b, b'1'..=b'9'));
    number.len() <= NUMBER_MAX && !number.contains(['e', 'E']) && !is_negative_zero
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn object<'a>(members: impl Iterator<Item = (&'a str, impl AsRef<str>)>) -> String {
    let members = members.map(|(name, json)| format!("{}:{}", quoted(name), json.as_ref()));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
