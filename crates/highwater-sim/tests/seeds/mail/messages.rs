//! Every message of the mailbox against its row, or the exception in its place.

use std::collections::BTreeMap;

use highwater_sim::{MessageState, MessageTruth};
use highwater_sources::gmail::MailKind;
use rusqlite::Connection;

use super::stage::{MAILBOX, Stage};

/// What Gmail says of a message, as columns.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    id: String,
    thread: String,
    labels: Vec<String>,
    date: i64,
    sha256: String,
    size_estimate: Option<i64>,
}

struct Stored {
    row: Row,
    is_gone: bool,
}

pub(super) fn check(db: &Connection, stage: &Stage) {
    let mut stored = stored(db);
    let exceptions = exceptions(db);
    for truth in stage.truth() {
        let state = exceptions.get(&truth.id).map(String::as_str);
        match (stored.remove(&truth.id), truth.state) {
            (Some(stored), MessageState::Deleted(_)) => {
                assert!(stored.is_gone, "{} was deleted and is shown as if it were there", truth.id);
                assert_eq!(stored.row.sha256, truth.sha256, "{}", truth.id);
            }
            (Some(stored), _) => {
                assert!(!stored.is_gone, "{} is there and was taken for deleted", truth.id);
                assert_eq!(stored.row, expected(&truth));
            }
            // Gone before anyone could fetch it.
            (None, MessageState::Deleted(_)) => {}
            (None, MessageState::Present) => {
                let is_excluded = state == Some("excluded") && is_left_out(&truth, &stage.scene.include);
                assert!(is_excluded, "{truth:?} has no row, its exception is {state:?}");
            }
            (None, MessageState::Unreachable(fault)) => {
                let is_explained = state == Some("dead_letter") || is_left_out(&truth, &stage.scene.include);
                assert!(is_explained, "{} cannot be had ({fault}), its exception is {state:?}", truth.id);
            }
        }
    }
    assert_eq!(stored.into_keys().collect::<Vec<_>>(), [""; 0], "rows of messages that never were");
}

fn expected(truth: &MessageTruth) -> Row {
    let mut labels = truth.label_ids.clone();
    labels.sort();
    Row {
        id: format!("{MAILBOX}-{}", truth.id),
        thread: truth.thread_id.clone(),
        labels,
        date: truth.internal_date,
        sha256: truth.sha256.clone(),
        size_estimate: Some(truth.size_estimate as i64),
    }
}

fn is_left_out(truth: &MessageTruth, include: &[MailKind]) -> bool {
    let labels =
        [(MailKind::Spam, "SPAM"), (MailKind::Trash, "TRASH"), (MailKind::Drafts, "DRAFT"), (MailKind::Chats, "CHAT")];
    let has = |label: &str| truth.label_ids.iter().any(|id| id == label);
    labels
        .into_iter()
        .any(|(kind, label)| has(label) && include.iter().all(|included| included.as_str() != kind.as_str()))
}

fn stored(db: &Connection) -> BTreeMap<String, Stored> {
    let sql = "SELECT provider_message_id, id, provider_thread_id, label_ids, internal_date, raw_sha256, size_estimate,
        deleted_remotely_at IS NOT NULL FROM mail_messages";
    let mut statement = db.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        let labels: Vec<String> = serde_json::from_str(&row.get::<_, String>(3)?).unwrap();
        let body = Row {
            id: row.get(1)?,
            thread: row.get(2)?,
            labels,
            date: row.get(4)?,
            sha256: row.get(5)?,
            size_estimate: row.get(6)?,
        };
        Ok((row.get(0)?, Stored { row: body, is_gone: row.get(7)? }))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn exceptions(db: &Connection) -> BTreeMap<String, String> {
    let mut statement = db.prepare("SELECT item_key, state FROM ingest_exceptions WHERE stream = 'messages'").unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}
