//! Encoded words in headers (RFC 2047): `=?charset?Q?text?=`.

use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_STANDARD};

use super::{charset, transfer};

const CHARSET_NAME_MAX: usize = 64;

/// A word as it stands in a header.
struct Word<'a> {
    charset: &'a str,
    bytes: Vec<u8>,
    /// Of the header, from the word's beginning.
    len: usize,
}

/// Neighbours of one charset: a character may begin in one word and end in the next.
struct Run<'a> {
    charset: &'a str,
    bytes: Vec<u8>,
}

pub(super) fn decode(text: &str) -> String {
    charset::clean(replace(text, |decoded, out| out.push_str(&decoded)).into_owned())
}

/// The same words in UTF-8, for a reader who must still tell a comma from an encoded one.
pub(super) fn in_utf8(text: &str) -> Cow<'_, str> {
    replace(text, |decoded, out| {
        out.push_str("=?utf-8?B?");
        BASE64_STANDARD.encode_string(decoded, out);
        out.push_str("?=");
    })
}

/// White space between two words is not part of the text.
fn replace(text: &str, put: impl Fn(String, &mut String)) -> Cow<'_, str> {
    // Behind the last end of a word there is none: so no search for an end is in vain, and all of them take linear time.
    let Some(last_end) = text.rfind("?=") else { return text.into() };
    let tail = text.len() - last_end;
    let (mut out, mut run, mut rest) = (String::with_capacity(text.len()), None::<Run<'_>>, text);
    while let Some(at) = rest.find("=?").filter(|at| rest.len() - at > tail) {
        let (before, from) = rest.split_at(at);
        let Some(word) = word(from) else {
            finish(&mut run, &put, &mut out);
            out.push_str(&rest[..at + 2]);
            rest = &rest[at + 2..];
            continue;
        };
        rest = &from[word.len..];
        match &mut run {
            Some(run) if is_space(before) && run.charset.eq_ignore_ascii_case(word.charset) => {
                run.bytes.extend(word.bytes);
                continue;
            }
            Some(_) if is_space(before) => finish(&mut run, &put, &mut out),
            _ => {
                finish(&mut run, &put, &mut out);
                out.push_str(before);
            }
        }
        run = Some(Run { charset: word.charset, bytes: word.bytes });
    }
    finish(&mut run, &put, &mut out);
    out.push_str(rest);
    out.into()
}

fn finish(run: &mut Option<Run<'_>>, put: &impl Fn(String, &mut String), out: &mut String) {
    if let Some(Run { charset, bytes }) = run.take() {
        put(charset::decode(&bytes, charset).unwrap_or_else(|| charset::guess(&bytes)), out);
    }
}

fn is_space(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_whitespace())
}

fn word(text: &str) -> Option<Word<'_>> {
    let inner = text.strip_prefix("=?")?;
    let charset_len = inner.bytes().take(CHARSET_NAME_MAX).position(|byte| byte == b'?')?;
    let (charset, after) = (&inner[..charset_len], &inner[charset_len + 1..]);
    let is_name = !charset.is_empty() && charset.bytes().all(|byte| byte.is_ascii_graphic());
    let decode: fn(&str) -> Vec<u8> = match after.as_bytes() {
        [b'b' | b'B', b'?', ..] if is_name => |data| transfer::base64(data.as_bytes()).0,
        [b'q' | b'Q', b'?', ..] if is_name => unquote,
        _ => return None,
    };
    let data = &after[2..];
    let data = &data[..data.find("?=")?];
    // A language may follow the charset (RFC 2231).
    let name = charset.split('*').next().unwrap_or(charset);
    Some(Word { charset: name, bytes: decode(data), len: 2 + charset_len + 1 + 2 + data.len() + 2 })
}

fn unquote(data: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len());
    transfer::unquote(data.replace('_', " ").as_bytes(), &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(decode(text), expected, "{text:?}");
    }

    #[test]
    fn words_are_decoded_where_they_stand() {
        check("plain", "plain");
        check("=?utf-8?Q?Gr=C3=BC=C3=9Fe_aus?= Berlin", "Grüße aus Berlin");
        check("Re: =?ISO-8859-1?B?S/ZsbiA=?=", "Re: Köln ");
        check("=?us-ascii*en?q?a?=", "a");
        check("(=?utf-8?q?a?=)", "(a)");
    }

    #[test]
    fn neighbours_are_one_text() {
        check("=?utf-8?Q?a?= =?utf-8?Q?b?=", "ab");
        check("=?utf-8?Q?a?=  \t =?koi8-r?Q?=F0?= c", "aП c");
        check("=?utf-8?B?4oI=?= =?UTF-8?B?rA==?=", "€");
        check("=?utf-8?Q?=E2?=\t=?utf-8?B?gqw=?=", "€");
        check("=?utf-8?Q?a?= b =?utf-8?Q?c?=", "a b c");
    }

    #[test]
    fn what_is_no_word_stays() {
        for text in
            ["=?", "=?=", "=?utf-8", "=?utf-8?", "=?utf-8?Q", "=?utf-8?Q?a", "=?utf-8?X?a?=", "a =? b", "=??Q?a?="]
        {
            check(text, text);
        }
        check("=?x y?Q?a?=", "=?x y?Q?a?=");
        check("=?utf-8?é?a?=", "=?utf-8?é?a?=");
    }

    #[test]
    fn an_unknown_charset_loses_no_byte() {
        check("=?x-foo?Q?K=F6ln?=", "Köln");
        check("=?utf-8?Q?K=F6ln=00?=", "Köln\u{fffd}");
        check("=?utf-8?Q?50=25=ZZ?=", "50%=ZZ");
    }

    #[test]
    fn words_in_utf_8_say_the_same() {
        let text = "=?koi8-r?Q?=F0,?= =?koi8-r?Q?=D2?= <a@b>, =?x-foo?B?9g==?= <c@d>";
        assert_eq!(in_utf8(text), "=?utf-8?B?0J8s0YA=?= <a@b>, =?utf-8?B?w7Y=?= <c@d>");
        assert_eq!(decode(&in_utf8(text)), decode(text));
    }
}
