//! Handing out segments nobody works on: due retries, then what was abandoned, then the lowest of either purpose. What
//! somebody else is just taking is passed over.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use futures_util::future::{try_join, try_join3, try_join4};
use highwater_core::{Epoch, Exception, LeaseState, SegmentId, SegmentStatus, Timestamp};
use tokio_postgres::types::Type;

use super::{
    cells::Time,
    error::Sql,
    exceptions,
    link::{Db, Param},
    segments::{COLUMNS, row_of},
};
use crate::{
    Claim, Claimed, Wanted,
    rules::{AtWork, SegmentRow, shared_out},
};

/// Keys of one segment that are handed out at once; the rest is due again at the next claim.
const DUE_MAX: i64 = 10_000;

/// Whether leases that ended are looked for. Only all that is at work can tell: heartbeats are in no index, which keeps
/// them cheap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abandoned {
    LookedFor,
    Passed,
}

/// Spares most claims the look at what was abandoned, while there is other work and the last look found nothing.
#[derive(Debug, Default)]
pub(super) struct Glances {
    claims: AtomicU32,
    look_next: AtomicBool,
}

const GLANCE_EVERY: u32 = 4;

impl Glances {
    pub(super) fn next(&self) -> Abandoned {
        let is_due = self.claims.fetch_add(1, Ordering::Relaxed).is_multiple_of(GLANCE_EVERY);
        if is_due || self.look_next.load(Ordering::Relaxed) { Abandoned::LookedFor } else { Abandoned::Passed }
    }

    /// Who dies leaves more than one claim takes: what is behind it does not wait for the next look in turn.
    pub(super) fn note(&self, handed: &Handed, limit: u32) {
        let look_next = handed.had_abandoned || handed.segments.len() < limit as usize;
        self.look_next.store(look_next, Ordering::Relaxed);
    }
}

/// What a claim takes, and whether somebody had abandoned any of it.
pub(super) struct Handed {
    pub(super) segments: Vec<Claimed>,
    had_abandoned: bool,
}

const DUE: &str = "status = 'retry_wait' AND next_retry_at <= $4 ORDER BY next_retry_at, segment_id";
/// `$4` is the time that leases live by, none for the server's clock; they expire `$5` milliseconds after a heartbeat.
const EXPIRED: &str = "status = 'in_progress'
    AND heartbeat_at <= COALESCE($4, clock_timestamp()) - $5 * interval '1 millisecond'
    ORDER BY heartbeat_at, segment_id";
const AGAIN: &str = "status = 'pending' AND purpose = 'rescan' ORDER BY start_pos, segment_id";
const NEW: &str = "status = 'pending' AND purpose = 'catchup' ORDER BY start_pos, segment_id";

/// Ends the sessions that hold on to an ended lease and wait for a client that says nothing more. In the middle of a
/// COPY no timeout of the server applies: a process that is stopped there would keep its segments for as long as it
/// sleeps. What they held is there for the next claim. Looks at the sessions only if there is such a lease.
const END_SLEEPERS: &str = "
    SELECT (
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE backend_xid = s.xmax AND wait_event = 'ClientRead' AND usename = current_user
    ) FROM ingest_segments AS s
    WHERE source = $1 AND stream = $2 AND status = 'in_progress'
      AND heartbeat_at <= COALESCE($3, clock_timestamp()) - $4 * interval '1 millisecond'";

/// `now` is none for the server's clock. Retries are due by the caller's, who set their time. Statements are small and
/// name what they change by its id: a server plans each anew, and joins what it takes for many rows by reading them all.
pub(super) async fn claim(db: &Db, claim: &Claim<'_>, now: Option<Timestamp>, abandoned: Abandoned) -> Sql<Handed> {
    let ((), found) = try_join(db.begin_lightly(), Found::lock(db, claim, now, abandoned)).await?;
    let at_work = if found.again.is_empty() { None } else { Some(at_work(db, claim).await?) };
    let (segments, had_abandoned) = found.chosen(claim.limit, at_work);
    if segments.is_empty() {
        db.commit().await?;
        return Ok(Handed { segments: Vec::new(), had_abandoned });
    }
    let ids: Vec<_> = segments.iter().map(|segment| segment.id.0).collect();
    let ((), due, ()) = try_join3(take(db, claim, &ids, now), due(db, &ids, claim.now), db.commit()).await?;
    let hand_out = |segment: SegmentRow| Claimed {
        lease: segment.lease.claimed(segment.id, claim.owner, claim.now).1,
        purpose: segment.purpose,
        span: segment.span,
        cursor: segment.cursor,
        attempts: segment.attempts,
        due: due.iter().filter(|exception| exception.segment == segment.id).cloned().collect(),
    };
    Ok(Handed { segments: segments.into_iter().map(hand_out).collect(), had_abandoned })
}

/// What could be taken, locked: others pass it over until this claim is done.
#[derive(Default)]
struct Found {
    due: Vec<SegmentRow>,
    expired: Vec<SegmentRow>,
    again: Vec<SegmentRow>,
    new: Vec<SegmentRow>,
}

impl Found {
    async fn lock(db: &Db, claim: &Claim<'_>, now: Option<Timestamp>, abandoned: Abandoned) -> Sql<Found> {
        let ttl = i32::try_from(claim.lease_ttl.as_millis()).unwrap_or(i32::MAX);
        let (at, now) = (Time(claim.now), now.map(Time));
        let lease: [Param<'_>; 2] = [(&now, Type::TIMESTAMPTZ), (&ttl, Type::INT4)];
        let when_due: [Param<'_>; 1] = [(&at, Type::TIMESTAMPTZ)];
        let expired = async {
            match abandoned {
                Abandoned::LookedFor => {
                    let found = try_join(candidates(db, claim, EXPIRED, &lease), end_sleepers(db, claim, &lease));
                    Ok(found.await?.0)
                }
                Abandoned::Passed => Ok(Vec::new()),
            }
        };
        if claim.wanted == Wanted::Due {
            let due = candidates(db, claim, DUE, &when_due).await?;
            return Ok(Found { due, ..Found::default() });
        }
        let again = async {
            match claim.wanted {
                Wanted::Anything => candidates(db, claim, AGAIN, &[]).await,
                Wanted::New | Wanted::Due => Ok(Vec::new()),
            }
        };
        let (due, expired, again, new) =
            try_join4(candidates(db, claim, DUE, &when_due), expired, again, candidates(db, claim, NEW, &[])).await?;
        Ok(Found { due, expired, again, new })
    }

    /// In the order in which they are handed out, and whether any was abandoned.
    fn chosen(self, limit: u32, at_work: Option<AtWork>) -> (Vec<SegmentRow>, bool) {
        let had_abandoned = !self.expired.is_empty();
        let mut chosen: Vec<_> = self.due.into_iter().chain(self.expired).take(limit as usize).collect();
        let left = limit.saturating_sub(u32::try_from(chosen.len()).unwrap_or(u32::MAX));
        chosen.extend(shared_out(self.again, self.new, left, at_work));
        (chosen, had_abandoned)
    }
}

async fn candidates(db: &Db, claim: &Claim<'_>, condition: &str, more: &[Param<'_>]) -> Sql<Vec<SegmentRow>> {
    let select = format!(
        "SELECT {COLUMNS} FROM ingest_segments WHERE source = $1 AND stream = $2 AND {condition}
         LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED"
    );
    let (source, stream) = (claim.stream.source.as_str(), claim.stream.stream.as_str());
    let limit = i64::from(claim.limit);
    let mut params: Vec<Param<'_>> = vec![(&source, Type::TEXT), (&stream, Type::TEXT), (&limit, Type::INT8)];
    params.extend_from_slice(more);
    db.query(&select, &params).await?.iter().map(row_of).collect()
}

async fn end_sleepers(db: &Db, claim: &Claim<'_>, lease: &[Param<'_>; 2]) -> Sql<()> {
    let (source, stream) = (claim.stream.source.as_str(), claim.stream.stream.as_str());
    let mut params: Vec<Param<'_>> = vec![(&source, Type::TEXT), (&stream, Type::TEXT)];
    params.extend_from_slice(lease);
    db.query(END_SLEEPERS, &params).await.map(drop)
}

async fn at_work(db: &Db, claim: &Claim<'_>) -> Sql<AtWork> {
    let count = "
        SELECT count(*) FILTER (WHERE purpose = 'rescan'), count(*) FILTER (WHERE purpose = 'catchup')
        FROM ingest_segments WHERE source = $1 AND stream = $2 AND status = 'in_progress'";
    let (source, stream) = (claim.stream.source.as_str(), claim.stream.stream.as_str());
    let rows = db.query(count, &[(&source, Type::TEXT), (&stream, Type::TEXT)]).await?;
    Ok(AtWork { rescans: rows[0].try_get(0)?, catchups: rows[0].try_get(1)? })
}

/// They are locked: nobody else has changed them since they were read.
async fn take(db: &Db, claim: &Claim<'_>, segments: &[i64], now: Option<Timestamp>) -> Sql<()> {
    let update = "
        UPDATE ingest_segments SET status = 'in_progress', lease_owner = $2, lease_epoch = lease_epoch + $3,
            heartbeat_at = COALESCE($4, clock_timestamp()), attempts = attempts + 1, next_retry_at = NULL,
            started_at = COALESCE(started_at, $4, clock_timestamp())
        WHERE segment_id = ANY($1)";
    let (owner, step, now) = (claim.owner.as_str(), epoch_step(claim), now.map(Time));
    let params: [Param<'_>; 4] =
        [(&segments, Type::INT8_ARRAY), (&owner, Type::TEXT), (&step, Type::INT8), (&now, Type::TIMESTAMPTZ)];
    db.execute(update, &params).await.map(drop)
}

/// By how much a claim raises the epoch: the core's to say.
fn epoch_step(claim: &Claim<'_>) -> i64 {
    let free = LeaseState { status: SegmentStatus::Pending, owner: None, epoch: Epoch(0), heartbeat_at: None };
    let (state, _) = free.claimed(SegmentId(0), claim.owner, claim.now);
    state.epoch.0
}

async fn due(db: &Db, segments: &[i64], now: Timestamp) -> Sql<Vec<Exception>> {
    let select = format!(
        "SELECT due.* FROM UNNEST($1) AS mine (id), LATERAL (
             SELECT {} FROM ingest_exceptions
             WHERE segment_id = mine.id AND state = 'retry_wait' AND next_retry_at <= $2
             ORDER BY next_retry_at, item_key LIMIT $3
         ) AS due ORDER BY due.next_retry_at, due.item_key",
        exceptions::COLUMNS
    );
    let params =
        [(&segments as _, Type::INT8_ARRAY), (&Time(now) as _, Type::TIMESTAMPTZ), (&DUE_MAX as _, Type::INT8)];
    exceptions::all_of(&db.query(&select, &params).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_abandoned_is_looked_for_until_none_is_left() {
        let (glances, limit) = (Glances::default(), 0);
        let mut look = |had_abandoned| {
            let abandoned = glances.next();
            glances.note(&Handed { segments: Vec::new(), had_abandoned }, limit);
            abandoned == Abandoned::LookedFor
        };
        let found = [true, true, false, false, false, false];
        assert_eq!(found.map(&mut look), [true, true, true, false, true, false], "and every fourth time anyway");
    }
}
