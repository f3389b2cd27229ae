//! Bodies in one canonical spelling: names sorted, no spaces, nothing in them that a database cannot hold; and the hash
//! of what has meaning in them.

use std::borrow::Cow;

use aws_lc_rs::digest::{SHA256, digest};
use highwater_core::spelled_number;

use crate::text::{self, Text};

/// What people and programs write has a dozen levels.
const NESTING_MAX: usize = 128;

/// A value of JSON that is known to be sound, borrowed from its text.
pub(super) enum Node<'a> {
    /// A number, `true`, `false` or `null`, as it is written.
    Plain(&'a str),
    /// With its quotes.
    Text(&'a str),
    List(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// Names that move without meaning, at any depth.
pub(super) struct Volatile {
    pub(super) names: &'static [&'static str],
    pub(super) more: &'static [&'static str],
    pub(super) prefixes: &'static [&'static str],
}

impl Volatile {
    fn has(&self, name: &str) -> bool {
        let names = [self.names, self.more];
        names.iter().any(|names| names.contains(&name)) || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// A body as it is stored.
pub(super) struct Spelled {
    pub(super) json: String,
    /// Something in it was replaced.
    pub(super) is_mended: bool,
}

impl<'a> Node<'a> {
    /// None if it is nested too deeply. The text must be sound JSON.
    pub(super) fn read(json: &'a str) -> Option<Node<'a>> {
        let mut reader = Reader { json, at: 0 };
        reader.value(0)
    }

    pub(super) fn member(&self, name: &str) -> Option<&Node<'a>> {
        match self {
            Node::Object(members) => members.iter().find(|(known, _)| known == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// A text, or a number or flag as it is written; none for `null` and for what is no single value.
    pub(super) fn word(&self) -> Option<Cow<'a, str>> {
        match self {
            Node::Plain("null") | Node::List(_) | Node::Object(_) => None,
            Node::Plain(word) => Some(Cow::Borrowed(word)),
            Node::Text(raw) => text::read(raw).map(|text| match text {
                Text::Plain(text) => text,
                Text::Mended { shown, .. } => Cow::Owned(shown),
            }),
        }
    }

    pub(super) fn elements(&self) -> &[Node<'a>] {
        match self {
            Node::List(elements) => elements,
            _ => &[],
        }
    }

    pub(super) fn spell(&self) -> Spelled {
        let mut writer = Writer { json: String::with_capacity(1024), is_mended: false, without: None };
        writer.write(self);
        Spelled { json: writer.json, is_mended: writer.is_mended }
    }

    /// SHA-256 in hexadecimal of the canonical spelling without what moves without meaning.
    pub(super) fn hash(&self, without: &Volatile) -> String {
        let mut writer = Writer { json: String::with_capacity(1024), is_mended: false, without: Some(without) };
        writer.write(self);
        digest(&SHA256, writer.json.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

struct Writer<'v> {
    json: String,
    is_mended: bool,
    without: Option<&'v Volatile>,
}

impl Writer<'_> {
    fn write(&mut self, node: &Node<'_>) {
        match node {
            Node::Plain(word) if word.starts_with(['t', 'f', 'n']) => self.json.push_str(word),
            Node::Plain(number) => self.json.push_str(&spelled_number(number)),
            Node::Text(raw) => self.text(raw),
            Node::List(elements) => {
                self.json.push('[');
                for (index, element) in elements.iter().enumerate() {
                    self.comma(index);
                    self.write(element);
                }
                self.json.push(']');
            }
            Node::Object(members) => self.object(members),
        }
    }

    fn object(&mut self, members: &[(Cow<'_, str>, Node<'_>)]) {
        self.json.push('{');
        let mut index = 0;
        for (name, value) in members {
            if self.without.is_some_and(|without| without.has(name)) {
                continue;
            }
            self.comma(index);
            self.quote(name);
            self.json.push(':');
            self.write(value);
            index += 1;
        }
        self.json.push('}');
    }

    fn text(&mut self, raw: &str) {
        match text::read(raw) {
            Some(Text::Plain(Cow::Borrowed(_))) => self.json.push_str(raw),
            Some(text) => {
                self.is_mended |= matches!(text, Text::Mended { .. });
                self.quote(text.shown());
            }
            None => self.json.push_str("null"),
        }
    }

    /// Most names need nothing but quotes.
    fn quote(&mut self, text: &str) {
        if text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
            self.json.push_str(&serde_json::Value::from(text).to_string());
        } else {
            self.json.push('"');
            self.json.push_str(text);
            self.json.push('"');
        }
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.json.push(',');
        }
    }
}

/// Goes through sound JSON once.
struct Reader<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Option<Node<'a>> {
        if depth > NESTING_MAX {
            return None;
        }
        match self.peek()? {
            b'"' => Some(Node::Text(self.raw_text())),
            b'[' => self.list(depth),
            b'{' => self.object(depth),
            _ => Some(Node::Plain(self.plain())),
        }
    }

    fn list(&mut self, depth: usize) -> Option<Node<'a>> {
        self.at += 1;
        let mut elements = Vec::new();
        loop {
            match self.peek()? {
                b']' => break,
                b',' => self.at += 1,
                _ => elements.push(self.value(depth + 1)?),
            }
        }
        self.at += 1;
        Some(Node::List(elements))
    }

    /// Of a name that occurs twice the last counts, as it does to databases.
    fn object(&mut self, depth: usize) -> Option<Node<'a>> {
        self.at += 1;
        let mut members: Vec<(Cow<'a, str>, Node<'a>)> = Vec::new();
        loop {
            match self.peek()? {
                b'}' => break,
                b',' => self.at += 1,
                _ => members.push(self.member(depth)?),
            }
        }
        self.at += 1;
        members.sort_by(|a, b| a.0.cmp(&b.0));
        members.reverse();
        members.dedup_by(|a, b| a.0 == b.0);
        members.reverse();
        Some(Node::Object(members))
    }

    fn member(&mut self, depth: usize) -> Option<(Cow<'a, str>, Node<'a>)> {
        let name = match text::read(self.raw_text())? {
            Text::Plain(name) => name,
            Text::Mended { shown, .. } => Cow::Owned(shown),
        };
        self.peek()?;
        self.at += 1;
        Some((name, self.value(depth + 1)?))
    }

    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.json.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn raw_text(&mut self) -> &'a str {
        let (bytes, start) = (self.json.as_bytes(), self.at);
        self.at += 1;
        while let Some(byte) = bytes.get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == b'"' {
                break;
            }
        }
        &self.json[start..self.at.min(bytes.len())]
    }

    fn plain(&mut self) -> &'a str {
        let start = self.at;
        let rest = &self.json.as_bytes()[start..];
        let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace();
        self.at += rest.iter().position(ends).unwrap_or(rest.len()).max(1);
        &self.json[start..self.at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHOUT: Volatile = Volatile { names: &["can"], more: &[], prefixes: &["avatar_url"] };

    fn spelled(json: &str) -> String {
        Node::read(json).unwrap().spell().json
    }

    fn hash(json: &str) -> String {
        Node::read(json).unwrap().hash(&WITHOUT)
    }

    #[test]
    fn only_order_spaces_and_the_spelling_of_numbers_are_ours() {
        let json =
            "{ \"b\" : [1.0, -0.10, 1e3, {\"z\":null,\"aa\":\"\\u00e9\\\"\\/\"} ], \"a\" : true,\n\"a\": false }";
        assert_eq!(spelled(json), r#"{"a":false,"b":[1.0,-0.10,1000,{"aa":"é\"/","z":null}]}"#);
        for json in ["{}", "[]", "\"\"", "-12", "null", "[[],{}]"] {
            assert_eq!(spelled(json), json);
        }
        assert_eq!(spelled(&spelled(json)), spelled(json));
    }

    #[test]
    fn what_a_database_cannot_hold_is_replaced_and_told() {
        let spelled = Node::read(r#"{"a":"x\u0000y","b\ud800":1}"#).unwrap().spell();
        assert_eq!((spelled.json.as_str(), spelled.is_mended), ("{\"a\":\"x\u{fffd}y\",\"b\u{fffd}\":1}", true));
    }

    #[test]
    fn what_moves_without_meaning_is_not_in_the_hash() {
        let same = hash(r#"{"id":"1","can":{"show":true},"q":[{"can":1,"x":2}],"avatar_url_sm":"a"}"#);
        assert_eq!(same, hash(r#"{"q":[{"x":2}],"id":"1"}"#));
        assert_ne!(same, hash(r#"{"q":[{"x":3}],"id":"1"}"#));
        assert_ne!(same, hash(r#"{"q":[{"x":2}],"id":"1","can_do":1}"#));
        assert_eq!(same.len(), 64);
    }

    #[test]
    fn a_bottomless_body_is_refused() {
        assert!(Node::read(&format!("{}{}", "[".repeat(500), "]".repeat(500))).is_none());
    }
}
