//! What another program put into a mail is read out of it.

use mail_builder::{MessageBuilder, headers::address::Address as Built};
use proptest::{collection::vec, prelude::*, string::string_regex};

use super::*;

#[derive(Clone, Debug)]
struct Letter {
    subject: String,
    from: (String, String),
    to: Vec<(String, String)>,
    plain: Option<String>,
    html: Option<String>,
    files: Vec<(String, Vec<u8>)>,
    sent_at: i64,
}

/// What is on one line and has no space at its ends.
fn line() -> impl Strategy<Value = String> {
    string_regex("[!-~¡-ƿΑ-ωЀ-ӿ一-龥😀-😿]([ -~¡-ƿΑ-ωЀ-ӿ一-龥😀-😿]{0,120}[!-~¡-ƿΑ-ωЀ-ӿ一-龥😀-😿])?").unwrap()
}

fn name() -> impl Strategy<Value = String> {
    string_regex("[a-zA-ZÀ-ÿА-я一-龥]([a-zA-ZÀ-ÿА-я一-龥 ,.\"()]{0,60}[a-zA-ZÀ-ÿА-я一-龥])?").unwrap()
}

fn person() -> impl Strategy<Value = (String, String)> {
    (name(), string_regex("[a-zA-Z0-9._+-]{0,10}[a-z]@[a-z0-9-]{1,10}\\.com").unwrap())
}

fn text() -> impl Strategy<Value = String> {
    vec(line(), 1..8).prop_map(|lines| lines.join("\r\n"))
}

fn letter() -> impl Strategy<Value = Letter> {
    let bodies = prop_oneof![
        text().prop_map(|plain| (Some(plain), None)),
        text().prop_map(|html| (None, Some(html))),
        (text(), text()).prop_map(|(plain, html)| (Some(plain), Some(html))),
    ];
    let files = vec((line(), vec(any::<u8>(), 0..300)), 0..4);
    (line(), person(), vec(person(), 1..5), bodies, files, 0i64..4_000_000_000).prop_map(
        |(subject, from, to, (plain, html), files, sent_at)| Letter { subject, from, to, plain, html, files, sent_at },
    )
}

fn build(letter: &Letter) -> Vec<u8> {
    let to = letter.to.iter().map(|(name, email)| Built::new_address(Some(name.as_str()), email.as_str())).collect();
    let mut builder = MessageBuilder::new()
        .message_id("id@example.com")
        .date(letter.sent_at)
        .from((letter.from.0.as_str(), letter.from.1.as_str()))
        .to(Built::new_list(to))
        .subject(letter.subject.as_str());
    if let Some(plain) = &letter.plain {
        builder = builder.text_body(plain.as_str());
    }
    if let Some(html) = &letter.html {
        builder = builder.html_body(html.as_str());
    }
    for (name, content) in &letter.files {
        builder = builder.attachment("application/octet-stream", name.as_str(), content.as_slice());
    }
    builder.write_to_vec().unwrap()
}

proptest! {
    #[test]
    fn what_was_built_is_read_back(letter in letter()) {
        let raw = build(&letter);
        let mail = read(&raw);
        let shown = String::from_utf8_lossy(&raw).into_owned();
        prop_assert_eq!(mail.error, None, "{}", shown);
        prop_assert_eq!(mail.subject.as_deref(), Some(letter.subject.as_str()), "{}", shown);
        prop_assert_eq!(mail.rfc_message_id.as_deref(), Some("id@example.com"));
        prop_assert_eq!(mail.sent_at, Some(letter.sent_at * 1_000));
        let (name, email) = letter.from;
        prop_assert_eq!(mail.from, Some(Address { name: Some(name), email }), "{}", shown);
        let mut to: Vec<String> = Vec::new();
        for (_, email) in letter.to {
            if !to.contains(&email) { to.push(email) }
        }
        prop_assert_eq!(mail.to, to, "{}", shown);
        prop_assert_eq!(mail.body_plain, letter.plain, "{}", shown);
        prop_assert_eq!(mail.body_html, letter.html, "{}", shown);
        let files: Vec<_> =
            mail.attachments.into_iter().map(|file| (file.filename.unwrap_or_default(), file.content)).collect();
        prop_assert_eq!(files, letter.files, "{}", shown);
    }
}
