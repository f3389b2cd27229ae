//! The `raw` field of a message: the mail's bytes in base64, in whichever alphabet and with or without padding.

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

const CONFIG: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, CONFIG);
const PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);

/// Where it breaks is not told: the text is somebody's mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the raw message is not base64")]
pub struct NotBase64;

/// Padding is optional, white space ignored, and both alphabets are read, even mixed. Text that was cut off within a
/// byte is refused.
pub fn decode(text: &str) -> Result<Vec<u8>, NotBase64> {
    // What Google sends passes at once.
    URL.decode(text).or_else(|_| PLAIN.decode(normal(text))).map_err(|_| NotBase64)
}

/// As [`decode`], over the text itself; says how many bytes it has become.
pub(super) fn decode_in_place(text: &mut [u8]) -> Result<usize, NotBase64> {
    let end = text.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    if !text[..end].chunks(PIECE).all(is_plain) {
        let bytes = decode(str::from_utf8(text).map_err(|_| NotBase64)?)?;
        text[..bytes.len()].copy_from_slice(&bytes);
        return Ok(bytes.len());
    }
    let (mut read, mut written) = (0, 0);
    let mut piece = [0; PIECE];
    while read < text.len() {
        let len = PIECE.min(text.len() - read);
        piece[..len].copy_from_slice(&text[read..read + len]);
        read += len;
        // What is written never reaches what is still to be read, but it may reach what was copied.
        written += URL.decode_slice(&piece[..len], &mut text[written..]).map_err(|_| NotBase64)?;
    }
    Ok(written)
}

/// Whether it is what Google sends. Without a way out of it such a loop takes many bytes at once.
fn is_plain(text: &[u8]) -> bool {
    text.iter().fold(true, |is_plain, byte| is_plain & (byte.is_ascii_alphanumeric() | matches!(byte, b'-' | b'_')))
}

/// Whole groups of four characters.
const PIECE: usize = 8 << 10;

fn normal(text: &str) -> Vec<u8> {
    let bytes = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
    bytes
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_alphabets_are_read_with_and_without_padding() {
        for text in ["-_8_Pw", "-_8_Pw==", "+/8/Pw", "+/8/Pw==", "+_8/Pw", " -_\r\n8_\tPw=\n="] {
            assert_eq!(decode(text), Ok(vec![0xfb, 0xff, 0x3f, 0x3f]), "{text:?}");
        }
        assert_eq!(decode(""), Ok(Vec::new()));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["A", "AAAAA", "AA=A", "====", "AA*A", "AA\u{e9}A", "AB", "AAAA=", "AA\0A"] {
            assert_eq!(decode(text), Err(NotBase64), "{text:?}");
        }
    }

    fn in_place(text: &str) -> Result<Vec<u8>, NotBase64> {
        let mut buffer = text.as_bytes().to_vec();
        let len = decode_in_place(&mut buffer)?;
        buffer.truncate(len);
        Ok(buffer)
    }

    #[test]
    fn long_texts_are_decoded_over_themselves() {
        for len in [3 * PIECE / 4 - 1, 3 * PIECE / 4, 3 * PIECE / 4 + 1, 5 * PIECE] {
            let bytes: Vec<u8> = (0..len).map(|at| ((at * 31) >> 3) as u8).collect();
            for text in [URL.encode(&bytes), PLAIN.encode(&bytes)] {
                assert_eq!(in_place(&text), Ok(bytes.clone()), "{len}");
            }
        }
    }

    proptest! {
        #[test]
        fn over_itself_a_text_becomes_the_same_or_nothing(text in "[A-Za-z0-9+/=_ -]{0,12}") {
            prop_assert_eq!(in_place(&text), decode(&text));
        }

        #[test]
        fn what_was_encoded_is_read_back(bytes: Vec<u8>, wrap in 1usize..80) {
            for text in [URL.encode(&bytes), PLAIN.encode(&bytes)] {
                prop_assert_eq!(decode(&text), Ok(bytes.clone()));
                prop_assert_eq!(decode(text.trim_end_matches('=')), Ok(bytes.clone()));
                prop_assert_eq!(in_place(&text), Ok(bytes.clone()));
                prop_assert_eq!(in_place(text.trim_end_matches('=')), Ok(bytes.clone()));
                let lines: Vec<_> = text.as_bytes().chunks(wrap).map(|line| str::from_utf8(line).unwrap()).collect();
                prop_assert_eq!(decode(&lines.join("\r\n")), Ok(bytes.clone()));
            }
        }
    }
}
