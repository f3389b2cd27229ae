//! Mail made to exhaust whoever reads it. A test has two megabytes of stack, as a worker of the runtime has; what takes
//! more than linear time does not end.

use proptest::prelude::*;

use super::*;

const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

#[test]
fn fifty_thousand_nested_mails_are_one_file() {
    let mail = read("Content-Type: message/rfc822\r\n\r\n".repeat(50_000).as_bytes());
    assert_eq!(attachments(&mail), [("0", "message/rfc822", "-")]);
    assert_eq!(mail.error, None);
}

#[test]
fn two_hundred_thousand_nested_multiparts_are_not_followed() {
    let nested: String =
        (0..200_000).map(|n| format!("Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n")).collect();
    let mail = read(nested.as_bytes());
    assert_eq!(mail.error.as_deref(), Some("nested too deeply; unterminated multipart"));
    assert!(mail.attachments.is_empty());
}

#[test]
fn every_multipart_with_the_same_boundary_is_one_part() {
    let mail = read("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n".repeat(50_000).as_bytes());
    assert!(mail.error.unwrap().contains("too many parts"));
}

#[test]
fn a_hundred_thousand_files_are_cut_off() {
    let part = "--b\r\nContent-Disposition: attachment; filename=a\r\n\r\nx\r\n";
    let mail = read(format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n{}", part.repeat(100_000)).as_bytes());
    assert_eq!((mail.attachments.len(), mail.error.as_deref()), (999, Some("too many parts")));
}

#[test]
fn multiparts_that_hide_their_boundary_are_not_searched_again_and_again() {
    let part = "--b\r\nContent-Type: multipart/mixed\r\n\r\n";
    let rest = "x\r\n".repeat(1_000_000);
    let mail = read(format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n{}{rest}", part.repeat(900)).as_bytes());
    assert_eq!(mail.error.as_deref(), Some("multipart without a boundary; unterminated multipart"));
}

#[test]
fn lines_that_look_like_boundaries_cost_no_more_than_others() {
    let open: String =
        (0..60).map(|n| format!("Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n")).collect();
    let mail = read(format!("{open}\r\n{}", "--b\r\n".repeat(500_000)).as_bytes());
    assert_eq!(mail.body_plain.map(|body| body.len()), Some(2_500_000));
}

#[test]
fn an_endless_header_is_cut() {
    let long = "x".repeat(2 * 1024 * 1024);
    for header in [
        format!("Subject: {long}\r\n"),
        format!("{long}: a\r\n"),
        "A: 1\r\n".repeat(1_000_000),
        format!("To: {}\r\n", "a@b, ".repeat(200_000)),
        format!("To: {}\r\n", "(".repeat(1_000_000)),
        format!("To: {}\r\n", "a:".repeat(500_000)),
        format!("Subject: {}\r\n", "=?utf-8?Q?x ".repeat(100_000)),
        format!("Subject: {}\r\n", "=?utf-8?Q?x?= ".repeat(100_000)),
        format!("Content-Type: a/b; {}\r\n", "name*0=x; ".repeat(100_000)),
        format!("Content-Type: a/b{}\r\n", ";=".repeat(500_000)),
        format!("Date: {}\r\n", "(".repeat(1_000_000)),
    ] {
        let mail = read(format!("{header}\r\n").as_bytes());
        let kept: usize = mail.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert!(kept <= 2 * 1024 * 1024, "{}", &header[..20]);
        assert!(mail.error.unwrap().starts_with("header too long"), "{}", &header[..20]);
    }
}

#[test]
fn long_texts_are_cut_between_characters() {
    let long = "€".repeat(2_000_000);
    let mail = mail(&["Subject: a", "", &long]);
    let body = mail.body_plain.unwrap();
    assert!(body.len() <= TEXT_BYTES_MAX && body.len() > TEXT_BYTES_MAX - 3);
    assert_eq!(mail.error.as_deref(), Some("text too long"));
    let part = format!("--b\r\n\r\n{}\r\n", "x".repeat(1_000_000));
    let many = read(format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n{}--b--", part.repeat(9)).as_bytes());
    assert_eq!(many.body_plain.map(|body| body.len()), Some(TEXT_BYTES_MAX));
    assert_eq!(many.error.as_deref(), Some("text too long"));
}

/// What means something to a reader of mail.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "Subject: ", "From: ", "To: ", "Date: ", "Message-ID: <", "Content-Type: ", "Content-Disposition: ",
    "Content-Transfer-Encoding: ", "Content-ID: <1>", "multipart/mixed", "multipart/digest", "message/rfc822",
    "text/html", "; boundary=b", "; boundary=\"b c\"", "; charset=", "utf-8", "utf-7", "utf-16", "iso-2022-jp",
    "gb18030", "big5", "hz-gb-2312", "koi8-r", "x-foo", "; name=", "; filename*0*=utf-8''", "; filename*1=",
    "attachment", "inline", "base64", "quoted-printable", "--b", "--b--", "--b c", "\r\n", "\r\n\r\n", "\n", "\r",
    " ", "\t", "=?utf-8?Q?", "=?gb18030?B?", "?=", "=", "==", "%", "'", "\"", "\\", "(", ")", "<", ">", ",", ";",
    ":", "@", "a@b", "1 Jan 2024 10:00:00 +0100", "99", "-", "+", "\0", "ö", "\u{1b}$B", "~{", "+AKM",
];

fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(WORDS).prop_map(|text| text.as_bytes().to_vec());
    prop_oneof![6 => known, 1 => prop::collection::vec(any::<u8>(), 1..6)]
}

fn is_bounded(mail: &Mail, raw: &[u8]) -> bool {
    let files: usize = mail.attachments.iter().map(|file| file.content.len()).sum();
    let texts = [&mail.body_plain, &mail.body_html, &mail.subject];
    let strings = texts.into_iter().flatten().chain(mail.headers.iter().flat_map(|(name, value)| [name, value]));
    let length: usize = strings.clone().map(String::len).sum();
    files <= raw.len() && length <= 16 * raw.len() + 64 && strings.clone().all(|text| !text.contains('\0'))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_break_the_reader(raw: Vec<u8>) {
        prop_assert!(is_bounded(&read(&raw), &raw));
    }

    #[test]
    fn no_mail_breaks_the_reader(pieces in prop::collection::vec(piece(), 0..60)) {
        let raw = pieces.concat();
        prop_assert!(is_bounded(&read(&raw), &raw));
    }
}
