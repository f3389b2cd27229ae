//! Transfer encodings, read leniently: what does not belong is passed over or left as it stands.

use std::borrow::Cow;

use super::problem::{Problem, Problems};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    Base64,
    QuotedPrintable,
    Unknown,
}

impl Encoding {
    /// The first word counts: `"base64";` is base64.
    pub(super) fn of(value: &str) -> Self {
        let start = value.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        let word = start.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or("");
        match word.to_ascii_lowercase().as_str() {
            "base64" => Encoding::Base64,
            "quoted-printable" => Encoding::QuotedPrintable,
            "" | "7bit" | "8bit" | "binary" | "7-bit" | "8-bit" => Encoding::Plain,
            _ => Encoding::Unknown,
        }
    }

    pub(super) fn decode<'a>(self, bytes: &'a [u8], problems: &mut Problems) -> Cow<'a, [u8]> {
        match self {
            Encoding::Plain => bytes.into(),
            Encoding::QuotedPrintable => quoted_printable(bytes).into(),
            Encoding::Base64 => {
                let (content, foreign) = base64(bytes);
                if foreign > 0 {
                    problems.note(Problem::BadBase64);
                }
                content.into()
            }
            Encoding::Unknown => {
                problems.note(Problem::UnknownEncoding);
                bytes.into()
            }
        }
    }
}

/// The bytes, and how many there were that do not belong into base64. Padding may stand anywhere: some senders encode
/// in pieces.
pub(super) fn base64(text: &[u8]) -> (Vec<u8>, usize) {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut bits, mut count, mut foreign) = (0u32, 0, 0);
    for byte in text {
        match SEXTETS[usize::from(*byte)] {
            FOREIGN => foreign += 1,
            SPACE => {}
            PADDING => {
                flush(&mut out, bits, count);
                count = 0;
            }
            sextet => {
                bits = bits << 6 | u32::from(sextet);
                count += 1;
                if count == 4 {
                    out.extend_from_slice(&bits.to_be_bytes()[1..]);
                    count = 0;
                }
            }
        }
    }
    flush(&mut out, bits, count);
    (out, foreign)
}

fn flush(out: &mut Vec<u8>, bits: u32, count: usize) {
    match count {
        2 => out.push((bits >> 4) as u8),
        3 => out.extend_from_slice(&[(bits >> 10) as u8, (bits >> 2) as u8]),
        _ => {}
    }
}

pub(super) fn quoted_printable(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let end = line.len() - line_end(line);
        // White space before the end of a line was added on the way.
        let content = line[..end].trim_ascii_end();
        match content.strip_suffix(b"=") {
            Some(continued) => unquote(continued, &mut out),
            None => {
                unquote(content, &mut out);
                out.extend_from_slice(&line[end..]);
            }
        }
    }
    out
}

fn line_end(line: &[u8]) -> usize {
    [&b"\r\n"[..], b"\n"].iter().find(|end| line.ends_with(end)).map_or(0, |end| end.len())
}

/// What does not stand for a byte stays as it is.
pub(super) fn unquote(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = text.iter().position(|byte| *byte == b'=') {
        out.extend_from_slice(&text[..at]);
        let byte = text.get(at + 1..at + 3).and_then(hex);
        out.push(byte.unwrap_or(b'='));
        text = &text[at + if byte.is_some() { 3 } else { 1 }..];
    }
    out.extend_from_slice(text);
}

pub(super) fn hex(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let [high, low] = digits else { return None };
    Some((digit(*high)? << 4 | digit(*low)?) as u8)
}

const FOREIGN: u8 = 0xff;
const SPACE: u8 = 0xfe;
const PADDING: u8 = 0xfd;
const SEXTETS: [u8; 256] = sextets();

const fn sextets() -> [u8; 256] {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut table = [FOREIGN; 256];
    let mut value = 0;
    while value < 64 {
        table[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    table[b'=' as usize] = PADDING;
    table[b' ' as usize] = SPACE;
    table[b'\t' as usize] = SPACE;
    table[b'\r' as usize] = SPACE;
    table[b'\n' as usize] = SPACE;
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(String::from_utf8(quoted_printable(text.as_bytes())).unwrap(), expected, "{text:?}");
    }

    #[test]
    fn quoted_printable_is_read_as_far_as_it_is_that() {
        check("f=C3=BCr=\r\n x\r\n", "für x\r\n");
        check("a=\nb= \t\r\nc", "abc");
        check("a \t\r\nb=20\r\nc ", "a\r\nb \r\nc");
        check("1=1, 2=G0, =e2=82=ac, 100%=", "1=1, 2=G0, €, 100%");
        check("==3D=", "==");
    }

    #[test]
    fn base64_is_read_as_far_as_it_is_that() {
        assert_eq!(base64(b"SGVs\r\nbG8="), (b"Hello".to_vec(), 0));
        assert_eq!(base64(b"SGVsbG8"), (b"Hello".to_vec(), 0));
        assert_eq!(base64(b"SGVs*bG8=\0"), (b"Hello".to_vec(), 2));
        assert_eq!(base64(b"SGk=\r\nSGk="), (b"HiHi".to_vec(), 0));
        assert_eq!(base64(b"A"), (Vec::new(), 0));
    }

    #[test]
    fn the_name_of_an_encoding_may_be_dressed_up() {
        for name in ["base64", " BASE64 ", "\"base64\"", "base64; x=y", "Base64 (comment)"] {
            assert_eq!(Encoding::of(name), Encoding::Base64, "{name:?}");
        }
        assert_eq!(Encoding::of("Quoted-Printable"), Encoding::QuotedPrintable);
        assert_eq!(Encoding::of("8bit"), Encoding::Plain);
        assert_eq!(Encoding::of(""), Encoding::Plain);
        assert_eq!(Encoding::of("x-uuencode"), Encoding::Unknown);
    }
}
