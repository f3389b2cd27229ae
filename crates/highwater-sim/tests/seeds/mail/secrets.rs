//! What a run tells about itself, in events, reasons, errors and the ledger, shows nothing of the mail.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::stage::{ACCOUNT, Stage};

/// Beginnings of tokens, and what they are got with.
const TOKENS: [&str; 4] = ["ya29.", "sim-access-token", "sim-refresh-token", "sim-secret"];
/// Shorter ones are words that appear anyway, unless they are addresses.
const TELLING: usize = 16;

pub(super) fn check(db: &Connection, stage: &Stage) {
    let told = [stage.said(), books(db)].concat();
    for token in TOKENS {
        assert!(!told.contains(token), "{token:?} is told");
    }
    for text in private(db) {
        assert!(!told.contains(&text), "{text:?} is told");
    }
}

/// Everything the engine writes down about its work.
fn books(db: &Connection) -> String {
    let sql = "SELECT coalesce(group_concat(text, char(10)), '') FROM (
        SELECT concat_ws(' ', item_key, reason, last_error) AS text FROM ingest_exceptions
        UNION ALL SELECT last_error FROM ingest_segments
        UNION ALL SELECT concat_ws(' ', entity_id, payload, actor) FROM ledger)";
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn private(db: &Connection) -> BTreeSet<String> {
    let sql = "SELECT subject FROM mail_messages UNION SELECT from_email FROM mail_messages
        UNION SELECT from_name FROM mail_messages UNION SELECT substr(snippet, 1, 20) FROM mail_messages
        UNION SELECT value FROM mail_messages, json_each(to_emails)";
    let mut statement = db.prepare(sql).unwrap();
    let found = statement.query_map([], |row| row.get::<_, Option<String>>(0)).unwrap();
    let texts = found.filter_map(Result::unwrap).filter(|text| text.len() >= TELLING || text.contains('@'));
    texts.chain([ACCOUNT.to_owned()]).collect()
}
