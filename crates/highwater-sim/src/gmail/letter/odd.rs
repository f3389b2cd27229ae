//! Mail as it should not be, and as every old mailbox has it.

mod bodies;

use super::body::Body;
use crate::rng::SplitMix64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Odd {
    NoMessageId,
    SameMessageId,
    NoDate,
    AbsurdDate,
    NoFrom,
    GroupAddress,
    InternationalDomain,
    EightBitHeaders,
    RepeatedHeaders,
    LongHeaders,
    NoHeaders,
    HeadersOnly,
    Nested,
    Deep,
    Signed,
    Bounce,
    Iso2022Jp,
    Koi8R,
    Bare8Bit,
    FalseUtf8,
    UnknownCharset,
    Nul,
    Unclosed,
    BadContentType,
    BadBase64,
    Rfc2231,
    EvilFilename,
    WinmailDat,
    Empty,
}

impl Odd {
    pub(super) const ALL: [Odd; 29] = [
        Odd::NoMessageId,
        Odd::SameMessageId,
        Odd::NoDate,
        Odd::AbsurdDate,
        Odd::NoFrom,
        Odd::GroupAddress,
        Odd::InternationalDomain,
        Odd::EightBitHeaders,
        Odd::RepeatedHeaders,
        Odd::LongHeaders,
        Odd::NoHeaders,
        Odd::HeadersOnly,
        Odd::Nested,
        Odd::Deep,
        Odd::Signed,
        Odd::Bounce,
        Odd::Iso2022Jp,
        Odd::Koi8R,
        Odd::Bare8Bit,
        Odd::FalseUtf8,
        Odd::UnknownCharset,
        Odd::Nul,
        Odd::Unclosed,
        Odd::BadContentType,
        Odd::BadBase64,
        Odd::Rfc2231,
        Odd::EvilFilename,
        Odd::WinmailDat,
        Odd::Empty,
    ];

    /// `None` where only the head is odd.
    pub(super) fn body(self, rng: &mut SplitMix64) -> Option<Body> {
        bodies::of(self, rng)
    }

    /// The other side of the correspondence.
    pub(super) const fn person(self) -> Option<&'static str> {
        match self {
            Odd::GroupAddress => {
                Some("\"The team, all of it\": \"Adler, Bea\" <bea@example.org>, (a comment) carlo@example.net;")
            }
            Odd::InternationalDomain => Some("=?UTF-8?B?SsO8cmdlbiBNw7xsbGVy?= <j\u{fc}rgen@b\u{fc}cher.example>"),
            _ => None,
        }
    }

    /// Headers that come before the MIME ones.
    pub(super) fn extra_headers(self, rng: &mut SplitMix64, out: &mut Vec<u8>) {
        match self {
            Odd::Bare8Bit => out.extend_from_slice(b"X-Subject: K\xF6ln \xE9t\xE9\r\n"),
            Odd::EightBitHeaders => out.extend_from_slice(b"Subject: Gr\xFC\xDFe \x80\xFF =?UTF-8?Q?half_an_=C3?= word\r\n"),
            Odd::RepeatedHeaders => out.extend_from_slice(
                b"Subject: another subject\r\nFrom: somebody else <else@example.org>\r\nDate: Sat, 1 Jan 2000 00:00:00 +0000\r\n\
                  Message-ID: <second@example.net>\r\nthis line has no colon\r\nX Space: in a name\r\n: no name\r\n",
            ),
            Odd::LongHeaders => {
                out.extend_from_slice(b"References:");
                for _ in 0..120 {
                    out.extend_from_slice(format!("\r\n\t<{:016x}@example.net>", rng.next_u64()).as_bytes());
                }
                let long = "x".repeat(3_000);
                out.extend_from_slice(format!("\r\nX-Long: {long}\r\n").as_bytes());
            }
            _ => {}
        }
    }

    /// What is left of a message.
    pub(super) fn cut(self, mut raw: Vec<u8>) -> Vec<u8> {
        let end = raw.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(raw.len());
        match self {
            Odd::NoHeaders => raw.split_off((end + 4).min(raw.len())),
            Odd::HeadersOnly => {
                raw.truncate(end);
                raw
            }
            _ => raw,
        }
    }
}
