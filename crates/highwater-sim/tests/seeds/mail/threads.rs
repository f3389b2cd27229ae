//! Threads, computed once more from their messages.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Row};

struct Message {
    date: i64,
    subject: Option<String>,
    snippet: Option<String>,
    people: BTreeSet<String>,
    labels: BTreeSet<String>,
    has_attachments: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Thread {
    subject: Option<String>,
    snippet: Option<String>,
    people: BTreeSet<String>,
    labels: BTreeSet<String>,
    messages: i64,
    has_attachments: bool,
    first: i64,
    last: i64,
}

pub(super) fn check(db: &Connection) {
    let expected: BTreeMap<String, Thread> =
        messages(db).into_iter().map(|(id, messages)| (id, fold(messages))).collect();
    let stored = threads(db);
    assert_eq!(stored.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (id, thread) in &expected {
        assert_eq!(&stored[id], thread, "thread {id}");
    }
}

fn fold(mut messages: Vec<Message>) -> Thread {
    messages.sort_by_key(|message| message.date);
    let (first, last) = (&messages[0], &messages[messages.len() - 1]);
    Thread {
        subject: first.subject.clone(),
        snippet: last.snippet.clone(),
        people: messages.iter().flat_map(|message| message.people.clone()).collect(),
        labels: messages.iter().flat_map(|message| message.labels.clone()).collect(),
        messages: messages.len() as i64,
        has_attachments: messages.iter().any(|message| message.has_attachments),
        first: first.date,
        last: last.date,
    }
}

fn messages(db: &Connection) -> BTreeMap<String, Vec<Message>> {
    let sql = "SELECT thread_id, internal_date, subject, snippet, from_email, to_emails, cc_emails, bcc_emails,
        CASE WHEN deleted_remotely_at IS NULL THEN label_ids END, has_attachments FROM mail_messages ORDER BY id";
    let mut statement = db.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        let mut people: BTreeSet<String> = [5, 6, 7].into_iter().flat_map(|place| set(row, place)).collect();
        people.extend(row.get::<_, Option<String>>(4)?);
        let message = Message {
            date: row.get(1)?,
            subject: row.get(2)?,
            snippet: row.get(3)?,
            people,
            labels: set(row, 8),
            has_attachments: row.get(9)?,
        };
        Ok((row.get::<_, String>(0)?, message))
    });
    let mut threads: BTreeMap<String, Vec<Message>> = BTreeMap::new();
    for (thread, message) in rows.unwrap().map(Result::unwrap) {
        threads.entry(thread).or_default().push(message);
    }
    threads
}

fn threads(db: &Connection) -> BTreeMap<String, Thread> {
    let sql = "SELECT id, subject, snippet, participant_emails, label_ids, message_count, has_attachments,
        first_message_at, last_message_at FROM mail_threads";
    let mut statement = db.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        let thread = Thread {
            subject: row.get(1)?,
            snippet: row.get(2)?,
            people: set(row, 3),
            labels: set(row, 4),
            messages: row.get(5)?,
            has_attachments: row.get(6)?,
            first: row.get(7)?,
            last: row.get(8)?,
        };
        Ok((row.get(0)?, thread))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// A column with a JSON list, or with nothing.
fn set(row: &Row<'_>, place: usize) -> BTreeSet<String> {
    let text: Option<String> = row.get(place).unwrap();
    text.map(|text| serde_json::from_str(&text).unwrap()).unwrap_or_default()
}
