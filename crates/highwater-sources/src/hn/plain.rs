//! A JSON object as Firebase writes nearly every one: without spaces, its values whole numbers, words, texts and lists of
//! whole numbers. Reads these in a third of the time the parser takes; whatever is written otherwise is left to it.

use memchr::memchr2;

/// The value of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Raw<'a> {
    pub(super) json: &'a str,
    /// Its text, where that is known without reading it: nothing in it is escaped.
    pub(super) text: Option<&'a str>,
}

impl<'a> From<&'a str> for Raw<'a> {
    fn from(json: &'a str) -> Self {
        Raw { json, text: None }
    }
}

/// Shows names and values of all members to `visit`. None if the object is not a plain one; some members may have been
/// shown by then.
pub(super) fn each<'a>(json: &'a str, mut visit: impl FnMut(&'a str, Raw<'a>)) -> Option<()> {
    let mut scan = Scan { json, at: 0 };
    scan.take(b'{')?;
    loop {
        let name = scan.name()?;
        scan.take(b':')?;
        visit(name, scan.value()?);
        match scan.next()? {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
    }
    (scan.at == json.len()).then_some(())
}

struct Scan<'a> {
    json: &'a str,
    /// Always at the beginning of a character.
    at: usize,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.next()? == wanted).then_some(())
    }

    /// Of letters alone: one of ours, which begin with an underscore, is not plain.
    fn name(&mut self) -> Option<&'a str> {
        self.take(b'"')?;
        let start = self.at;
        while self.peek()?.is_ascii_alphabetic() {
            self.at += 1;
        }
        let name = &self.json[start..self.at];
        self.take(b'"').map(|()| name)
    }

    fn value(&mut self) -> Option<Raw<'a>> {
        let (start, mut text) = (self.at, None);
        match self.peek()? {
            b'"' => text = self.text()?,
            b'[' => self.list()?,
            b't' => self.word("true")?,
            b'f' => self.word("false")?,
            b'n' => self.word("null")?,
            _ => self.number()?,
        }
        Some(Raw { json: &self.json[start..self.at], text })
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.json[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    /// Whole, and as JSON wants it: without zeros in front.
    fn number(&mut self) -> Option<()> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        let start = self.at;
        while self.peek()?.is_ascii_digit() {
            self.at += 1;
        }
        let digits = &self.json.as_bytes()[start..self.at];
        let is_whole = !matches!(self.peek()?, b'.' | b'e' | b'E');
        (is_whole && !digits.is_empty() && (digits[0] != b'0' || digits.len() == 1)).then_some(())
    }

    fn list(&mut self) -> Option<()> {
        self.take(b'[')?;
        if self.peek()? == b']' {
            return self.take(b']');
        }
        loop {
            self.number()?;
            match self.next()? {
                b',' => {}
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    /// What stands between the quotes, if none of it is escaped.
    fn text(&mut self) -> Option<Option<&'a str>> {
        self.take(b'"')?;
        let start = self.at;
        let mut is_escaped = false;
        loop {
            let rest = &self.json.as_bytes()[self.at..];
            let plain = &rest[..memchr2(b'"', b'\\', rest)?];
            // What no text may hold lies below the space. All are looked at, which is quicker than to stop at the first.
            if plain.iter().fold(u8::MAX, |least, byte| least.min(*byte)) < b' ' {
                return None;
            }
            self.at += plain.len();
            if self.next()? == b'"' {
                return Some((!is_escaped).then(|| &self.json[start..self.at - 1]));
            }
            is_escaped = true;
            if !matches!(self.next()?, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::members;
    use crate::text;

    fn plain(json: &str) -> Option<Vec<(&str, &str)>> {
        let mut members = Vec::new();
        super::each(json, |name, value| {
            let written = value.text.map(|text| text::Text::Plain(text.into()));
            assert!(written.is_none() || written == text::read(value.json), "{json}");
            members.push((name, value.json));
        })?;
        Some(members)
    }

    /// By the parser that knows all of JSON.
    fn parsed(json: &str) -> Option<Vec<(&str, &str)>> {
        let members = members::all(json).ok()?;
        Some(members.into_iter().map(|(name, value)| (name.trim_matches('"'), value)).collect())
    }

    #[test]
    fn items_as_they_come_are_plain() {
        for json in [
            r#"{"by":"pg","descendants":-1,"id":1,"kids":[2,-3,0],"text":"é\"\\\/\b\f\n\r\t","type":"story"}"#,
            r#"{"dead":true,"deleted":false,"id":0,"kids":[],"url":"","x":null}"#,
        ] {
            assert_eq!(plain(json), parsed(json), "{json}");
            assert!(plain(json).is_some(), "{json}");
        }
    }

    #[test]
    fn a_text_is_known_unless_something_in_it_is_escaped() {
        let mut texts = Vec::new();
        super::each(r#"{"a":"","b":"é","c":"x\n","d":1}"#, |_, value| texts.push(value.text));
        assert_eq!(texts, [Some(""), Some("é"), None, None]);
    }

    #[test]
    fn whatever_else_is_left_to_the_parser() {
        for json in [
            "",
            "null",
            "[]",
            "{}",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,",
            "{\"a\":1,}",
            "{\"a\":1}}",
            "{\"a\":1} ",
            " {\"a\":1}",
            "{\"a\" :1}",
            "{\"a\": 1}",
            "{\"a\":1 }",
            "{a:1}",
            "{\"a\":01}",
            "{\"a\":-}",
            "{\"a\":-01}",
            "{\"a\":1.0}",
            "{\"a\":1e3}",
            "{\"a\":+1}",
            "{\"a\":.5}",
            "{\"a\":tru}",
            "{\"a\":truex}",
            "{\"a\":nul}",
            "{\"a\":{}}",
            "{\"a\":[1,]}",
            "{\"a\":[,1]}",
            "{\"a\":[\"b\"]}",
            "{\"a\":[1.5]}",
            "{\"a\":[[1]]}",
            "{\"a\":[1",
            "{\"a\":\"b}",
            "{\"a\":\"\\u0041\"}",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\\",
            "{\"a\":\"\n\"}",
            "{\"a\":\"\0\"}",
            "{\"a\":\"\u{1f}\"}",
            "{\"_exact\":1}",
            "{\"a\\n\":1}",
            "{\"é\":1}",
        ] {
            assert_eq!(plain(json), None, "{json}");
        }
    }

    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            "\"a\"",
            "\"id\":",
            "\"text\":\"",
            "1",
            "-",
            "0",
            "23",
            ".",
            "e",
            "true",
            "false",
            "null",
            " ",
            "\n",
            "\u{1}",
            "é",
            "😀",
            "\\\"",
            "\\u0000",
            "x",
        ]);
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_plain_is_what_the_parser_reads(inner in pieces(), wrapped: bool) {
            let json = if wrapped { format!("{{\"a\":{inner}}}") } else { inner };
            if let Some(members) = plain(&json) {
                prop_assert_eq!(Some(members), parsed(&json));
            }
        }
    }
}
