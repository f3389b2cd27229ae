//! Rows of segments: reading one, the lease check before every write, giving one back.

use std::{collections::BTreeSet, str::FromStr};

use highwater_core::{Epoch, Lease, LeaseState, Position, SegmentId, SegmentStatus, Span, Timestamp, WorkerId};
use rusqlite::{Connection, OptionalExtension, Row};

use super::{error::Sql, streams};
use crate::rules::SegmentRow;

/// What `row_of` expects.
pub(super) const COLUMNS: &str = "segment_id, purpose, start_pos, end_pos, status, scan_cursor, attempts, stored_count,
     lease_owner, lease_epoch, heartbeat_at";

pub(super) fn row_of(row: &Row<'_>) -> Sql<SegmentRow> {
    let owner = row.get_ref(8)?.as_str_or_null().map_err(rusqlite::Error::from)?.map(WorkerId::new);
    Ok(SegmentRow {
        id: SegmentId(row.get(0)?),
        purpose: word(row, 1)?,
        span: Span::new(Position(row.get(2)?), Position(row.get(3)?)),
        cursor: row.get::<_, Option<i64>>(5)?.map(Position),
        attempts: row.get(6)?,
        stored: row.get::<_, i64>(7)?.cast_unsigned(),
        lease: LeaseState { status: word(row, 4)?, owner, epoch: Epoch(row.get(9)?), heartbeat_at: time(row, 10)? },
    })
}

/// A word of one of the core's enums.
pub(super) fn word<T>(row: &Row<'_>, index: usize) -> Sql<T>
where
    T: FromStr<Err = highwater_core::UnknownWord>,
{
    let text = row.get_ref(index)?.as_str().map_err(rusqlite::Error::from)?;
    Ok(text.parse()?)
}

pub(super) fn time(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_millis))
}

pub(super) fn read(db: &Connection, id: SegmentId) -> Sql<Option<SegmentRow>> {
    let mut select = db.prepare_cached(&format!("SELECT {COLUMNS} FROM ingest_segments WHERE segment_id = ?1"))?;
    let mut rows = select.query([id.0])?;
    rows.next()?.map(row_of).transpose()
}

/// The segment a lease is for, if the lease still holds.
pub(super) fn held(db: &Connection, lease: &Lease) -> Sql<SegmentRow> {
    Ok(SegmentRow::held(read(db, lease.segment)?, lease)?)
}

/// Renews the leases that hold; the segments of the others.
pub(super) fn heartbeat(db: &Connection, leases: &[Lease], now: Timestamp) -> Sql<Vec<SegmentId>> {
    let mut renew = db.prepare_cached("UPDATE ingest_segments SET heartbeat_at = ?1 WHERE segment_id = ?2")?;
    let mut lost = Vec::new();
    for lease in leases {
        match read(db, lease.segment)? {
            Some(segment) if segment.lease.admits(lease).is_ok() => {
                renew.execute([now.as_millis(), lease.segment.0])?;
            }
            _ => lost.push(lease.segment),
        }
    }
    Ok(lost)
}

pub(super) fn release(db: &Connection, leases: &[Lease]) -> Sql<()> {
    for lease in leases {
        if read(db, lease.segment)?.is_some_and(|segment| segment.lease.admits(lease).is_ok()) {
            give_back(db, lease.segment)?;
        }
    }
    Ok(())
}

pub(super) fn give_back(db: &Connection, id: SegmentId) -> Sql<()> {
    let next_retry = next_retry(db, id)?;
    if let Some(segment) = read(db, id)? {
        streams::count_up(db, id, None)?;
        put_down(db, id, segment.status_given_back(next_retry), next_retry)?;
    }
    Ok(())
}

/// Sets the status of a segment nobody works on any more.
pub(super) fn put_down(
    db: &Connection,
    id: SegmentId,
    status: SegmentStatus,
    next_retry: Option<Timestamp>,
) -> Sql<()> {
    let next_retry = next_retry.filter(|_| status == SegmentStatus::RetryWait).map(Timestamp::as_millis);
    db.prepare_cached(
        "UPDATE ingest_segments SET status = ?1, next_retry_at = ?2, lease_owner = NULL, heartbeat_at = NULL
         WHERE segment_id = ?3",
    )?
    .execute((status.as_str(), next_retry, id.0))?;
    Ok(())
}

/// When the first key of a segment that is to be tried again is due.
pub(super) fn next_retry(db: &Connection, id: SegmentId) -> Sql<Option<Timestamp>> {
    let mut select = db.prepare_cached(
        "SELECT next_retry_at FROM ingest_exceptions WHERE segment_id = ?1 AND state = 'retry_wait'
         ORDER BY next_retry_at LIMIT 1",
    )?;
    Ok(select.query_row([id.0], |row| time(row, 0)).optional()?.flatten())
}

/// Gives back what nobody alive works on.
pub(super) fn recover(db: &Connection) -> Sql<()> {
    let mut select = db.prepare("SELECT segment_id FROM ingest_segments WHERE status = 'in_progress'")?;
    let orphans = select.query_map([], |row| row.get(0).map(SegmentId))?.collect::<Result<BTreeSet<_>, _>>()?;
    for id in orphans {
        give_back(db, id)?;
    }
    Ok(())
}
