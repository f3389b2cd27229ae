//! Ending the work on segments for now, and moving the frontier; all of one stream, in one transaction. Nothing is sealed
//! that does not add up.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{try_join, try_join4};
use highwater_core::{
    Position, Purpose, SegmentId, SegmentStatus,
    planted::{Bug, planted},
};
use tokio_postgres::types::Type;

use super::{
    cells::Time,
    dense::{self, Dense},
    error::{Fault, Sql},
    exceptions::census_by_segment,
    ledger,
    link::Db,
    segments::{self, Locked},
    settle::reconsidered,
    streams,
};
use crate::{
    Close, Closed, LedgerEntry, StoreError, StreamRow,
    rules::{Census, SegmentRow, sealed_entry},
};

/// What became of each. An `Err` inside concerns that segment alone, and nothing of it was written.
pub(super) type Answers = Vec<Result<Closed, StoreError>>;

/// What a segment holds at the end.
pub(super) struct Evidence {
    pub(super) stored: u64,
    pub(super) census: Census,
}

/// A segment to be closed, held and locked, and what it comes to.
struct Closing<'a> {
    close: &'a Close,
    segment: SegmentRow,
    status: SegmentStatus,
    unresolved: u64,
    evidence: Evidence,
}

/// Closes segments of one stream on one axis.
pub(super) async fn close(db: &Db, closes: &[&Close]) -> Sql<Answers> {
    let (locked, owners) = take(db, closes).await?;
    let held: Vec<_> =
        closes.iter().map(|close| SegmentRow::held(locked.get(&close.lease.segment).cloned(), &close.lease)).collect();
    let sound: Vec<_> =
        closes.iter().zip(&held).filter_map(|(close, held)| Some((*close, held.as_ref().ok()?.clone()))).collect();
    adopt(db, &sound, &locked, &owners).await?;
    let closing = judge(db, sound).await?;
    let mut closed = finish(db, &closing).await?.into_iter();
    db.commit().await?;
    Ok(held.into_iter().map(|held| Ok(held.map(|_| closed.next().expect("one for each that is held"))?)).collect())
}

/// The segments, locked together with those that own keys they will take over. Seen again behind the locks: from here on
/// nobody else gives them up.
async fn take(db: &Db, closes: &[&Close]) -> Sql<(Locked, BTreeSet<SegmentId>)> {
    let ids: BTreeSet<_> = closes.iter().map(|close| close.lease.segment).collect();
    let ((), owners) = try_join(db.begin(), owners(db, closes, &ids)).await?;
    let wanted = ids.iter().copied().chain(owners).collect();
    let (locked, owners) = try_join(segments::lock(db, &wanted), self::owners(db, closes, &ids)).await?;
    if owners.is_subset(&wanted) { Ok((locked, owners)) } else { Err(Fault::Raced) }
}

async fn owners(db: &Db, closes: &[&Close], ids: &BTreeSet<SegmentId>) -> Sql<BTreeSet<SegmentId>> {
    match closes.first().and_then(|close| Some((close, close.dense?))) {
        Some((close, table)) => dense::owners(db, table, &close.stream, ids).await,
        None => Ok(BTreeSet::new()),
    }
}

/// Takes over what rescans left unsettled in the spans of these: the frontier may not pass it.
async fn adopt(db: &Db, sound: &[(&Close, SegmentRow)], locked: &Locked, owners: &BTreeSet<SegmentId>) -> Sql<()> {
    if owners.is_empty() {
        return Ok(());
    }
    let catching_up = sound.iter().filter(|(_, segment)| segment.purpose == Purpose::Catchup);
    let Some(dense) = dense_of(db, catching_up) else { return Ok(()) };
    let owners = dense.adopt().await?;
    if owners.iter().any(|id| !locked.contains_key(id)) {
        return Err(Fault::Raced);
    }
    segments::count_unresolved(db, &owners).await?;
    segments::put_down(db, &reconsidered(locked, &owners)).await
}

fn dense_of<'a>(db: &'a Db, of: impl Iterator<Item = &'a (&'a Close, SegmentRow)>) -> Option<Dense<'a>> {
    let (closes, segments): (Vec<_>, Vec<_>) = of.map(|(close, segment)| (*close, segment)).unzip();
    let first = *closes.first()?;
    Some(Dense { db, table: first.dense?, stream: &first.stream, segments })
}

async fn judge<'a>(db: &Db, sound: Vec<(&'a Close, SegmentRow)>) -> Sql<Vec<Closing<'a>>> {
    let ids: Vec<_> = sound.iter().map(|(_, segment)| segment.id.0).collect();
    let accounts = async {
        match dense_of(db, sound.iter()) {
            Some(dense) => Ok(Some(dense.account().await?)),
            None => Ok(None),
        }
    };
    let (censuses, mut accounts) = try_join(census(db, &ids), accounts).await?;
    let closing = |(close, segment): (&'a Close, SegmentRow)| {
        let census = censuses.get(&segment.id).copied().unwrap_or_default();
        let status = census.tally().closing_status(close.policy);
        let evidence = match accounts.as_mut().and_then(|accounts| accounts.remove(&segment.id)) {
            Some(found) if status != SegmentStatus::RetryWait => dense::accounted(&segment, found)?,
            _ => Evidence { stored: segment.stored, census },
        };
        Ok(Closing { close, segment, status, unresolved: census.tally().unresolved(), evidence })
    };
    sound.into_iter().map(closing).collect()
}

async fn census(db: &Db, ids: &[i64]) -> Sql<BTreeMap<SegmentId, Census>> {
    let select = "SELECT segment_id, state, count(*) FROM ingest_exceptions
                  WHERE segment_id = ANY($1) GROUP BY segment_id, state";
    census_by_segment(&db.query(select, &[(&ids, Type::INT8_ARRAY)]).await?)
}

/// The stream's row is locked before segments are read, so that of two neighbours that are closed together the later
/// one sees the other.
async fn finish(db: &Db, closing: &[Closing<'_>]) -> Sql<Vec<Closed>> {
    let Some(first) = closing.first() else { return Ok(Vec::new()) };
    let stream = &first.close.stream;
    let now = closing.iter().map(|closing| closing.close.now).max().unwrap_or(first.close.now);
    let ids: Vec<_> = closing.iter().map(|closing| closing.segment.id.0).collect();
    let ((), (), row, unsealed) = try_join4(
        streams::count_up(db, &ids, Some(now)),
        put_down(db, closing),
        streams::read(db, stream, ""),
        streams::lowest_unsealed(db, stream),
    )
    .await?;
    let frontier = frontier_after(closing, &row, unsealed);
    let entries = sealed_entries(closing);
    try_join(
        async { if frontier == row.frontier { Ok(()) } else { streams::move_to(db, stream, frontier, now).await } },
        ledger::append(db, &entries),
    )
    .await?;
    Ok(closing.iter().map(|closing| Closed { status: closing.status, frontier }).collect())
}

/// Never back: a segment that was passed and is at work again does not undo what was promised.
fn frontier_after(closing: &[Closing<'_>], row: &StreamRow, unsealed: Option<Position>) -> Position {
    let is_passed = |one: &&Closing<'_>| one.status == SegmentStatus::Sealed && one.segment.purpose == Purpose::Catchup;
    let Some(last) = closing.iter().filter(is_passed).map(|one| one.segment.span.end()).max() else {
        return row.frontier;
    };
    let frontier = unsealed.unwrap_or(row.span.end()).max(row.frontier);
    if planted(Bug::FrontierOverGap) { frontier.max(last) } else { frontier }
}

fn sealed_entries(closing: &[Closing<'_>]) -> Vec<LedgerEntry> {
    let sealed = closing.iter().filter(|one| one.status == SegmentStatus::Sealed);
    sealed.map(|one| sealed_entry(one.close, &one.segment, one.evidence.stored, &one.evidence.census)).collect()
}

/// All keys were tried, whatever the outcome.
async fn put_down(db: &Db, closing: &[Closing<'_>]) -> Sql<()> {
    let update = "
        UPDATE ingest_segments AS s SET status = put.status, lease_owner = NULL, heartbeat_at = NULL,
            scan_cursor = s.end_pos, unresolved_count = put.unresolved, sealed_at = put.sealed_at, uncounted = 0,
            next_retry_at = CASE WHEN put.status = 'retry_wait' THEN (
                SELECT min(e.next_retry_at) FROM ingest_exceptions AS e
                WHERE e.segment_id = s.segment_id AND e.state = 'retry_wait') END
        FROM UNNEST($1, $2, $3, $4) AS put (id, status, unresolved, sealed_at) WHERE s.segment_id = put.id";
    let ids: Vec<_> = closing.iter().map(|closing| closing.segment.id.0).collect();
    let statuses: Vec<_> = closing.iter().map(|closing| closing.status.as_str()).collect();
    let unresolved: Vec<_> = closing.iter().map(|closing| closing.unresolved.cast_signed()).collect();
    let sealed_at =
        |closing: &Closing<'_>| (closing.status == SegmentStatus::Sealed).then_some(Time(closing.close.now));
    let sealed: Vec<_> = closing.iter().map(sealed_at).collect();
    let params = [
        (&ids as _, Type::INT8_ARRAY),
        (&statuses as _, Type::TEXT_ARRAY),
        (&unresolved as _, Type::INT8_ARRAY),
        (&sealed as _, Type::TIMESTAMPTZ_ARRAY),
    ];
    db.execute(update, &params).await?;
    Ok(())
}
