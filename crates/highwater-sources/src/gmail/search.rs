//! What of mail can be searched: subject, people, text, and the names of attachments.

use highwater_core::{
    Timestamp, Value,
    search::{Beside, Entry, Field, Searchable},
    texts,
};
use serde::Deserialize;
use serde_json::json;

use super::schema::{ATTACHMENTS, DELETED, LABELS, messages};
use crate::{html, search::Searched};

static SEARCHABLE: Searchable = Searchable {
    columns: &[
        "provider_thread_id",
        "from_email",
        "from_name",
        "to_emails",
        "cc_emails",
        "bcc_emails",
        "subject",
        "body_plain",
        "body_html",
        "internal_date",
        "raw_headers",
        LABELS,
        DELETED,
    ],
    beside: Some(Beside { table: ATTACHMENTS.name, owner: "message_id", key: "part_id", text: "filename" }),
    read,
};

/// Of one mailbox, by what its rows are called.
pub fn searched(mailbox: &str) -> Vec<Searched> {
    let stream = super::STREAM.parse().expect("a name");
    vec![Searched { stream, table: messages(mailbox), searchable: &SEARCHABLE }]
}

fn read(values: &[Value], attachments: &[String]) -> Entry {
    let [thread, email, name, to, cc, bcc, subject, plain, html, date, headers, labels, deleted] = values else {
        return Entry::default();
    };
    let mut entry = Entry {
        at: if let Value::Int(date) = date { Some(Timestamp::from_millis(*date)) } else { None },
        title: string(subject),
        author: author(string(name), string(email)),
        ..Entry::default()
    };
    entry.add(Field::Title, string(subject));
    entry.add(Field::Author, string(name));
    entry.add(Field::Author, string(email));
    // With the names, which stand nowhere else.
    let named = recipients(headers);
    let bare = || [to, cc, bcc].into_iter().flat_map(texts).collect();
    let addressees: Vec<String> = if named.is_empty() { bare() } else { named };
    addressees.into_iter().for_each(|one| entry.add(Field::Addressee, Some(one)));
    let shown = string(plain).filter(|text| !text.trim().is_empty());
    entry.add(Field::Text, shown.or_else(|| string(html).map(|html| html::to_text(&html))));
    attachments.iter().for_each(|name| entry.add(Field::Text, Some(name.clone())));
    entry.facts.push(("thread", json!(string(thread))));
    entry.facts.push(("labels", json!(texts(labels))));
    entry.facts.push(("deleted_remotely", json!(*deleted != Value::Null)));
    entry
}

fn string(value: &Value) -> Option<String> {
    value.as_text().map(str::to_owned)
}

fn author(name: Option<String>, email: Option<String>) -> Option<String> {
    match (name.filter(|name| !name.is_empty()), email.filter(|email| !email.is_empty())) {
        (Some(name), Some(email)) => Some(format!("{name} <{email}>")),
        (name, email) => name.or(email),
    }
}

/// To whom it says it was sent, as it says so.
fn recipients(headers: &Value) -> Vec<String> {
    #[derive(Deserialize)]
    struct Header {
        name: String,
        value: String,
    }
    let Value::Json(headers) = headers else { return Vec::new() };
    let headers: Vec<Header> = serde_json::from_str(headers).unwrap_or_default();
    let is_to = |header: &Header| ["to", "cc", "bcc"].iter().any(|name| header.name.eq_ignore_ascii_case(name));
    headers.into_iter().filter(is_to).map(|header| header.value).collect()
}

#[cfg(test)]
mod tests {
    use highwater_core::search::Words;

    use super::{super::schema::ALL_MESSAGES, *};

    fn entry(plain: Value, headers: &str) -> Entry {
        let text = |text: &str| Value::Text(text.into());
        let list = |text: &str| Value::Json(text.into());
        let values = [
            text("t1"),
            text("ann@example.com"),
            text("Ann Lee"),
            list(r#"["bob@example.org"]"#),
            list("[]"),
            list("[]"),
            text("Hello"),
            plain,
            text("<p>From <b>HTML</b></p>"),
            Value::Int(7),
            list(headers),
            list(r#"["INBOX"]"#),
            Value::Null,
        ];
        assert_eq!(values.len(), SEARCHABLE.columns.len());
        read(&values, &["plan.pdf".into()])
    }

    #[test]
    fn a_message_is_found_by_its_people_texts_and_files() {
        let headers = r#"[{"name":"TO","value":"Bob Müller <bob@example.org>"},{"name":"X","value":"never"}]"#;
        let found = entry(Value::Null, headers);
        let words = Words::of(found.texts.iter().map(|(field, text)| (*field, text.as_str())));
        assert_eq!(words.field(Field::Author), "ann lee _ ann example com");
        assert_eq!(words.field(Field::Addressee), "bob muller bob example org");
        assert_eq!(words.field(Field::Text), "from html _ plan pdf");
        assert_eq!(found.author.as_deref(), Some("Ann Lee <ann@example.com>"));
        assert!(SEARCHABLE.columns.iter().all(|name| ALL_MESSAGES.position(name).is_some()));
    }

    #[test]
    fn plain_text_goes_before_html_and_addresses_stand_in_for_headers() {
        let found = entry(Value::Text("plain".into()), "7");
        assert!(found.texts.contains(&(Field::Text, "plain".into())));
        assert!(found.texts.contains(&(Field::Addressee, "bob@example.org".into())));
        assert!(!found.texts.iter().any(|(_, text)| text.contains("HTML")));
    }
}
