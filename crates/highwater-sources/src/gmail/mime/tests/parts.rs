//! Which parts are text and which are files, and how they are numbered.

use super::*;

const TEXT: [&str; 3] = ["Content-Type: text/plain", "", "text"];

fn multipart(kind: &str, parts: &[&[&str]]) -> Vec<String> {
    let boundary = format!("b{}", kind.len());
    let mut lines = vec![format!("Content-Type: multipart/{kind}; boundary={boundary}"), String::new()];
    for part in parts {
        lines.push(format!("--{boundary}"));
        lines.extend(part.iter().map(ToString::to_string));
    }
    lines.push(format!("--{boundary}--"));
    lines
}

fn lines(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

#[test]
fn parts_are_numbered_as_gmail_does() {
    let html = ["Content-Type: text/html", "", "<p>"];
    let image = ["Content-Type: image/png", "Content-Id: <logo>", "Content-Transfer-Encoding: base64", "", "iVBO"];
    let related = multipart("related", &[&html, &image]);
    let alternative = multipart("alternative", &[&TEXT, &lines(&related)]);
    let pdf = ["Content-Type: application/pdf; name=a.pdf", "", "%PDF"];
    let mail = mail(&lines(&multipart("mixed", &[&lines(&alternative), &pdf])));
    assert_eq!((mail.body_plain.as_deref(), mail.body_html.as_deref()), (Some("text"), Some("<p>")));
    assert_eq!(attachments(&mail), [("0.1.1", "image/png", "-"), ("1", "application/pdf", "a.pdf")]);
    let logo = &mail.attachments[0];
    assert_eq!((logo.content_id.as_deref(), logo.is_inline), (Some("logo"), true));
    assert_eq!(logo.content, [0x89, b'P', b'N']);
    assert!(!mail.attachments[1].is_inline);
    assert_eq!(mail.error, None);
}

#[test]
fn a_mail_that_is_one_file_has_it_as_part_0() {
    let mail =
        mail(&["Content-Type: application/pdf; name=\"a.pdf\"", "Content-Transfer-Encoding: base64", "", "JVBERg=="]);
    assert_eq!(attachments(&mail), [("0", "application/pdf", "a.pdf")]);
    assert_eq!((mail.attachments[0].content.as_slice(), mail.body_plain), (&b"%PDF"[..], None));
}

#[test]
fn a_text_that_has_a_name_is_still_what_the_mail_says() {
    let named = mail(&["Content-Type: text/plain; name=mail.txt", "", "text"]);
    assert_eq!(
        (named.body_plain.as_deref(), attachments(&named)),
        (Some("text"), vec![("0", "text/plain", "mail.txt")])
    );
    let attached = mail(&["Content-Disposition: attachment", "", "text"]);
    assert_eq!((attached.body_plain.as_deref(), attachments(&attached)), (None, vec![("0", "text/plain", "-")]));
}

#[test]
fn several_texts_have_a_blank_line_between_them() {
    let footer = ["", "footer"];
    let named = ["Content-Type: text/plain; name=notes.txt", "", "notes"];
    let html = ["Content-Type: text/html", "Content-Disposition: inline", "", "<p>"];
    let mail = mail(&lines(&multipart("mixed", &[&TEXT, &named, &html, &["", "", ""], &footer])));
    assert_eq!(mail.body_plain.as_deref(), Some("text\n\n\r\n\nfooter"));
    assert_eq!((mail.body_html.as_deref(), attachments(&mail)), (Some("<p>"), vec![("1", "text/plain", "notes.txt")]));
}

#[test]
fn files_are_bytes_whatever_their_charset() {
    let part =
        [&b"--x\r\nContent-Type: text/csv; charset=latin1; name=a.csv\r\n\r\n\xf6;\0\r\n"[..], b"\r\n--x--"].concat();
    let mail = read(&[&b"Content-Type: multipart/mixed; boundary=x\r\n\r\n"[..], &part].concat());
    assert_eq!(mail.attachments[0].content, b"\xf6;\0\r\n");
}

#[test]
fn a_mail_in_a_mail_is_one_file() {
    let inner = ["From: a@b", "Content-Type: multipart/mixed; boundary=inner", "", "--inner", "", "text", "--inner--"];
    let forwarded = [&["Content-Type: message/rfc822", "Content-Disposition: inline", ""][..], &inner].concat();
    let mail = mail(&lines(&multipart("mixed", &[&TEXT, &forwarded])));
    assert_eq!(attachments(&mail), [("1", "message/rfc822", "-")]);
    assert_eq!(mail.attachments[0].content, inner.join("\r\n").as_bytes());
    assert_eq!((mail.body_plain.as_deref(), mail.error), (Some("text"), None));
}

#[test]
fn the_parts_of_a_digest_are_mails() {
    let mail =
        mail(&lines(&multipart("digest", &[&["", "Subject: 1", "", "a"], &["Content-Type: text/plain", "", "b"]])));
    assert_eq!(attachments(&mail), [("0", "message/rfc822", "-")]);
    assert_eq!(
        (mail.attachments[0].content.as_slice(), mail.body_plain.as_deref()),
        (&b"Subject: 1\r\n\r\na"[..], Some("b"))
    );
}

#[test]
fn invitations_and_outlook_files_are_files_without_a_name() {
    let invite = ["Content-Type: text/calendar; method=REQUEST", "", "BEGIN:VCALENDAR"];
    let winmail = ["Content-Type: application/ms-tnef", "", "x"];
    let status = ["Content-Type: message/delivery-status", "", "Status: 5.0.0"];
    let image = ["Content-Type: image/png", "", "x"];
    let mail = mail(&lines(&multipart("mixed", &[&TEXT, &invite, &winmail, &status, &image])));
    assert_eq!(attachments(&mail), [("1", "text/calendar", "-"), ("2", "application/ms-tnef", "-")]);
}

#[test]
fn names_of_files_are_kept_as_they_are() {
    for (header, expected) in [
        (
            "attachment; filename*0*=UTF-8''%C3%9Cbersicht%20; filename*1*=f%C3%BCr; filename*2=\".pdf\"",
            "Übersicht für.pdf",
        ),
        ("attachment; filename=\"=?utf-8?Q?=C3=9C.pdf?=\"", "Ü.pdf"),
        ("attachment; filename=\"../../etc/passwd\"", "../../etc/passwd"),
        ("attachment; filename=\"C:\\temp\\a.txt\"", "C:\\temp\\a.txt"),
        ("attachment; filename=\"a\u{202e}fdp.exe\"", "a\u{202e}fdp.exe"),
        ("attachment; filename*=utf-8''%00.txt", "\u{fffd}.txt"),
    ] {
        let mail = mail(&[&format!("Content-Disposition: {header}"), "", "x"]);
        assert_eq!(attachments(&mail), [("0", "text/plain", expected)], "{header}");
    }
}

#[test]
fn a_multipart_that_never_ends_is_read_to_the_end() {
    let mut open = multipart("mixed", &[&TEXT, &["Content-Type: a/b; name=c", "", "half a fi"]]);
    open.pop();
    let mail = mail(&lines(&open));
    assert_eq!((mail.body_plain.as_deref(), attachments(&mail)), (Some("text"), vec![("1", "a/b", "c")]));
    assert_eq!(
        (mail.attachments[0].content.as_slice(), mail.error.as_deref()),
        (&b"half a fi"[..], Some("unterminated multipart"))
    );
}

#[test]
fn the_end_of_the_outer_is_the_end_of_the_inner() {
    let mut inner = multipart("alternative", &[&TEXT]);
    inner.pop();
    let mail = mail(&lines(&multipart("mixed", &[&lines(&inner), &["Content-Type: a/b; name=c", "", "x"]])));
    assert_eq!((mail.body_plain.as_deref(), attachments(&mail)), (Some("text"), vec![("1", "a/b", "c")]));
    assert_eq!(mail.error.as_deref(), Some("unterminated multipart"));
}

#[test]
fn a_boundary_that_begins_another_does_not_stand_for_it() {
    let mail = mail(&[
        "Content-Type: multipart/mixed; boundary=\"=_1\"",
        "",
        "--=_1",
        "Content-Type: multipart/alternative; boundary=\"=_12\"",
        "",
        "--=_12",
        "",
        "inner",
        "--=_12--",
        "--=_1 \t",
        "",
        "outer, --=_1 within, and",
        "--=_1x",
        "--=_1--",
        "epilogue",
    ]);
    assert_eq!(mail.body_plain.as_deref(), Some("inner\n\nouter, --=_1 within, and\r\n--=_1x"));
    assert_eq!(mail.error, None);
}

#[test]
fn a_multipart_without_a_boundary_shows_it_by_its_lines() {
    let told = Some("multipart without a boundary");
    let guessed = mail(&["Content-Type: multipart/mixed", "", "preamble", "--x", "", "one", "--x", "", "two", "--x--"]);
    assert_eq!((guessed.body_plain.as_deref(), guessed.error.as_deref()), (Some("one\n\ntwo"), told));
    let nested = mail(&[
        "Content-Type: multipart/mixed; boundary=x",
        "",
        "--x",
        "Content-Type: multipart/alternative",
        "",
        "lost",
        "--x",
        "",
        "found",
        "--x--",
    ]);
    assert_eq!((nested.body_plain.as_deref(), nested.error.as_deref()), (Some("found"), told));
}

#[test]
fn a_boundary_that_never_occurs_leaves_the_text() {
    let mail = mail(&["Content-Type: multipart/mixed; boundary=x", "", "--y", "", "text", "--y--"]);
    assert_eq!(
        (mail.body_plain.as_deref(), mail.error.as_deref()),
        (Some("--y\r\n\r\ntext\r\n--y--"), Some("unterminated multipart"))
    );
}

#[test]
fn parts_may_be_empty_or_all_header() {
    let mail = mail(&[
        "Content-Type: multipart/mixed; boundary=x",
        "",
        "--x",
        "--x",
        "Content-Type: a/b; name=c",
        "--x",
        "",
        "--x--",
    ]);
    assert_eq!((mail.body_plain.as_deref(), attachments(&mail)), (Some(""), vec![("1", "a/b", "c")]));
    assert_eq!(mail.error, None);
    assert!(mail.attachments[0].content.is_empty());
}
