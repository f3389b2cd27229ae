//! The books of the engine: segments without gaps, and a ledger that names everything once.

use std::path::Path;

use highwater_core::Timestamp;
use highwater_store::{ChainCheck, LedgerLine};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::oracle;

/// Also after a kill: what was planned tiles the axis, and the frontier lies before the first segment that is not sealed.
pub(super) fn check_tiling(path: &Path) {
    let db = oracle::open(path);
    let stream = "SELECT origin, frontier, target FROM ingest_streams WHERE stream = 'messages'";
    let ends = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let Ok(Some((origin, frontier, target))) = db.query_row(stream, [], ends).optional() else { return };
    let sql = "SELECT start_pos, end_pos, status FROM ingest_segments
        WHERE stream = 'messages' AND purpose = 'catchup' ORDER BY start_pos";
    let mut statement = db.prepare(sql).unwrap();
    let spans = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?)));
    let (mut next, mut is_sealed) = (origin, true);
    for (start, end, status) in spans.unwrap().map(Result::<(i64, i64, String), _>::unwrap) {
        assert_eq!(start, next, "segments overlap or leave a gap");
        is_sealed &= matches!(status.as_str(), "sealed" | "dead_letter");
        assert!(is_sealed || frontier <= start, "the frontier {frontier} lies beyond {start}, which is {status}");
        next = end;
    }
    assert!(next == target || origin == target, "segments end at {next}, the target is {target}");
}

/// The chain holds, and each row was entered into it once.
pub(super) fn check_ledger(db: &Connection) {
    let mut chain = ChainCheck::default();
    let sql = "SELECT seq, at, event_type, source, entity_type, entity_id, payload, actor, prev_hash, hash
        FROM ledger WHERE source = 'mail' ORDER BY seq";
    let mut statement = db.prepare(sql).unwrap();
    for line in statement.query_map([], line).unwrap() {
        chain.add(&line.unwrap()).unwrap();
    }
    for (event, table) in [
        ("MESSAGE_INGESTED", "mail_messages"),
        ("THREAD_INGESTED", "mail_threads"),
        ("ATTACHMENT_SAVED", "mail_attachments"),
    ] {
        let entered = ids(db, &format!("SELECT entity_id FROM ledger WHERE event_type = '{event}' ORDER BY entity_id"));
        assert_eq!(entered, ids(db, &format!("SELECT id FROM {table} ORDER BY id")), "{event}");
    }
}

fn line(row: &Row<'_>) -> rusqlite::Result<LedgerLine> {
    Ok(LedgerLine {
        seq: row.get(0)?,
        at: Timestamp::from_millis(row.get(1)?),
        event_type: row.get(2)?,
        source: row.get::<_, String>(3)?.parse().unwrap(),
        entity_type: row.get(4)?,
        entity_id: row.get(5)?,
        payload: serde_json::from_str(&row.get::<_, String>(6)?).unwrap(),
        actor: row.get(7)?,
        prev_hash: row.get(8)?,
        hash: row.get(9)?,
    })
}

fn ids(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}
