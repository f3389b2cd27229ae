//! Bytes to text. What is in no known charset is not thrown away: it is read as UTF-8, and what is not that as
//! windows-1252, which gives every byte a character.

use mail_parser::decoders::charsets::map::charset_decoder;

/// What declares itself as one of these is often something else; the bytes show whether it is.
const UTF_8: [&str; 7] = ["utf-8", "utf8", "us-ascii", "ascii", "ansi_x3.4-1968", "unicode-1-1-utf-8", "utf-8mb4"];

/// None for a charset that is not known.
pub(super) fn decode(bytes: &[u8], charset: &str) -> Option<String> {
    if UTF_8.iter().any(|name| charset.eq_ignore_ascii_case(name)) {
        return Some(guess(bytes));
    }
    let text = charset_decoder(charset.as_bytes())?(bytes);
    // All that some charsets are decoded to, among them ISO-2022-KR: browsers refuse them, and with them the tables.
    let is_refused = text == "\u{fffd}" && bytes.len() > 1;
    (!is_refused).then(|| clean(text))
}

pub(super) fn guess(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| windows_1252(*byte)));
    }
    clean(text)
}

/// Databases cannot hold a NUL.
pub(super) fn clean(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

fn windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        other => char::from(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_a_charset_is_utf_8_or_windows_1252() {
        assert_eq!(guess("Köln €".as_bytes()), "Köln €");
        assert_eq!(guess(b"K\xf6ln \x80 \x81"), "Köln € \u{81}");
        assert_eq!(guess("K\u{f6}ln".as_bytes()), "Köln");
        assert_eq!(guess(b"\xc3\xb6 and \xf6"), "ö and ö", "one broken byte does not spoil the rest");
    }

    #[test]
    fn known_charsets_are_decoded_and_others_are_not() {
        assert_eq!(decode(b"\xf0\xd2\xc9\xd7\xc5\xd4", "KOI8-R").as_deref(), Some("Привет"));
        assert_eq!(decode(b"\x1b$B$3$s\x1b(B", "iso-2022-jp").as_deref(), Some("こん"));
        assert_eq!(decode(b"K\xf6ln", "utf-8").as_deref(), Some("Köln"));
        assert_eq!(decode(b"a\0b", "iso-8859-1").as_deref(), Some("a\u{fffd}b"));
        assert_eq!(decode(b"abc", "x-foo"), None);
        assert_eq!(decode(b"\x1b$)C\x0e0!\x0f", "iso-2022-kr"), None);
        assert_eq!(decode(b"", ""), None);
    }
}
