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

use super::{
    members::Members,
    text::{self, Text},
};

pub(super) const EXACT: &str = "_exact";

/// Parsers that give up on nesting do so at 128 levels or later.
const NESTING_MAX: u32 = 100;

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
        let shown = match canonical.write(raw, 0) {
            Some(()) => canonical.json,
            None => quoted(raw),
        };
        if canonical.is_mended {
            self.exact.insert(name.into(), exact_bytes(raw));
        }
        self.shown.insert(name.into(), shown);
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
    fn write(&mut self, raw: &str, depth: u32) -> Option<()> {
        if depth > NESTING_MAX {
            return None;
        }
        match raw.as_bytes().first()? {
            b'"' => self.write_text(raw)?,
            b'[' => self.write_list(raw, depth)?,
            b'{' => self.write_object(raw, depth)?,
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

    fn write_list(&mut self, raw: &str, depth: u32) -> Option<()> {
        let list: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
        self.json.push('[');
        for (index, element) in list.into_iter().enumerate() {
            if index > 0 {
                self.json.push(',');
            }
            self.write(element.get(), depth + 1)?;
        }
        self.json.push(']');
        Some(())
    }

    fn write_object(&mut self, raw: &str, depth: u32) -> Option<()> {
        let Members(members) = Members::parse(raw).ok()?;
        let mut sorted = BTreeMap::new();
        for (name, value) in members {
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
            self.write(value, depth + 1)?;
        }
        self.json.push('}');
        Some(())
    }
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
