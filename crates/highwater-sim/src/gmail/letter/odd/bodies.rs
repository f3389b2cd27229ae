//! The bodies of odd mail.

use super::{
    super::{
        body::{Body, Closed, noise},
        words,
    },
    Odd,
};
use crate::rng::SplitMix64;

/// More levels than most parsers go down.
const LEVELS: usize = 60;

pub(super) fn of(odd: Odd, rng: &mut SplitMix64) -> Option<Body> {
    Some(match odd {
        Odd::NoHeaders | Odd::HeadersOnly => Body::plain(rng),
        Odd::Nested => nested(rng),
        Odd::Deep => deep(rng),
        Odd::Signed => signed(rng),
        Odd::Bounce => bounce(rng),
        Odd::Iso2022Jp => charset("ISO-2022-JP", "7bit", b"\x1b$B$3$s$K$A$O\x1b(B, Ann\r\n\x1b$B@$3&\x1b(B\r\n"),
        Odd::Koi8R => charset("KOI8-R", "8bit", b"\xF0\xD2\xC9\xD7\xC5\xD4, Ann!\r\n"),
        Odd::Bare8Bit => Body::leaf("", b"Gr\xFC\xDFe aus K\xF6ln, ohne jede Angabe\r\n\x00\x80\xFF\r\n".to_vec()),
        Odd::FalseUtf8 => charset("UTF-8", "8bit", b"caf\xE9 \xC3 \xED\xA0\x80 \xF0\x9F\x98\r\n"),
        Odd::UnknownCharset => charset("x-unknown-8bit", "x-uuencode", b"who knows: \xA4\xA5\xA6\r\n"),
        Odd::Nul => charset("us-ascii", "binary", b"one\x00two\r\n\x00\x00\nbare LF\rbare CR\r\n"),
        Odd::Unclosed => unclosed(rng),
        Odd::BadContentType => Body::leaf("Content-Type: text/plain; =; charset\r\n ;;\"unclosed\r\n", text(rng)),
        Odd::BadBase64 => Body::leaf(
            "Content-Type: application/pdf; name=\"broken.pdf\"\r\nContent-Transfer-Encoding: base64\r\n",
            b"JVBERi0xLjQ*!!!\r\n%%% not base64 at all\r\nAAA".to_vec(),
        ),
        Odd::Rfc2231 => with_file(
            rng,
            "Content-Type: application/pdf\r\nContent-Disposition: attachment;\r\n \
             filename*0*=UTF-8''%C3%9Cbersicht%20;\r\n filename*1*=f%C3%BCr%202024;\r\n filename*2=\".pdf\"\r\n",
        ),
        Odd::EvilFilename => with_file(
            rng,
            "Content-Type: application/octet-stream; name=\"../../../etc/passwd\"\r\nContent-Disposition: attachment;\r\n \
             filename=\"..\\\\..\\\\CON.txt:stream\"\r\n",
        ),
        Odd::WinmailDat => winmail(rng),
        Odd::Empty => Body::leaf("Content-Type: text/plain\r\n", Vec::new()),
        _ => return None,
    })
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

fn deep(rng: &mut SplitMix64) -> Body {
    (0..LEVELS).fold(Body::plain(rng), |inner, _| Body::multi("mixed", rng, vec![inner]))
}

fn signed(rng: &mut SplitMix64) -> Body {
    let signature = Body::leaf(
        "Content-Type: application/pgp-signature; name=\"signature.asc\"\r\n",
        "-----BEGIN PGP SIGNATURE-----\r\n\r\niQIzBAEBCgAdFiEE\r\n-----END PGP SIGNATURE-----\r\n",
    );
    let parts = vec![Body::plain(rng), signature];
    Body::multi("signed", rng, parts)
}

fn bounce(rng: &mut SplitMix64) -> Body {
    let status = "Reporting-MTA: dns; mx.example.net\r\n\r\nFinal-Recipient: rfc822; gone@example.org\r\nAction: failed\r\n\
        Status: 5.1.1\r\n";
    let status = Body::leaf("Content-Type: message/delivery-status\r\n", status);
    let head = Body::leaf("Content-Type: text/rfc822-headers\r\n", format!("Subject: {}\r\n", words::subject(rng)));
    let parts = vec![Body::plain(rng), status, head];
    Body::multi("report", rng, parts)
}

fn unclosed(rng: &mut SplitMix64) -> Body {
    let parts = vec![Body::plain(rng), Body::html(rng)];
    Body::Multi { kind: "mixed", boundary: format!("{:08x}", rng.next_u64() >> 32), parts, closed: Closed::No }
}

fn with_file(rng: &mut SplitMix64, headers: &str) -> Body {
    let file = Body::encoded(headers, &noise(rng.next_u64(), 700));
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
