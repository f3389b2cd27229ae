//! Events as bytes: how Firebase frames them, and the forms in which it may tell of a write.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::plan::WriteForm;

pub(super) const KEEP_ALIVE: Bytes = Bytes::from_static(b"event: keep-alive\ndata: null\n\n");
pub(super) const CANCEL: Bytes = Bytes::from_static(b"event: cancel\ndata: null\n\n");
/// The text stands bare: firebase-admin compares it so.
pub(super) const AUTH_REVOKED: Bytes =
    Bytes::from_static(b"event: auth_revoked\ndata: credential is no longer valid\n\n");

#[derive(Debug)]
pub(super) struct Frame {
    pub(super) bytes: Bytes,
    pub(super) kind: FrameKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    Event,
    KeepAlive,
    /// The beginning of an event.
    Broken,
}

pub(super) fn put(path: &str, data: &[u8]) -> Bytes {
    event("put", path, data)
}

/// The events that tell of a write, of all that is written: a list that names the same id again tells of another change
/// to it. Only objects and lists have parts to tell of; and a text that is no Unicode can
/// only be passed on whole.
pub(super) fn write(form: WriteForm, before: &[u8], after: &[u8]) -> Vec<Bytes> {
    let whole = || vec![put("/", after)];
    let parsed = || Some((serde_json::from_slice(before).ok()?, serde_json::from_slice(after).ok()?));
    match (form, parsed) {
        (WriteForm::Put, _) => whole(),
        (WriteForm::PutNull, _) => vec![put("/", b"null"), put("/", after)],
        (form, parsed) => match parsed() {
            Some((Value::Object(before), Value::Object(after))) => by_key(form, &before, &after),
            Some((Value::Array(before), Value::Array(after))) if form == WriteForm::PutIndex => {
                by_place("", &before, &after)
            }
            _ => whole(),
        },
    }
}

fn by_key(form: WriteForm, before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<Bytes> {
    let value = |key: &String| after.get(key).unwrap_or(&Value::Null);
    if form == WriteForm::Patch {
        let data: Map<String, Value> = keys(before, after).map(|key| (key.clone(), value(key).clone())).collect();
        return vec![event("patch", "/", Value::Object(data).to_string().as_bytes())];
    }
    let events = keys(before, after).map(|key| match (form, before.get(key), value(key)) {
        (WriteForm::PutIndex, Some(Value::Array(before)), Value::Array(after)) => {
            by_place(&format!("/{key}"), before, after)
        }
        (_, _, value) => vec![put(&format!("/{key}"), value.to_string().as_bytes())],
    });
    events.flatten().collect()
}

/// Those that are written, in order, and those that are no more.
fn keys<'a>(before: &'a Map<String, Value>, after: &'a Map<String, Value>) -> impl Iterator<Item = &'a String> {
    after.keys().chain(before.keys().filter(|key| !after.contains_key(*key)))
}

/// What is too much goes from the end, so that the list has no hole at any time.
fn by_place(path: &str, before: &[Value], after: &[Value]) -> Vec<Bytes> {
    let gone = (after.len()..before.len()).rev().map(|at| (at, &Value::Null));
    let places = gone.chain(after.iter().enumerate());
    places.map(|(at, value)| put(&format!("{path}/{at}"), value.to_string().as_bytes())).collect()
}

fn event(name: &str, path: &str, data: &[u8]) -> Bytes {
    let mut frame = format!("event: {name}\ndata: {{\"path\":{},\"data\":", json!(path)).into_bytes();
    frame.extend_from_slice(data);
    frame.extend_from_slice(b"}\n\n");
    frame.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(form: WriteForm, before: &str, after: &str) -> String {
        let frames = write(form, before.as_bytes(), after.as_bytes());
        let text = frames.iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect::<String>();
        text.replace("event: ", "").replace("\ndata: ", " ").replace("\n\n", "\n")
    }

    #[test]
    fn a_write_is_told_in_each_form() {
        let (before, after) = (r#"{"items":[1,2,3],"profiles":["a"]}"#, r#"{"items":[4,2]}"#);
        let whole = "put {\"path\":\"/\",\"data\":{\"items\":[4,2]}}\n";
        assert_eq!(told(WriteForm::Put, before, after), whole);
        assert_eq!(told(WriteForm::PutNull, before, after), format!("put {{\"path\":\"/\",\"data\":null}}\n{whole}"));
        assert_eq!(
            told(WriteForm::PutPath, before, after),
            "put {\"path\":\"/items\",\"data\":[4,2]}\nput {\"path\":\"/profiles\",\"data\":null}\n"
        );
        assert_eq!(
            told(WriteForm::PutIndex, before, after),
            "put {\"path\":\"/items/2\",\"data\":null}\nput {\"path\":\"/items/0\",\"data\":4}\n\
             put {\"path\":\"/items/1\",\"data\":2}\nput {\"path\":\"/profiles\",\"data\":null}\n"
        );
        assert_eq!(
            told(WriteForm::Patch, before, after),
            "patch {\"path\":\"/\",\"data\":{\"items\":[4,2],\"profiles\":null}}\n"
        );
    }

    #[test]
    fn what_has_no_parts_is_put_whole() {
        for form in [WriteForm::PutPath, WriteForm::PutIndex, WriteForm::Patch] {
            assert_eq!(told(form, "7", "8"), "put {\"path\":\"/\",\"data\":8}\n");
            let odd = r#"{"text":"\ud83d"}"#;
            assert_eq!(told(form, "null", odd), format!("put {{\"path\":\"/\",\"data\":{odd}}}\n"));
        }
        let places = "put {\"path\":\"/0\",\"data\":1}\nput {\"path\":\"/1\",\"data\":2}\n";
        assert_eq!(told(WriteForm::PutIndex, "[1]", "[1,2]"), places);
    }
}
