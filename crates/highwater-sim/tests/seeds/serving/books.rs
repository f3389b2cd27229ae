//! What the store says about itself, asked by plain SQL: what it owes, and what it has promised.

use std::path::Path;

use highwater_core::Timestamp;
use rusqlite::Connection;

use super::history::Told;
use crate::oracle;

/// A mirror may be behind the remote for these reasons and no other.
pub(crate) struct Books {
    /// Since when windows that are not closed are open.
    windows: Vec<i64>,
    /// Everything told before is stored.
    cursor: Option<i64>,
    /// Passes that ended: when they began, and what they looked at.
    passes: Vec<(i64, i64, i64)>,
    /// Single keys that are to be looked at again.
    owed: Vec<(String, i64, i64)>,
    waiting: Vec<(String, String)>,
}

impl Books {
    pub(crate) fn read(db: &Connection) -> Books {
        let sql = "SELECT CAST(live_cursor AS INTEGER) FROM ingest_streams WHERE stream = 'items'";
        let cursor: Vec<Option<i64>> = all(db, sql, |row| row.get(0));
        Books {
            cursor: cursor.into_iter().next().flatten(),
            windows: all(db, "SELECT opened_at FROM ingest_blind_windows WHERE closed_at IS NULL", |row| row.get(0)),
            passes: all(
                db,
                "SELECT began_at, start_pos, end_pos FROM ingest_rescans
                 WHERE stream = 'items' AND reason <> 'key' AND sealed_at IS NOT NULL",
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            ),
            owed: all(
                db,
                "SELECT stream, start_pos, end_pos FROM ingest_rescans WHERE reason = 'key' AND sealed_at IS NULL",
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            ),
            waiting: all(db, "SELECT stream, item_key FROM ingest_exceptions WHERE state = 'retry_wait'", |row| {
                Ok((row.get(0)?, row.get(1)?))
            }),
        }
    }

    pub(crate) fn has_open_window(&self) -> bool {
        !self.windows.is_empty()
    }

    /// Whether the store need not have this change of an item yet.
    pub(crate) fn may_lack(&self, id: u64, change: &Told) -> bool {
        let id = id as i64;
        let at = change.at.as_millis();
        let seen_again = self.passes.iter().any(|(began, start, end)| *began > at && (*start..*end).contains(&id));
        self.may_have_missed(change)
            || (change.told.is_none() && !seen_again)
            || self.owed.iter().any(|(stream, start, end)| stream == "items" && (*start..*end).contains(&id))
            || self.waits("items", &id.to_string())
    }

    /// Whether the store need not have this change of a profile yet. What `updates` never names is not promised.
    pub(crate) fn may_lack_of_profile(&self, name: &str, seq: Option<i64>, change: &Told) -> bool {
        let owed =
            |seq: i64| self.owed.iter().any(|(stream, start, end)| stream == "users" && (*start..*end).contains(&seq));
        change.told.is_none() || self.may_have_missed(change) || seq.is_none_or(owed) || self.waits("users", name)
    }

    /// It was told when nobody listened, or is still queued.
    fn may_have_missed(&self, change: &Told) -> bool {
        let at = change.told.unwrap_or(change.at).as_millis();
        let queued = change.told.is_some() && self.cursor.is_none_or(|cursor| at >= cursor);
        queued || self.windows.iter().any(|opened| *opened <= at)
    }

    fn waits(&self, stream: &str, key: &str) -> bool {
        self.waiting.iter().any(|(of, waiting)| of == stream && waiting == key)
    }
}

/// What is left to do until the mirror is at rest: the next pass by schedule counts as such.
pub(crate) fn left_to_do(path: &Path, since: Timestamp) -> Vec<String> {
    let db = oracle::open(path);
    let began = since.as_millis();
    let scheduled = format!(
        "SELECT 'a pass by schedule' WHERE NOT EXISTS (SELECT 1 FROM ingest_rescans
         WHERE stream = 'items' AND reason = 'scheduled' AND began_at > {began} AND sealed_at IS NOT NULL)"
    );
    let left = [
        scheduled.as_str(),
        "SELECT 'window ' || window_id FROM ingest_blind_windows WHERE closed_at IS NULL",
        "SELECT stream || ' ' || purpose || ' ' || status || ' ' || start_pos || '..' || end_pos FROM ingest_segments
         WHERE status <> 'sealed'",
        "SELECT stream || ' ' || item_key || ' ' || state || ' ' || reason || ' ' || attempts || ' ' || last_tried_at
         FROM ingest_exceptions WHERE state IN ('retry_wait', 'dead_letter')",
    ];
    left.iter().flat_map(|sql| all(&db, sql, |row| row.get::<_, String>(0))).collect()
}

pub(crate) fn all<T>(
    db: &Connection,
    sql: &str,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Vec<T> {
    db.prepare(sql).unwrap().query_map([], read).unwrap().map(Result::unwrap).collect()
}
