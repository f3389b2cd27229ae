//! Transfer encodings and encoded words, read leniently.

use base64::{
    Engine as _,
    alphabet::STANDARD as ALPHABET,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Whatever is not of the alphabet is passed over.
pub(super) fn base64(text: &[u8]) -> Vec<u8> {
    let mut clean: Vec<u8> =
        text.iter().copied().filter(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')).collect();
    if clean.len() % 4 == 1 {
        clean.pop();
    }
    LENIENT.decode(clean).unwrap_or_default()
}

pub(super) fn quoted_printable(text: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text);
    while let [byte, after @ ..] = rest {
        rest = after;
        match (*byte, after) {
            (b'=', [b'\r', b'\n', after @ ..]) => rest = after,
            (b'=', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digits = [*high, *low];
                let hex = std::str::from_utf8(&digits).unwrap_or("3D");
                out.push(u8::from_str_radix(hex, 16).unwrap_or(b'='));
                rest = after;
            }
            (other, _) => out.push(other),
        }
    }
    out
}

/// One encoded word (RFC 2047) that is all of the text; anything else stays as it is.
pub(super) fn words(text: &str) -> String {
    let inner = text.strip_prefix("=?").and_then(|rest| rest.strip_suffix("?="));
    let Some((charset, rest)) = inner.and_then(|inner| inner.split_once('?')) else { return text.to_owned() };
    let bytes = match rest.split_once('?') {
        Some(("B" | "b", data)) => base64(data.as_bytes()),
        Some(("Q" | "q", data)) => quoted_printable(data.replace('_', " ").as_bytes()),
        _ => return text.to_owned(),
    };
    if charset.eq_ignore_ascii_case("iso-8859-1") {
        return bytes.into_iter().map(char::from).collect();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
