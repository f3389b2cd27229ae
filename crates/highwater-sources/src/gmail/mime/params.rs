//! Values with parameters, as of Content-Type: `token; name=value; name*0*=utf-8''%C3%9C`. Nothing is refused: what
//! makes no sense is passed over.

use std::borrow::Cow;

use super::{charset, transfer, words};

pub(super) struct Value {
    /// What stands first, in lower case.
    pub(super) token: String,
    /// Names in lower case.
    params: Vec<(String, String)>,
}

/// A piece of a parameter that is cut into several (RFC 2231).
struct Piece<'a> {
    number: u16,
    is_encoded: bool,
    value: &'a str,
}

impl Value {
    pub(super) fn parse(text: &str) -> Self {
        let end = text.find(|c: char| c == ';' || c.is_ascii_whitespace()).unwrap_or(text.len());
        let (token, mut rest) = text.split_at(end);
        let mut params = Vec::new();
        while let Some((name, after)) = next_name(rest) {
            let (value, after) = value(&name, after);
            params.push((name, value));
            rest = after;
        }
        Value { token: token.to_ascii_lowercase(), params }
    }

    /// The form that can say more goes before the plain one, which is there for old readers.
    pub(super) fn param(&self, name: &str) -> Option<String> {
        self.in_pieces(name).or_else(|| {
            let plain = self.params.iter().find(|(known, _)| known == name);
            plain.map(|(_, value)| words::decode(value))
        })
    }

    fn in_pieces(&self, name: &str) -> Option<String> {
        let mut pieces: Vec<_> =
            self.params.iter().filter_map(|(known, value)| piece(known.strip_prefix(name)?, value)).collect();
        pieces.sort_by_key(|piece| piece.number);
        let first = pieces.first_mut()?;
        let mut charset = "";
        if let (true, Some((name, text))) = (first.is_encoded, charset_of(first.value)) {
            (charset, first.value) = (name, text);
        }
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes().into_owned()).collect();
        Some(charset::decode(&bytes, charset).unwrap_or_else(|| charset::guess(&bytes)))
    }
}

/// By what follows the parameter's name: `*`, `*0` or `*0*`.
fn piece<'a>(mark: &str, value: &'a str) -> Option<Piece<'a>> {
    let mark = mark.strip_prefix('*')?;
    let (number, is_encoded) = match mark.strip_suffix('*') {
        Some(number) => (number, true),
        None => (mark, mark.is_empty()),
    };
    let number = if number.is_empty() { 0 } else { number.parse().ok()? };
    Some(Piece { number, is_encoded, value })
}

impl Piece<'_> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        if self.is_encoded { unescaped(self.value.as_bytes()).into() } else { self.value.as_bytes().into() }
    }
}

/// `charset'language'text`
fn charset_of(value: &str) -> Option<(&str, &str)> {
    let (charset, rest) = value.split_once('\'')?;
    let (_, text) = rest.split_once('\'')?;
    Some((charset, text))
}

fn unescaped(mut text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    while let [first, rest @ ..] = text {
        let escaped = rest.get(..2).filter(|_| *first == b'%').and_then(transfer::hex);
        bytes.push(escaped.unwrap_or(*first));
        text = if escaped.is_some() { &rest[2..] } else { rest };
    }
    bytes
}

/// The next name that has a value, and what follows the sign between them.
fn next_name(mut text: &str) -> Option<(String, &str)> {
    loop {
        text = text.trim_start_matches(|c: char| matches!(c, ';' | '=') || c.is_ascii_whitespace());
        let end = text.find(['=', ';'])?;
        let (name, rest) = text.split_at(end);
        if let Some(after) = rest.strip_prefix('=') {
            return Some((name.trim().to_ascii_lowercase(), after));
        }
        text = rest;
    }
}

/// A value and what follows it.
fn value<'a>(name: &str, text: &'a str) -> (String, &'a str) {
    let text = text.trim_ascii_start();
    if let Some(inner) = text.strip_prefix('"') {
        return quoted(inner);
    }
    let (value, rest) = text.split_at(text.find(';').unwrap_or(text.len()));
    // Names of files are written with spaces and without quotes; behind anything else a comment may stand.
    let is_file_name = name.starts_with("name") || name.starts_with("filename");
    let value = if is_file_name { value } else { value.split_ascii_whitespace().next().unwrap_or("") };
    (value.trim().to_owned(), rest)
}

/// A backslash that escapes nothing stays: it is part of a path.
fn quoted(text: &str) -> (String, &str) {
    let (mut value, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['"', '\\']) {
        value.push_str(&rest[..at]);
        let (mark, after) = (&rest[at..=at], &rest[at + 1..]);
        if mark == "\"" {
            return (value, after);
        }
        let escaped = after.strip_prefix(['"', '\\']);
        value.push_str(if escaped.is_some() { &after[..1] } else { mark });
        rest = escaped.unwrap_or(after);
    }
    value.push_str(rest);
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, name: &str, expected: Option<&str>) {
        assert_eq!(Value::parse(text).param(name).as_deref(), expected, "{text:?}");
    }

    #[test]
    fn parameters_are_found_however_they_are_written() {
        assert_eq!(Value::parse("Text/HTML ; charset=x").token, "text/html");
        check("text/plain; charset=UTF-8", "charset", Some("UTF-8"));
        check("text/plain;charset = \"utf-8\" ; x=y", "charset", Some("utf-8"));
        check("text/plain charset=utf-8 (a comment)", "charset", Some("utf-8"));
        check("a; Name=my file.pdf; x=y", "name", Some("my file.pdf"));
        check("a; filename=\"a;b=c.txt\"; x=y", "x", Some("y"));
        check("text/plain; =; charset ;;\"unclosed", "charset", None);
        check("a; name=\"never closed; x=y", "name", Some("never closed; x=y"));
        check("a; name=", "name", Some(""));
        check("", "name", None);
    }

    #[test]
    fn only_quotes_and_backslashes_are_escaped() {
        check(r#"a; name="C:\docs\a \"b\" \\c.txt""#, "name", Some(r#"C:\docs\a "b" \c.txt"#));
        check(r#"a; name="é\"#, "name", Some(r"é\"));
    }

    #[test]
    fn names_in_pieces_are_put_together() {
        check("a; filename*=UTF-8''%e2%82%ac%20rates.bin", "filename", Some("€ rates.bin"));
        check("a; filename*1*=%AC.txt; filename*0*=utf-8'en'%E2%82", "filename", Some("€.txt"));
        check("a; filename*0=\"a b\"; filename*1=\".pdf\"", "filename", Some("a b.pdf"));
        check("a; filename=old.txt; filename*=koi8-r''%F0", "filename", Some("П"));
        check("a; filename*0*=UTF-8''%C3%9C; filename*1=\"%41.pdf\"", "filename", Some("Ü%41.pdf"));
        check("a; filename*=no%20charset%F6%zz", "filename", Some("no charsetö%zz"));
        check("a; filename*x=1; filename*99999=2", "filename", None);
    }

    #[test]
    fn encoded_words_are_read_although_they_do_not_belong_there() {
        check("a; name=\"=?utf-8?Q?=C3=9Cber.pdf?=\"", "name", Some("Über.pdf"));
        check("a; name==?utf-8?B?w5w=?=", "name", Some("Ü"));
    }
}
