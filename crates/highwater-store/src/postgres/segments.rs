//! Rows of segments: locking them in order, renewing leases, giving them back.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{try_join, try_join3};
use highwater_core::{Epoch, Lease, LeaseState, Position, SegmentId, SegmentStatus, Span, Timestamp, WorkerId};
use tokio_postgres::{Row, types::Type};

use super::{
    cells::{Time, count, time, word},
    error::Sql,
    link::Db,
    streams,
};
use crate::rules::SegmentRow;

/// What `row_of` expects.
pub(super) const COLUMNS: &str = "segment_id, purpose, start_pos, end_pos, status, scan_cursor, attempts, stored_count,
     lease_owner, lease_epoch, heartbeat_at";

pub(super) fn row_of(row: &Row) -> Sql<SegmentRow> {
    let owner = row.try_get::<_, Option<&str>>(8)?.map(WorkerId::new);
    Ok(SegmentRow {
        id: SegmentId(row.try_get(0)?),
        purpose: word(row, 1)?,
        span: Span::new(Position(row.try_get(2)?), Position(row.try_get(3)?)),
        cursor: row.try_get::<_, Option<i64>>(5)?.map(Position),
        attempts: u32::try_from(row.try_get::<_, i64>(6)?).unwrap_or(u32::MAX),
        stored: count(row, 7)?,
        lease: LeaseState { status: word(row, 4)?, owner, epoch: Epoch(row.try_get(9)?), heartbeat_at: time(row, 10)? },
    })
}

pub(super) type Locked = BTreeMap<SegmentId, SegmentRow>;

/// Locks these segments, lowest first, as everybody does: so nobody waits in a circle.
pub(super) async fn lock(db: &Db, ids: &BTreeSet<SegmentId>) -> Sql<Locked> {
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
    let select = format!(
        "SELECT {COLUMNS} FROM ingest_segments WHERE segment_id = ANY($1) ORDER BY segment_id FOR NO KEY UPDATE"
    );
    let rows = db.query(&select, &[(&ids, Type::INT8_ARRAY)]).await?;
    rows.iter().map(|row| row_of(row).map(|segment| (segment.id, segment))).collect()
}

/// Renews the leases that hold, all in one statement; the segments of the others. `now` is none for the server's clock.
pub(super) async fn heartbeat(db: &Db, leases: &[Lease], now: Option<Timestamp>) -> Sql<Vec<SegmentId>> {
    let renew = "
        WITH mine AS (
            SELECT s.segment_id FROM ingest_segments AS s
            JOIN UNNEST($1, $2, $3) AS lease (id, owner, epoch) ON s.segment_id = lease.id
            WHERE s.status = 'in_progress' AND s.lease_owner = lease.owner AND s.lease_epoch = lease.epoch
            ORDER BY s.segment_id FOR NO KEY UPDATE OF s
        )
        UPDATE ingest_segments AS s SET heartbeat_at = COALESCE($4, clock_timestamp())
        FROM mine WHERE s.segment_id = mine.segment_id RETURNING s.segment_id";
    let ids: Vec<_> = leases.iter().map(|lease| lease.segment.0).collect();
    let owners: Vec<_> = leases.iter().map(|lease| lease.owner.as_str()).collect();
    let epochs: Vec<_> = leases.iter().map(|lease| lease.epoch.0).collect();
    let params = [
        (&ids as _, Type::INT8_ARRAY),
        (&owners as _, Type::TEXT_ARRAY),
        (&epochs as _, Type::INT8_ARRAY),
        (&now.map(Time) as _, Type::TIMESTAMPTZ),
    ];
    let ((), rows) = try_join(db.begin_lightly(), db.query(renew, &params)).await?;
    db.commit().await?;
    let renewed = rows.iter().map(|row| row.try_get(0).map(SegmentId)).collect::<Result<BTreeSet<_>, _>>()?;
    Ok(leases.iter().map(|lease| lease.segment).filter(|id| !renewed.contains(id)).collect())
}

pub(super) async fn release(db: &Db, leases: &[Lease]) -> Sql<()> {
    let ids = leases.iter().map(|lease| lease.segment).collect();
    let ((), locked) = try_join(db.begin(), lock(db, &ids)).await?;
    let held: Vec<_> = leases
        .iter()
        .filter_map(|lease| locked.get(&lease.segment).filter(|segment| segment.lease.admits(lease).is_ok()))
        .collect();
    let retries = next_retries(db, held.iter().map(|segment| segment.id)).await?;
    let put: Vec<_> = held
        .into_iter()
        .map(|segment| {
            let next_retry = retries.get(&segment.id).copied();
            (segment.id, segment.status_given_back(next_retry), next_retry)
        })
        .collect();
    let ids: Vec<_> = put.iter().map(|(id, ..)| id.0).collect();
    try_join3(streams::count_up(db, &ids, None), put_down(db, &put), db.commit()).await?;
    Ok(())
}

/// Sets the status of segments nobody works on any more.
pub(super) async fn put_down(db: &Db, put: &[(SegmentId, SegmentStatus, Option<Timestamp>)]) -> Sql<()> {
    if put.is_empty() {
        return Ok(());
    }
    let update = "
        UPDATE ingest_segments AS s
        SET status = put.status, next_retry_at = put.next_retry_at, lease_owner = NULL, heartbeat_at = NULL, uncounted = 0
        FROM UNNEST($1, $2, $3) AS put (id, status, next_retry_at) WHERE s.segment_id = put.id";
    let ids: Vec<_> = put.iter().map(|(id, ..)| id.0).collect();
    let statuses: Vec<_> = put.iter().map(|(_, status, _)| status.as_str()).collect();
    let retries: Vec<_> = put
        .iter()
        .map(|(_, status, next_retry)| next_retry.filter(|_| *status == SegmentStatus::RetryWait).map(Time))
        .collect();
    let params =
        [(&ids as _, Type::INT8_ARRAY), (&statuses as _, Type::TEXT_ARRAY), (&retries as _, Type::TIMESTAMPTZ_ARRAY)];
    db.execute(update, &params).await?;
    Ok(())
}

/// When the first key of each segment that is to be tried again is due.
pub(super) async fn next_retries(db: &Db, ids: impl Iterator<Item = SegmentId>) -> Sql<BTreeMap<SegmentId, Timestamp>> {
    let ids: Vec<_> = ids.map(|id| id.0).collect();
    let select = "SELECT segment_id, min(next_retry_at) FROM ingest_exceptions
                  WHERE segment_id = ANY($1) AND state = 'retry_wait' GROUP BY segment_id";
    let rows = db.query(select, &[(&ids, Type::INT8_ARRAY)]).await?;
    let mut retries = BTreeMap::new();
    for row in &rows {
        if let Some(at) = time(row, 1)? {
            retries.insert(SegmentId(row.try_get(0)?), at);
        }
    }
    Ok(retries)
}

/// Counts anew what is unsettled in these segments.
pub(super) async fn count_unresolved(db: &Db, ids: &BTreeSet<SegmentId>) -> Sql<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
    let update = "
        UPDATE ingest_segments AS s SET unresolved_count = (
            SELECT count(*) FROM ingest_exceptions AS e
            WHERE e.segment_id = s.segment_id AND e.state IN ('retry_wait', 'dead_letter')
        ) WHERE s.segment_id = ANY($1)";
    db.execute(update, &[(&ids, Type::INT8_ARRAY)]).await?;
    Ok(())
}
