//! Mail as it should not be, and as every old mailbox has it.

use super::{
    body::{Body, Closed, noise},
    words,
};
use crate::rng::SplitMix64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Odd {
    NoMessageId,
    SameMessageId,
    NoDate,
    AbsurdDate,
    Nested,
    Iso2022Jp,
    Koi8R,
    Bare8Bit,
    Unclosed,
    BadContentType,
    BadBase64,
    LongHeaders,
    Rfc2231,
    WinmailDat,
    Empty,
}

impl Odd {
    pub(super) const ALL: [Odd; 15] = [
        Odd::NoMessageId,
        Odd::SameMessageId,
        Odd::NoDate,
        Odd::AbsurdDate,
        Odd::Nested,
        Odd::Iso2022Jp,
        Odd::Koi8R,
        Odd::Bare8Bit,
        Odd::Unclosed,
        Odd::BadContentType,
        Odd::BadBase64,
        Odd::LongHeaders,
        Odd::Rfc2231,
        Odd::WinmailDat,
        Odd::Empty,
    ];

    /// `None` where only the head is odd.
    pub(super) fn body(self, rng: &mut SplitMix64) -> Option<Body> {
        Some(match self {
            Odd::NoMessageId | Odd::SameMessageId | Odd::NoDate | Odd::AbsurdDate | Odd::LongHeaders => return None,
            Odd::Nested => nested(rng),
            Odd::Iso2022Jp => charset("ISO-2022-JP", "7bit", b"\x1b$B$3$s$K$A$O\x1b(B, Ann\r\n\x1b$B@$3&\x1b(B\r\n"),
            Odd::Koi8R => charset("KOI8-R", "8bit", b"\xF0\xD2\xC9\xD7\xC5\xD4, Ann!\r\n"),
            Odd::Bare8Bit => Body::leaf("", b"Gr\xFC\xDFe aus K\xF6ln, ohne jede Angabe\r\n\x00\x80\xFF\r\n".to_vec()),
            Odd::Unclosed => unclosed(rng),
            Odd::BadContentType => Body::leaf("Content-Type: text/plain; =; charset\r\n ;;\"unclosed\r\n", text(rng)),
            Odd::BadBase64 => Body::leaf(
                "Content-Type: application/pdf; name=\"broken.pdf\"\r\nContent-Transfer-Encoding: base64\r\n",
                b"JVBERi0xLjQ*!!!\r\n%%% not base64 at all\r\nAAA".to_vec(),
            ),
            Odd::Rfc2231 => rfc2231(rng),
            Odd::WinmailDat => winmail(rng),
            Odd::Empty => Body::leaf("Content-Type: text/plain\r\n", Vec::new()),
        })
    }

    /// Headers that come before the MIME ones.
    pub(super) fn extra_headers(self, rng: &mut SplitMix64, out: &mut Vec<u8>) {
        match self {
            Odd::Bare8Bit => out.extend_from_slice(b"X-Subject: K\xF6ln \xE9t\xE9\r\n"),
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
}

fn text(rng: &mut SplitMix64) -> String {
    words::text(rng, 300)
}

fn charset(name: &str, encoding: &str, content: &[u8]) -> Body {
    let headers = format!("Content-Type: text/plain; charset={name}\r\nContent-Transfer-Encoding: {encoding}\r\n");
    Body::leaf(headers, content.to_vec())
}

fn nested(rng: &mut SplitMix64) -> Body {
    let mut inner =
        format!("From: {}\r\nSubject: {}\r\nMIME-Version: 1.0\r\n", words::person(rng), words::subject(rng))
            .into_bytes();
    Body::with_attachments(rng, &[900]).write(&mut inner);
    let forwarded = Body::leaf("Content-Type: message/rfc822\r\nContent-Disposition: inline\r\n", inner);
    let parts = vec![Body::plain(rng), forwarded];
    Body::multi("mixed", rng, parts)
}

fn unclosed(rng: &mut SplitMix64) -> Body {
    let parts = vec![Body::plain(rng), Body::html(rng)];
    Body::Multi { kind: "mixed", boundary: format!("{:08x}", rng.next_u64() >> 32), parts, closed: Closed::No }
}

fn rfc2231(rng: &mut SplitMix64) -> Body {
    let named = "Content-Type: application/pdf\r\nContent-Disposition: attachment;\r\n \
        filename*0*=UTF-8''%C3%9Cbersicht%20;\r\n filename*1*=f%C3%BCr%202024;\r\n filename*2=\".pdf\"\r\n";
    let file = Body::encoded(named, &noise(rng.next_u64(), 700));
    let parts = vec![Body::plain(rng), file];
    Body::multi("mixed", rng, parts)
}

fn winmail(rng: &mut SplitMix64) -> Body {
    let mut content = vec![0x78, 0x9F, 0x3E, 0x22];
    content.extend(noise(rng.next_u64(), 1_500));
    let named = "Content-Type: application/ms-tnef; name=\"winmail.dat\"\r\n\
        Content-Disposition: attachment; filename=\"winmail.dat\"\r\n";
    let parts = vec![Body::plain(rng), Body::encoded(named, &content)];
    Body::multi("mixed", rng, parts)
}
