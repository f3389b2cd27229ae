//! Ending the work on a segment for now, and moving the frontier. Nothing is sealed that does not add up.

use std::collections::BTreeSet;

use futures_util::future::try_join;
use highwater_core::{
    Position, Purpose, SegmentId, SegmentStatus,
    planted::{Bug, planted},
};
use tokio_postgres::types::Type;

use super::{
    cells::Time,
    dense::Dense,
    error::{Fault, Sql},
    exceptions::census_of,
    ledger,
    link::Db,
    segments::{self, Locked},
    settle::reconsidered,
    streams,
};
use crate::{
    Close, Closed,
    rules::{Census, SegmentRow, sealed_entry},
};

/// What a segment holds at the end.
pub(super) struct Evidence {
    pub(super) stored: u64,
    pub(super) census: Census,
}

pub(super) async fn close(db: &Db, close: &Close) -> Sql<Closed> {
    let (segment, locked) = take(db, close).await?;
    let dense = close.dense.map(|table| Dense { db, table, stream: &close.stream, segment: &segment });
    if let Some(dense) = dense.as_ref().filter(|_| segment.purpose == Purpose::Catchup) {
        let owners = dense.adopt().await?;
        let is_locked = owners.iter().all(|id| locked.contains_key(id));
        if !is_locked {
            return Err(Fault::Raced);
        }
        segments::count_unresolved(db, &owners).await?;
        segments::put_down(db, &reconsidered(&locked, &owners)).await?;
    }
    let census = census(db, segment.id).await?;
    let status = census.tally().closing_status(close.policy);
    let evidence = match &dense {
        Some(dense) if status != SegmentStatus::RetryWait => dense.account().await?,
        _ => Evidence { stored: segment.stored, census },
    };
    put_down(db, close, &segment, status, census.tally().unresolved()).await?;
    let frontier = frontier_after(db, close, &segment, status).await?;
    if status == SegmentStatus::Sealed {
        ledger::append(db, &[sealed_entry(close, &segment, evidence.stored, &evidence.census)]).await?;
    }
    db.commit().await?;
    Ok(Closed { status, frontier })
}

/// The segment, held, and locked together with those that own keys it will take over.
async fn take(db: &Db, close: &Close) -> Sql<(SegmentRow, Locked)> {
    let id = close.lease.segment;
    let ((), owners) = try_join(db.begin(), async {
        match close.dense {
            Some(table) => Dense::owners(db, table, &close.stream, id).await,
            None => Ok(BTreeSet::new()),
        }
    })
    .await?;
    let locked = segments::lock(db, &owners.into_iter().chain([id]).collect()).await?;
    let segment = SegmentRow::held(locked.get(&id).cloned(), &close.lease)?;
    Ok((segment, locked))
}

async fn census(db: &Db, id: SegmentId) -> Sql<Census> {
    let select = "SELECT state, count(*) FROM ingest_exceptions WHERE segment_id = $1 GROUP BY state";
    census_of(&db.query(select, &[(&id.0, Type::INT8)]).await?)
}

/// All keys were tried, whatever the outcome.
async fn put_down(db: &Db, close: &Close, segment: &SegmentRow, status: SegmentStatus, unresolved: u64) -> Sql<()> {
    let update = "
        UPDATE ingest_segments SET status = $2, lease_owner = NULL, heartbeat_at = NULL, scan_cursor = end_pos,
            unresolved_count = $3, sealed_at = $4,
            next_retry_at = CASE WHEN $2 = 'retry_wait' THEN (
                SELECT min(next_retry_at) FROM ingest_exceptions WHERE segment_id = $1 AND state = 'retry_wait') END
        WHERE segment_id = $1";
    let sealed_at = (status == SegmentStatus::Sealed).then_some(Time(close.now));
    let params = [
        (&segment.id.0 as _, Type::INT8),
        (&status.as_str() as _, Type::TEXT),
        (&unresolved.cast_signed() as _, Type::INT8),
        (&sealed_at as _, Type::TIMESTAMPTZ),
    ];
    db.execute(update, &params).await?;
    Ok(())
}

/// The stream's row is locked before segments are read, so that of two neighbours that are closed together the later
/// one sees the other. Never back: a segment that was passed and is at work again does not undo what was promised.
async fn frontier_after(db: &Db, close: &Close, segment: &SegmentRow, status: SegmentStatus) -> Sql<Position> {
    if segment.purpose != Purpose::Catchup || status != SegmentStatus::Sealed {
        return Ok(streams::read(db, &close.stream, "").await?.frontier);
    }
    let (row, unsealed) =
        try_join(streams::lock(db, &close.stream), streams::lowest_unsealed(db, &close.stream)).await?;
    let mut frontier = unsealed.unwrap_or(row.span.end()).max(row.frontier);
    if planted(Bug::FrontierOverGap) {
        frontier = frontier.max(segment.span.end());
    }
    streams::move_to(db, &close.stream, frontier, close.now).await?;
    Ok(frontier)
}
