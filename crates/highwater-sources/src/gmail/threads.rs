//! A thread is what its messages say it is.

use std::collections::BTreeSet;

use highwater_core::{Note, Timestamp, Value, list, texts};
use serde_json::json;

pub(super) const READS: &[&str] = &[
    "thread_id",
    "org_id",
    "mailbox_id",
    "provider_thread_id",
    "internal_date",
    "subject",
    "snippet",
    "from_email",
    "to_emails",
    "cc_emails",
    "bcc_emails",
    "has_attachments",
    "label_ids",
    "deleted_remotely_at",
];

const DATE: usize = 4;
const SUBJECT: usize = 5;
const SNIPPET: usize = 6;
const FROM: usize = 7;
const OTHERS: std::ops::Range<usize> = 8..11;
const ATTACHMENTS: usize = 11;
const LABELS: usize = 12;
const DELETED: usize = 13;

pub(super) fn fold(messages: &[Vec<Value>]) -> Vec<Value> {
    let date = |message: &&Vec<Value>| match message[DATE] {
        Value::Int(millis) => millis,
        _ => i64::MIN,
    };
    let first = messages.iter().min_by_key(date).expect("a thread has a message");
    let last = messages.iter().max_by_key(date).expect("a thread has a message");
    let is_there = |message: &&Vec<Value>| message[DELETED] == Value::Null;
    let labels = messages.iter().filter(is_there).flat_map(|message| texts(&message[LABELS]));
    let has_attachments = messages.iter().any(|message| message[ATTACHMENTS] == Value::Bool(true));
    let at = |message: &Vec<Value>| match message[DATE] {
        Value::Int(millis) => Value::Time(Timestamp::from_millis(millis)),
        _ => Value::Null,
    };
    let [id, org, mailbox, provider] = [0, 1, 2, 3].map(|place: usize| first[place].clone());
    vec![
        id,
        org,
        mailbox,
        provider,
        first[SUBJECT].clone(),
        last[SNIPPET].clone(),
        list(participants(messages).into_iter()),
        Value::Int(i64::try_from(messages.len()).unwrap_or(i64::MAX)),
        Value::Bool(has_attachments),
        at(first),
        at(last),
        list(labels),
    ]
}

fn participants(messages: &[Vec<Value>]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for message in messages {
        all.extend(message[FROM].as_text().map(str::to_owned));
        all.extend(message[OTHERS].iter().flat_map(texts));
    }
    all
}

pub(super) fn note(thread: &[Value]) -> Note {
    let text = |place: usize| thread[place].as_text().unwrap_or_default().to_owned();
    Note {
        event_type: "THREAD_INGESTED",
        entity_type: "thread",
        entity_id: text(0),
        payload: json!({ "provider_thread_id": text(3) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(date: i64, subject: &str, from: &str, to: &str, labels: &str, deleted: Value) -> Vec<Value> {
        let text = |text: &str| Value::Text(text.into());
        let json = |json: &str| Value::Json(json.into());
        vec![
            text("m-t"),
            text("o"),
            text("m"),
            text("t"),
            Value::Int(date),
            text(subject),
            text(&format!("about {subject}")),
            text(from),
            json(to),
            json("[]"),
            Value::Null,
            Value::Bool(date == 2),
            json(labels),
            deleted,
        ]
    }

    #[test]
    fn a_thread_begins_with_its_first_message_and_shows_its_last() {
        let messages = [
            message(3, "Re: plan", "b@x", r#"["a@x"]"#, r#"["SENT"]"#, Value::Null),
            message(1, "plan", "a@x", r#"["b@x","c@x"]"#, r#"["INBOX","UNREAD"]"#, Value::Null),
            message(2, "lost", "a@x", "[]", r#"["SPAM"]"#, Value::Time(Timestamp::EPOCH)),
        ];
        let thread = fold(&messages);
        assert_eq!(thread[4], Value::Text("plan".into()));
        assert_eq!(thread[5], Value::Text("about Re: plan".into()));
        assert_eq!(thread[6], Value::Json(r#"["a@x","b@x","c@x"]"#.into()));
        assert_eq!((&thread[7], &thread[8]), (&Value::Int(3), &Value::Bool(true)));
        let at = |millis| Value::Time(Timestamp::from_millis(millis));
        assert_eq!((&thread[9], &thread[10]), (&at(1), &at(3)));
        assert_eq!(thread[11], Value::Json(r#"["INBOX","SENT","UNREAD"]"#.into()));
        assert_eq!(note(&thread).entity_id, "m-t");
    }
}
