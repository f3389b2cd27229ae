//! Handing out segments nobody works on: due retries, then what was abandoned, then the lowest of either purpose.

use highwater_core::{Exception, SegmentId, StreamId, Timestamp};
use rusqlite::{Connection, params};

use super::{error::Sql, exceptions, segments};
use crate::{
    Claim, Claimed, Wanted,
    rules::{AtWork, SegmentRow, shared_out},
};

/// Keys of one segment that are handed out at once; the rest is due again at the next claim.
const DUE_MAX: u32 = 10_000;

const DUE: &str = "status = 'retry_wait' AND next_retry_at <= ?3 ORDER BY next_retry_at, segment_id";
const EXPIRED: &str = "status = 'in_progress' AND heartbeat_at <= ?3 ORDER BY heartbeat_at, segment_id";
const AGAIN: &str = "status = 'pending' AND purpose = 'rescan' AND ?3 IS NOT NULL ORDER BY start_pos, segment_id";
const NEW: &str = "status = 'pending' AND purpose = 'catchup' AND ?3 IS NOT NULL ORDER BY start_pos, segment_id";

pub(super) fn claim(db: &Connection, claim: &Claim<'_>) -> Sql<Vec<Claimed>> {
    let ttl = i64::try_from(claim.lease_ttl.as_millis()).unwrap_or(i64::MAX);
    let expired = Timestamp::from_millis(claim.now.as_millis().saturating_sub(ttl));
    let mut claimed = Vec::new();
    let left = |claimed: &Vec<Claimed>| claim.limit.saturating_sub(u32::try_from(claimed.len()).unwrap_or(u32::MAX));
    for segment in candidates(db, claim, DUE, claim.now, claim.limit)? {
        claimed.push(take(db, claim, segment)?);
    }
    if claim.wanted == Wanted::Due {
        return Ok(claimed);
    }
    for segment in candidates(db, claim, EXPIRED, expired, left(&claimed))? {
        claimed.push(take(db, claim, segment)?);
    }
    for segment in pending(db, claim, left(&claimed))? {
        claimed.push(take(db, claim, segment)?);
    }
    Ok(claimed)
}

/// What nobody has begun, from the lowest up; both purposes get their share while both have work.
fn pending(db: &Connection, claim: &Claim<'_>, left: u32) -> Sql<Vec<SegmentRow>> {
    if left == 0 {
        return Ok(Vec::new());
    }
    let again = match claim.wanted {
        Wanted::Anything => candidates(db, claim, AGAIN, claim.now, left)?,
        Wanted::New | Wanted::Due => Vec::new(),
    };
    let new = candidates(db, claim, NEW, claim.now, left)?;
    let at_work = if again.is_empty() { None } else { Some(at_work(db, claim.stream)?) };
    Ok(shared_out(again, new, left, at_work))
}

fn at_work(db: &Connection, stream: &StreamId) -> Sql<AtWork> {
    let mut select = db.prepare_cached(
        "SELECT count(*) FILTER (WHERE purpose = 'rescan'), count(*) FILTER (WHERE purpose = 'catchup')
         FROM ingest_segments WHERE source = ?1 AND stream = ?2 AND status = 'in_progress'",
    )?;
    let (source, stream) = (stream.source.as_str(), stream.stream.as_str());
    Ok(select.query_row([source, stream], |row| Ok(AtWork { rescans: row.get(0)?, catchups: row.get(1)? }))?)
}

fn candidates(
    db: &Connection,
    claim: &Claim<'_>,
    condition: &str,
    time: Timestamp,
    limit: u32,
) -> Sql<Vec<SegmentRow>> {
    let columns = segments::COLUMNS;
    let mut select = db.prepare_cached(&format!(
        "SELECT {columns} FROM ingest_segments WHERE source = ?1 AND stream = ?2 AND {condition} LIMIT ?4"
    ))?;
    let (source, stream) = (claim.stream.source.as_str(), claim.stream.stream.as_str());
    let mut rows = select.query(params![source, stream, time.as_millis(), limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(segments::row_of(row)?);
    }
    Ok(found)
}

fn take(db: &Connection, claim: &Claim<'_>, segment: SegmentRow) -> Sql<Claimed> {
    let (state, lease) = segment.lease.claimed(segment.id, claim.owner, claim.now);
    db.prepare_cached(
        "UPDATE ingest_segments SET status = ?1, lease_owner = ?2, lease_epoch = ?3, heartbeat_at = ?4,
            started_at = COALESCE(started_at, ?4), attempts = attempts + 1, next_retry_at = NULL
         WHERE segment_id = ?5",
    )?
    .execute(params![
        state.status.as_str(),
        claim.owner.as_str(),
        state.epoch.0,
        claim.now.as_millis(),
        segment.id.0
    ])?;
    Ok(Claimed {
        lease,
        purpose: segment.purpose,
        span: segment.span,
        cursor: segment.cursor,
        attempts: segment.attempts,
        due: due(db, segment.id, claim.now)?,
    })
}

fn due(db: &Connection, segment: SegmentId, now: Timestamp) -> Sql<Vec<Exception>> {
    let columns = exceptions::COLUMNS;
    let mut select = db.prepare_cached(&format!(
        "SELECT {columns} FROM ingest_exceptions
         WHERE segment_id = ?1 AND state = 'retry_wait' AND next_retry_at <= ?2
         ORDER BY next_retry_at, item_key LIMIT ?3"
    ))?;
    exceptions::collect(select.query(params![segment.0, now.as_millis(), DUE_MAX])?)
}
