//! The content of a message: its content headers and its parts.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{pool, words};
use crate::rng::SplitMix64;

/// Attachments that many messages share are among so many.
const SHARED: u64 = 24;

pub(super) enum Body {
    Leaf {
        /// Header lines, each with its end.
        headers: String,
        content: Vec<u8>,
    },
    Multi {
        kind: &'static str,
        boundary: String,
        parts: Vec<Body>,
        closed: Closed,
    },
}

/// Whether the last boundary is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    Yes,
    No,
}

impl Body {
    pub(super) fn leaf(headers: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Body::Leaf { headers: headers.into(), content: content.into() }
    }

    pub(super) fn multi(kind: &'static str, rng: &mut SplitMix64, parts: Vec<Body>) -> Self {
        Body::Multi { kind, boundary: format!("=_{:016x}", rng.next_u64()), parts, closed: Closed::Yes }
    }

    pub(super) fn plain(rng: &mut SplitMix64) -> Self {
        let len = 100 + rng.below(2_500) as usize;
        let text = words::text(rng, len);
        if rng.chance(1, 3) {
            let text = text.replacen("and", "und f=C3=BCr =3D", 2);
            return Body::leaf(
                "Content-Type: text/plain; charset=UTF-8\r\nContent-Transfer-Encoding: quoted-printable\r\n",
                text,
            );
        }
        Body::leaf("Content-Type: text/plain; charset=\"us-ascii\"\r\nContent-Transfer-Encoding: 7bit\r\n", text)
    }

    pub(super) fn html(rng: &mut SplitMix64) -> Self {
        let len = 200 + rng.below(3_000) as usize;
        let text = words::text(rng, len).replace("\r\n\r\n", "</p>\r\n<p>");
        Body::encoded(
            "Content-Type: text/html; charset=UTF-8\r\n",
            format!("<!DOCTYPE html>\r\n<html><body><p>{text}</p></body></html>\r\n").as_bytes(),
        )
    }

    pub(super) fn alternative(rng: &mut SplitMix64) -> Self {
        let parts = vec![Body::plain(rng), Body::html(rng)];
        Body::multi("alternative", rng, parts)
    }

    pub(super) fn calendar(rng: &mut SplitMix64) -> Self {
        let event = format!(
            "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nUID:{:016x}@example.net\r\n\
             DTSTART:20240102T090000Z\r\nSUMMARY:Meeting\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
            rng.next_u64()
        );
        let invite = Body::leaf("Content-Type: text/calendar; charset=UTF-8; method=REQUEST\r\n", event.clone());
        let file = Body::encoded(
            "Content-Type: application/ics; name=\"invite.ics\"\r\nContent-Disposition: attachment; filename=\"invite.ics\"\r\n",
            event.as_bytes(),
        );
        let parts = vec![Body::plain(rng), Body::html(rng), invite];
        let parts = vec![Body::multi("alternative", rng, parts), file];
        Body::multi("mixed", rng, parts)
    }

    pub(super) fn with_attachments(rng: &mut SplitMix64, sizes: &[usize]) -> Self {
        let mut parts = vec![if rng.chance(1, 2) { Body::plain(rng) } else { Body::alternative(rng) }];
        parts.extend(sizes.iter().map(|size| Body::attachment(rng, *size)));
        Body::multi("mixed", rng, parts)
    }

    /// A picture within the text, which names it.
    pub(super) fn inline_image(rng: &mut SplitMix64) -> Self {
        let (id, noise_seed) = (rng.next_u64(), rng.next_u64());
        let page = format!("<html><body><p>See below</p><img src=\"cid:{id:016x}@example.net\"></body></html>\r\n");
        let html = Body::leaf("Content-Type: text/html; charset=UTF-8\r\n", page);
        let picture = Body::encoded(
            &format!(
                "Content-Type: image/png; name=\"image001.png\"\r\nContent-ID: <{id:016x}@example.net>\r\n\
                 Content-Disposition: inline; filename=\"image001.png\"\r\n"
            ),
            &noise(noise_seed, 2_500),
        );
        let related = Body::multi("related", rng, vec![html, picture]);
        let parts = vec![Body::plain(rng), related];
        Body::multi("alternative", rng, parts)
    }

    /// Text of `bytes` bytes in all, and an attachment of so many if one is wanted.
    pub(super) fn sized(rng: &mut SplitMix64, bytes: usize, attached: Option<usize>) -> Self {
        let plain = Body::leaf("Content-Type: text/plain; charset=UTF-8\r\n", pool::text(rng, bytes / 2));
        let mut page = b"<html><body><pre>\r\n".to_vec();
        page.extend(pool::text(rng, bytes / 2));
        page.extend_from_slice(b"</pre></body></html>\r\n");
        let html = Body::leaf("Content-Type: text/html; charset=UTF-8\r\n", page);
        let text = Body::multi("alternative", rng, vec![plain, html]);
        let Some(bytes) = attached else { return text };
        let number = rng.below(1_000);
        let headers = format!(
            "Content-Type: application/pdf; name=\"file {number}.pdf\"\r\n\
             Content-Disposition: attachment; filename=\"file {number}.pdf\"\r\nContent-Transfer-Encoding: base64\r\n"
        );
        let file = Body::leaf(headers, pool::base64(rng, bytes));
        Body::multi("mixed", rng, vec![text, file])
    }

    fn attachment(rng: &mut SplitMix64, size: usize) -> Self {
        const KINDS: [(&str, &str); 4] = [
            ("application/pdf", "pdf"),
            ("image/png", "png"),
            ("application/octet-stream", "bin"),
            ("application/zip", "zip"),
        ];
        let (kind, ending) = KINDS[rng.below(KINDS.len() as u64) as usize];
        let (content, number) = if size < 20_000 && rng.chance(1, 3) {
            let number = rng.below(SHARED);
            (noise(number, 2_000 + number as usize * 300), number)
        } else {
            let number = rng.next_u64();
            (noise(number, size), number % 1_000)
        };
        let name = match number % 8 {
            0 => format!("=?UTF-8?Q?=C3=9Cbersicht_{number}.{ending}?="),
            1 => format!("a name; with, everything {number}.{ending}"),
            _ => format!("file {number}.{ending}"),
        };
        Body::encoded(
            &format!(
                "Content-Type: {kind}; name=\"{name}\"\r\nContent-Disposition: attachment; filename=\"{name}\"\r\n"
            ),
            &content,
        )
    }

    /// A leaf in base64.
    pub(super) fn encoded(headers: &str, content: &[u8]) -> Self {
        let text = STANDARD.encode(content);
        let mut lines = Vec::with_capacity(text.len() + text.len() / 38 + 2);
        for line in text.as_bytes().chunks(76) {
            lines.extend_from_slice(line);
            lines.extend_from_slice(b"\r\n");
        }
        Body::leaf(format!("{headers}Content-Transfer-Encoding: base64\r\n"), lines)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Body::Leaf { headers, content } => {
                out.extend_from_slice(headers.as_bytes());
                out.extend_from_slice(b"\r\n");
                out.extend_from_slice(content);
            }
            Body::Multi { kind, boundary, parts, closed } => {
                let head = format!("Content-Type: multipart/{kind}; boundary=\"{boundary}\"\r\n\r\n");
                out.extend_from_slice(head.as_bytes());
                for part in parts {
                    out.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
                    part.write(out);
                    out.extend_from_slice(b"\r\n");
                }
                if *closed == Closed::Yes {
                    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
                }
            }
        }
    }
}

/// Bytes that no compression makes smaller.
pub(super) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = SplitMix64::new(seed);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
