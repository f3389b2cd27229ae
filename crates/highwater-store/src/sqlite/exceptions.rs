//! Rows of keys that are not plainly stored: reading, writing a verdict, counting.

use highwater_core::{Exception, ExceptionState, History, Key, SegmentId, Settlement, StreamId, Timestamp};
use rusqlite::{Connection, Row, Rows, params};

use super::{
    error::Sql,
    segments::{time, word},
};
use crate::rules::{self, Census};

/// What `of` expects.
pub(super) const COLUMNS: &str = "item_key, segment_id, state, attempts, absences, first_absent_at, first_seen_at,
     last_tried_at, next_retry_at, reason, last_error";

fn of(row: &Row<'_>) -> Sql<Exception> {
    Ok(Exception {
        key: Key::from(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?),
        segment: SegmentId(row.get(1)?),
        state: word(row, 2)?,
        history: History { attempts: row.get(3)?, absences: row.get(4)?, first_absent_at: time(row, 5)? },
        first_seen_at: Timestamp::from_millis(row.get(6)?),
        last_tried_at: Timestamp::from_millis(row.get(7)?),
        next_retry_at: time(row, 8)?,
        reason: row.get(9)?,
        last_error: row.get(10)?,
    })
}

pub(super) fn collect(mut rows: Rows<'_>) -> Sql<Vec<Exception>> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(of(row)?);
    }
    Ok(found)
}

pub(super) fn find(db: &Connection, stream: &StreamId, key: &Key) -> Sql<Option<Exception>> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM ingest_exceptions WHERE source = ?1 AND stream = ?2 AND item_key = ?3"
    ))?;
    let mut rows = select.query(params![stream.source.as_str(), stream.stream.as_str(), key.to_string()])?;
    rows.next()?.map(of).transpose()
}

pub(super) fn remove(db: &Connection, stream: &StreamId, key: &Key) -> Sql<()> {
    db.prepare_cached("DELETE FROM ingest_exceptions WHERE source = ?1 AND stream = ?2 AND item_key = ?3")?
        .execute(params![stream.source.as_str(), stream.stream.as_str(), key.to_string()])?;
    Ok(())
}

/// Writes a verdict that leaves a row, as the business of segment `owner`.
pub(super) fn put(
    db: &Connection,
    stream: &StreamId,
    owner: SegmentId,
    settlement: &Settlement,
    state: ExceptionState,
    now: Timestamp,
) -> Sql<()> {
    let next_retry = rules::next_retry(&settlement.verdict).map(Timestamp::as_millis);
    db.prepare_cached(
        "INSERT INTO ingest_exceptions (source, stream, item_key, item_number, segment_id, state, attempts, absences,
             first_absent_at, first_seen_at, last_tried_at, next_retry_at, reason, last_error)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12, ?13)
         ON CONFLICT (source, stream, item_key) DO UPDATE SET
             segment_id = excluded.segment_id, state = excluded.state, attempts = excluded.attempts,
             absences = excluded.absences, first_absent_at = excluded.first_absent_at,
             last_tried_at = excluded.last_tried_at, next_retry_at = excluded.next_retry_at,
             reason = excluded.reason, last_error = excluded.last_error",
    )?
    .execute(params![
        stream.source.as_str(),
        stream.stream.as_str(),
        settlement.key.to_string(),
        settlement.key.number(),
        owner.0,
        state.as_str(),
        settlement.history.attempts,
        settlement.history.absences,
        settlement.history.first_absent_at.map(Timestamp::as_millis),
        now.as_millis(),
        next_retry,
        settlement.reason,
        settlement.last_error,
    ])?;
    Ok(())
}

/// Notes that a key that is being tried was told of.
pub(super) fn tell(db: &Connection, stream: &StreamId, key: &Key, reason: &str, now: Timestamp) -> Sql<()> {
    db.prepare_cached(
        "UPDATE ingest_exceptions SET reason = ?4, last_tried_at = ?5
         WHERE source = ?1 AND stream = ?2 AND item_key = ?3",
    )?
    .execute(params![stream.source.as_str(), stream.stream.as_str(), key.to_string(), reason, now.as_millis()])?;
    Ok(())
}

/// How many exceptions of each kind a segment has.
pub(super) fn census(db: &Connection, id: SegmentId) -> Sql<Census> {
    let mut select =
        db.prepare_cached("SELECT state, count(*) FROM ingest_exceptions WHERE segment_id = ?1 GROUP BY state")?;
    census_of(select.query([id.0])?)
}

/// Of rows of `state, count`.
pub(super) fn census_of(mut rows: Rows<'_>) -> Sql<Census> {
    let mut census = Census::default();
    while let Some(row) = rows.next()? {
        census.note(word(row, 0)?, row.get::<_, i64>(1)?.cast_unsigned());
    }
    Ok(census)
}
