//! Handing out segments nobody works on: due retries, then what was abandoned, then the lowest of either purpose. One
//! statement, which passes over what somebody else is just taking.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use futures_util::future::{try_join, try_join3};
use highwater_core::{Epoch, Exception, Lease, LeaseState, SegmentId, SegmentStatus, Timestamp};
use tokio_postgres::types::Type;

use super::{
    cells::Time,
    error::Sql,
    exceptions,
    link::Db,
    segments::{COLUMNS, row_of},
};
use crate::{Claim, Claimed, Wanted};

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

const ABANDONED_TIER: i32 = 2;

const PENDING: &str = "
    SELECT segment_id, status, lease_epoch, 3 AS tier, NULL::timestamptz AS since, start_pos AS start
    FROM ingest_segments WHERE source = $1 AND stream = $2 AND status = 'pending'";

/// `$6` is the time that leases live by, none for the server's clock; they expire `$7` milliseconds after a heartbeat.
/// The predicate is repeated where rows are changed: what was seen is not yet what is locked. What is looked at again
/// gets its `rescan_share`, and more if nothing is new; what is at work is counted only if there is any.
fn statement(abandoned: Abandoned, wanted: Wanted) -> String {
    let (looked_for, again_too) = (abandoned == Abandoned::LookedFor, wanted == Wanted::Anything);
    let columns = COLUMNS.split(',').map(|column| format!("s.{}", column.trim())).collect::<Vec<_>>().join(", ");
    format!(
        "WITH clock AS MATERIALIZED (
             SELECT COALESCE($6, clock_timestamp()) AS now
         ), due AS MATERIALIZED (
             SELECT segment_id, status, lease_epoch, 1 AS tier, next_retry_at AS since, 0::bigint AS start
             FROM ingest_segments
             WHERE source = $1 AND stream = $2 AND status = 'retry_wait' AND next_retry_at <= $5
             ORDER BY next_retry_at, segment_id LIMIT $4 FOR UPDATE SKIP LOCKED
         ), expired AS MATERIALIZED (
             SELECT segment_id, status, lease_epoch, {ABANDONED_TIER} AS tier, heartbeat_at AS since, 0::bigint AS start
             FROM ingest_segments
             WHERE source = $1 AND stream = $2 AND status = 'in_progress'
               AND {looked_for} AND heartbeat_at <= (SELECT now FROM clock) - $7 * interval '1 millisecond'
             ORDER BY heartbeat_at, segment_id LIMIT $4 - (SELECT count(*) FROM due) FOR UPDATE SKIP LOCKED
         ), left_over AS MATERIALIZED (
             SELECT $4 - (SELECT count(*) FROM due) - (SELECT count(*) FROM expired) AS most
         ), share AS MATERIALIZED (
             SELECT CASE WHEN EXISTS ({PENDING} AND purpose = 'rescan' AND {again_too}) THEN (
                 SELECT GREATEST(0, LEAST(most, (most + 1 + catchups - rescans) / 2)) FROM (
                     SELECT count(*) FILTER (WHERE purpose = 'rescan') AS rescans,
                         count(*) FILTER (WHERE purpose = 'catchup') AS catchups
                     FROM ingest_segments WHERE source = $1 AND stream = $2 AND status = 'in_progress'
                 ) AS at_work
             ) ELSE 0 END AS rescans FROM left_over
         ), again AS MATERIALIZED (
             {PENDING} AND purpose = 'rescan' AND {again_too}
             ORDER BY start_pos, segment_id LIMIT (SELECT rescans FROM share) FOR UPDATE SKIP LOCKED
         ), new AS MATERIALIZED (
             {PENDING} AND purpose = 'catchup' ORDER BY start_pos, segment_id
             LIMIT (SELECT most FROM left_over) - (SELECT count(*) FROM again) FOR UPDATE SKIP LOCKED
         ), more AS MATERIALIZED (
             {PENDING} AND purpose = 'rescan' AND {again_too} AND segment_id NOT IN (SELECT segment_id FROM again)
             ORDER BY start_pos, segment_id
             LIMIT (SELECT most FROM left_over) - (SELECT count(*) FROM again) - (SELECT count(*) FROM new)
             FOR UPDATE SKIP LOCKED
         ), chosen AS (
             SELECT * FROM due UNION ALL SELECT * FROM expired UNION ALL SELECT * FROM again
             UNION ALL SELECT * FROM new UNION ALL SELECT * FROM more
         )
         UPDATE ingest_segments AS s SET status = 'in_progress', lease_owner = $3, lease_epoch = s.lease_epoch + $8,
             heartbeat_at = clock.now, started_at = COALESCE(s.started_at, clock.now), attempts = s.attempts + 1,
             next_retry_at = NULL
         FROM chosen, clock
         WHERE s.segment_id = chosen.segment_id AND s.status = chosen.status AND s.lease_epoch = chosen.lease_epoch
         RETURNING {columns}, chosen.tier, chosen.since, chosen.start"
    )
}

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

/// `now` is none for the server's clock. Retries are due by the caller's, who set their time.
pub(super) async fn claim(db: &Db, claim: &Claim<'_>, now: Option<Timestamp>, abandoned: Abandoned) -> Sql<Handed> {
    let (source, stream) = (claim.stream.source.as_str(), claim.stream.stream.as_str());
    let ttl = i32::try_from(claim.lease_ttl.as_millis()).unwrap_or(i32::MAX);
    let (owner, limit) = (claim.owner.as_str(), i64::from(claim.limit));
    let params = [
        (&source as _, Type::TEXT),
        (&stream as _, Type::TEXT),
        (&owner as _, Type::TEXT),
        (&limit as _, Type::INT8),
        (&Time(claim.now) as _, Type::TIMESTAMPTZ),
        (&now.map(Time) as _, Type::TIMESTAMPTZ),
        (&ttl as _, Type::INT4),
        (&epoch_step(claim) as _, Type::INT8),
    ];
    let statement = statement(abandoned, claim.wanted);
    let ending = async {
        match abandoned {
            Abandoned::LookedFor => {
                let params = [&params[0], &params[1], &params[5], &params[6]].map(Clone::clone);
                db.query(END_SLEEPERS, &params).await.map(drop)
            }
            Abandoned::Passed => Ok(()),
        }
    };
    let ((), rows, ()) = try_join3(db.begin_lightly(), db.query(&statement, &params), ending).await?;
    let mut claimed = Vec::with_capacity(rows.len());
    for row in &rows {
        let rank = (row.try_get::<_, i32>(11)?, super::cells::time(row, 12)?, row.try_get::<_, i64>(13)?);
        claimed.push((rank, row_of(row)?));
    }
    claimed.sort_by_key(|(rank, segment)| (*rank, segment.id));
    let had_abandoned = claimed.iter().any(|((tier, ..), _)| *tier == ABANDONED_TIER);
    let ids: Vec<_> = claimed.iter().map(|(_, segment)| segment.id.0).collect();
    let (due, ()) = try_join(due(db, &ids, claim.now), db.commit()).await?;
    let hand_out = |(_, segment): (_, crate::rules::SegmentRow)| Claimed {
        lease: Lease { segment: segment.id, owner: claim.owner.clone(), epoch: segment.lease.epoch },
        purpose: segment.purpose,
        span: segment.span,
        cursor: segment.cursor,
        attempts: segment.attempts.saturating_sub(1),
        due: due.iter().filter(|exception| exception.segment == segment.id).cloned().collect(),
    };
    Ok(Handed { segments: claimed.into_iter().map(hand_out).collect(), had_abandoned })
}

/// By how much a claim raises the epoch: the core's to say.
fn epoch_step(claim: &Claim<'_>) -> i64 {
    let free = LeaseState { status: SegmentStatus::Pending, owner: None, epoch: Epoch(0), heartbeat_at: None };
    let (state, _) = free.claimed(SegmentId(0), claim.owner, claim.now);
    state.epoch.0
}

async fn due(db: &Db, segments: &[i64], now: Timestamp) -> Sql<Vec<Exception>> {
    if segments.is_empty() {
        return Ok(Vec::new());
    }
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
