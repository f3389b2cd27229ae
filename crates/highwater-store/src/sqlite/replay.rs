//! Putting dead letters back to work, and counting anew what was repaired.

use std::collections::BTreeSet;

use highwater_core::{Key, Pending, SegmentId, StreamId, Timestamp, schema::Table};
use rusqlite::{Connection, params};

use super::{
    error::Sql,
    follow::{bounds, within},
    segments,
};
use crate::rules;

pub(super) fn replay(db: &Connection, stream: &StreamId, keys: Option<&[Key]>, now: Timestamp) -> Sql<u64> {
    let mut segments = BTreeSet::new();
    let replayed = match keys {
        None => revive(db, stream, None, now, &mut segments)?,
        Some(keys) => {
            let mut replayed = 0;
            for key in keys {
                replayed += revive(db, stream, Some(key), now, &mut segments)?;
            }
            replayed
        }
    };
    for id in segments {
        wake(db, id, now)?;
    }
    Ok(replayed)
}

fn revive(
    db: &Connection,
    stream: &StreamId,
    key: Option<&Key>,
    now: Timestamp,
    owners: &mut BTreeSet<SegmentId>,
) -> Sql<u64> {
    let only = if key.is_some() { "item_key = ?5" } else { "?5 IS NULL" };
    let mut update = db.prepare_cached(&format!(
        "UPDATE ingest_exceptions SET state = 'retry_wait', attempts = 0, next_retry_at = ?3, reason = ?4
         WHERE source = ?1 AND stream = ?2 AND state = 'dead_letter' AND {only}
         RETURNING segment_id"
    ))?;
    let (source, stream) = (stream.source.as_str(), stream.stream.as_str());
    let key = key.map(Key::to_string);
    let mut rows = update.query(params![source, stream, now.as_millis(), Pending::Replayed.as_str(), key])?;
    let mut revived = 0;
    while let Some(row) = rows.next()? {
        revived += 1;
        owners.insert(SegmentId(row.get(0)?));
    }
    Ok(revived)
}

fn wake(db: &Connection, id: SegmentId, now: Timestamp) -> Sql<()> {
    let status = segments::read(db, id)?.map(|segment| segment.lease.status);
    match status.and_then(rules::status_when_replayed) {
        Some(status) => segments::put_down(db, id, status, Some(now)),
        None => Ok(()),
    }
}

/// What segments at work have stored is counted when they are put down.
pub(super) fn recount(db: &Connection, stream: &StreamId, table: &'static Table) -> Sql<()> {
    let [first, beyond] = bounds(table);
    db.execute(
        &format!(
            "UPDATE ingest_streams SET stored = (SELECT count(*) FROM \"{}\" WHERE {}) - COALESCE((
                SELECT sum(uncounted) FROM ingest_segments
                WHERE source = ?4 AND stream = ?5 AND status = 'in_progress'), 0)
             WHERE source = ?4 AND stream = ?5",
            table.name,
            within(table, None)
        ),
        params![None::<i64>, first, beyond, stream.source.as_str(), stream.stream.as_str()],
    )?;
    Ok(())
}
