//! Mail as it should not be, and as every old mailbox has it.

use super::*;

#[test]
fn an_ordinary_mail_is_read() {
    let mail = mail(&[
        "Message-ID: <1@example.com>",
        "Date: Tue, 2 Jan 2024 10:00:00 +0100",
        "From: Ann B <ann@Example.com>",
        "To: Cid <cid@example.net>, d@example.net",
        "Cc: e@example.net",
        "Bcc: f@example.net",
        "Subject: Hello",
        "",
        "Text",
        "",
    ]);
    assert_eq!(mail.rfc_message_id.as_deref(), Some("1@example.com"));
    assert_eq!(mail.from, Some(Address { name: Some("Ann B".into()), email: "ann@example.com".into() }));
    assert_eq!(mail.to, ["cid@example.net", "d@example.net"]);
    assert_eq!((mail.cc, mail.bcc), (vec!["e@example.net".into()], vec!["f@example.net".into()]));
    assert_eq!(mail.subject.as_deref(), Some("Hello"));
    assert_eq!(mail.sent_at, Some(1_704_186_000_000));
    assert_eq!((mail.body_plain.as_deref(), mail.body_html), (Some("Text\r\n"), None));
    assert_eq!((mail.headers.len(), &mail.headers[0]), (7, &("Message-ID".into(), "<1@example.com>".into())));
    assert_eq!((mail.attachments, mail.error), (vec![], None));
}

#[test]
fn what_is_missing_is_none() {
    let mail = mail(&["X: 1", "", ""]);
    assert_eq!((mail.rfc_message_id, mail.from, mail.subject, mail.sent_at), (None, None, None, None));
    assert_eq!((mail.to, mail.body_plain.as_deref(), mail.error), (vec![], Some(""), None));
}

#[test]
fn a_mail_without_a_header_says_so() {
    for raw in [&b""[..], b"\r\n\r\n", b"just text\r\nand more", b"\0\xff", b"\r\nbody: no\r\nx"] {
        let mail = read(raw);
        if raw.starts_with(b"\r\nbody") {
            assert_eq!(mail.headers, [("body".into(), "no".into())], "blank lines may come before the header");
            continue;
        }
        assert_eq!(mail.error.as_deref(), Some("no header"), "{raw:?}");
    }
    assert_eq!(read(b"just text\r\nand more").body_plain.as_deref(), Some("just text\r\nand more"));
}

#[test]
fn a_header_may_end_without_a_blank_line() {
    let mail = mail(&["Subject: a", "no field", "text"]);
    assert_eq!((mail.subject.as_deref(), mail.body_plain.as_deref()), (Some("a"), Some("no field\r\ntext")));
}

#[test]
fn a_line_that_is_no_field_does_not_end_the_header() {
    let mail = mail(&["From ann@example.com Mon Jan 1 10:00:00 2024", "Subject: a", "slip", "To: b@c", "", "text"]);
    assert_eq!((mail.subject.as_deref(), mail.to), (Some("a"), vec!["b@c".into()]));
    assert_eq!((mail.body_plain.as_deref(), mail.error), (Some("text"), None));
}

#[test]
fn bare_line_feeds_are_line_ends() {
    let raw = b"Subject: a\n b\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\none\n--x\n\ntwo\n--x--\n";
    let mail = read(raw);
    assert_eq!((mail.subject.as_deref(), mail.body_plain.as_deref()), (Some("a b"), Some("one\n\ntwo")));
    assert_eq!(mail.error, None);
}

#[test]
fn subjects_are_decoded_unfolded_and_never_lost() {
    for (raw, expected) in [
        (&b"=?utf-8?Q?Gr=C3=BC=C3=9Fe?=\r\n =?utf-8?B?IGF1cw==?= Ulm"[..], "Grüße aus Ulm"),
        (b"K\xc3\xb6ln", "Köln"),
        (b"K\xf6ln \x80", "Köln €"),
        (b"=?x-unknown?Q?K=F6ln?=", "Köln"),
        (b"=?iso-2022-jp?B?GyRCJDMkcxsoQg==?=", "こん"),
        (b"=?gb18030?B?xOO6ww==?=", "你好"),
        (b"long\r\n\tsubject", "long subject"),
        (b"a\0b", "a\u{fffd}b"),
        (b"", ""),
    ] {
        let mail = read(&[b"Subject: ", raw, b"\r\n\r\n"].concat());
        assert_eq!(mail.subject.as_deref(), Some(expected), "{raw:?}");
        assert_eq!((mail.headers, mail.error), (vec![("Subject".into(), expected.into())], None));
    }
}

#[test]
fn only_dates_that_can_be_are_believed() {
    for (date, expected) in [
        ("Tue, 2 Jan 2024 10:00:00 +0000", Some(1_704_189_600_000)),
        ("2 Jan 24 10:00 PST", None),
        ("Tue, 2 Jan 2024 02:00:00 PST (comment)", Some(1_704_189_600_000)),
        ("Thu, 32 Foo 2020 99:99:99 +9999", None),
        ("Fri, 31 Feb 2020 10:00:00 +0000", None),
        ("Sat, 29 Feb 2020 10:00:00 +0000", Some(1_582_970_400_000)),
        ("Mon, 1 Jan 0001 00:00:00 +0000", None),
        ("Thu, 31 Jan 20255 10:00:00 +0000", None),
        ("Tue, 02 Jan 24 10:00:00 GMT", Some(1_704_189_600_000)),
        ("Sun, 2 Jan 00 10:00:00 GMT", Some(946_807_200_000)),
        ("Mon, 1 Jan 1904 00:00:00 +0000", None),
        ("Mon, 1 Jan 2999 00:00:00 +0000", None),
        ("yesterday", None),
        ("", None),
    ] {
        assert_eq!(mail(&[&format!("Date: {date}"), "", ""]).sent_at, expected, "{date}");
    }
}

#[test]
fn ids_are_kept_as_they_are_and_the_first_of_two_counts() {
    let mail = mail(&["Message-Id:", " <a b@c>", "MESSAGE-ID: <second@x>", "Subject: 1", "Subject: 2", "", ""]);
    assert_eq!((mail.rfc_message_id.as_deref(), mail.subject.as_deref()), (Some("a b@c"), Some("1")));
    assert_eq!(super::mail(&["Message-Id: <>", "", ""]).rfc_message_id, None);
}

#[test]
fn recipients_of_several_headers_are_one_list() {
    let mail = mail(&["To: a@B, G: c@d;", "to: \"x, y\" <e@f>", " , a@b", "", ""]);
    assert_eq!(mail.to, ["a@b", "c@d", "e@f"]);
}

#[test]
fn bodies_are_decoded_by_their_charset_or_without_loss() {
    for (charset, body, expected, error) in [
        ("; charset=iso-2022-jp", &b"\x1b$B$3$s$K$A$O\x1b(B, Ann"[..], "こんにちは, Ann", None),
        ("; charset=\"KOI8-R\"", b"\xf0\xd2\xc9\xd7\xc5\xd4", "Привет", None),
        ("; charset=shift_jis", b"\x83n\x83\x8d\x81[", "ハロー", None),
        ("; charset=utf-16le", b"a\0b\0", "ab", None),
        ("; charset=utf-7", b"+AKM-1", "£1", None),
        ("; charset=utf-8", b"K\xf6ln", "Köln", None),
        ("; charset=us-ascii", b"K\xc3\xb6ln", "Köln", None),
        ("", b"Gr\xfc\xdfe\0", "Grüße\u{fffd}", None),
        ("", b"\xef\xbb\xbfmarked", "marked", None),
        ("; charset=X-Foo<b>", b"K\xf6ln", "Köln", Some("unknown charset x-foob")),
        ("; charset=iso-2022-kr", b"\x1b$)C\x0e0!\x0f", "\x1b$)C\x0e0!\x0f", Some("unknown charset iso-2022-kr")),
        ("; =; charset\r\n ;;\"unclosed", b"text", "text", None),
    ] {
        let header = format!("Content-Type: text/plain{charset}\r\n\r\n");
        let mail = read(&[header.as_bytes(), body].concat());
        assert_eq!((mail.body_plain.as_deref(), mail.error.as_deref()), (Some(expected), error), "{charset}");
    }
}

#[test]
fn a_content_type_that_is_none_is_text() {
    for garbage in ["", "text", "text/plain/x", ";;;", "\"", "k\u{f6}ln", "=?utf-8?Q?text?="] {
        let mail = mail(&[&format!("Content-Type: {garbage}"), "", "text"]);
        assert_eq!((mail.body_plain.as_deref(), mail.error), (Some("text"), None), "{garbage}");
    }
}

#[test]
fn transfer_encodings_are_read_as_far_as_they_go() {
    let encoded = |encoding: &str, body: &str| mail(&[&format!("Content-Transfer-Encoding: {encoding}"), "", body]);
    assert_eq!(encoded("quoted-printable", "f=C3=BCr=\r\n x=").body_plain.as_deref(), Some("für x"));
    assert_eq!(encoded("BASE64", "SGVsbG8=\r\nSGk=").body_plain.as_deref(), Some("HelloHi"));
    let broken = encoded("base64", "SGVs*bG8=");
    assert_eq!((broken.body_plain.as_deref(), broken.error.as_deref()), (Some("Hello"), Some("broken base64")));
    let unknown = encoded("x-uuencode", "begin 644 a");
    let expected = (Some("begin 644 a"), Some("unknown transfer encoding"));
    assert_eq!((unknown.body_plain.as_deref(), unknown.error.as_deref()), expected);
}

#[test]
fn nothing_of_a_mail_is_told_in_its_error() {
    let mail = mail(&[
        "Content-Type: multipart/mixed; boundary=secret",
        "",
        "--secret",
        "Content-Type: text/plain; charset=\"secret body\"",
        "Content-Transfer-Encoding: x-Secret",
        "",
        "Secret",
    ]);
    assert_eq!(
        mail.error.as_deref(),
        Some("unterminated multipart; unknown transfer encoding; unknown charset secretbody")
    );
}
