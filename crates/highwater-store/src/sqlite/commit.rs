//! What a job brings, behind a check of its lease: rows, verdicts, cursor, ledger lines.

use std::collections::BTreeSet;

use highwater_core::{BatchCounts, Exception, ExceptionState, Purpose, SegmentId, SegmentStatus, Settlement, Verdict};
use rusqlite::{Connection, params};
use serde_json::json;

use super::{
    error::Sql,
    exceptions::{self, Census},
    rows,
    segments::{self, SegmentRow},
    session::Session,
    streams,
};
use crate::{Commit, LedgerEntry};

pub(super) fn commit(session: &mut Session, commit: &Commit) -> Sql<BatchCounts> {
    let segment = segments::held(&session.db, &commit.lease)?;
    let stored = rows::store(session, &commit.records, commit.now)?;
    let mut counts =
        BatchCounts { new: stored.new, changed: stored.changed, unchanged: stored.unchanged, ..BatchCounts::default() };
    let mut touched = BTreeSet::new();
    for settlement in &commit.settlements {
        count(&mut counts, &settlement.verdict);
        settle(session, &segment, commit, settlement, &mut touched)?;
    }
    for id in touched {
        count_unresolved(&session.db, id)?;
        if id != segment.id {
            reconsider(&session.db, id)?;
        }
    }
    note_progress(&session.db, commit, stored.new)?;
    streams::count_stored(&session.db, &commit.stream, stored.new, commit.now)?;
    Ok(counts)
}

fn count(counts: &mut BatchCounts, verdict: &Verdict) {
    match verdict {
        Verdict::Stored => {}
        Verdict::Missing => counts.missing += 1,
        Verdict::Excluded => counts.excluded += 1,
        Verdict::Retry { .. } => counts.retrying += 1,
        Verdict::Dead => counts.dead += 1,
    }
}

/// Writes one verdict; names the segments whose exceptions it changed.
fn settle(
    session: &mut Session,
    segment: &SegmentRow,
    commit: &Commit,
    settlement: &Settlement,
    touched: &mut BTreeSet<SegmentId>,
) -> Sql<()> {
    let before = exceptions::find(&session.db, &commit.stream, &settlement.key)?;
    touched.extend(before.iter().map(|before| before.segment));
    let Some(state) = settlement.verdict.exception_state() else {
        return exceptions::remove(&session.db, &commit.stream, &settlement.key);
    };
    let Some(owner) = owner(&session.db, segment, before.as_ref(), state)? else {
        return Ok(());
    };
    touched.insert(owner);
    exceptions::put(&session.db, &commit.stream, owner, settlement, state, commit.now)?;
    if before.is_none_or(|before| before.state != state) {
        record(session, commit, settlement)?;
    }
    Ok(())
}

/// Whose business the key is from now on. A catch-up segment answers for what it tries, because the frontier relies on
/// it. A rescan takes a key over only from a segment that is done with it; and its failure to look again is no news
/// about a key whose absence was confirmed: `None`.
fn owner(
    db: &Connection,
    segment: &SegmentRow,
    before: Option<&Exception>,
    state: ExceptionState,
) -> Sql<Option<SegmentId>> {
    let Some(before) = before.filter(|before| before.segment != segment.id) else {
        return Ok(Some(segment.id));
    };
    let is_open = |state| matches!(state, ExceptionState::RetryWait | ExceptionState::DeadLetter);
    Ok(match (segment.purpose, is_open(before.state), is_open(state)) {
        (Purpose::Catchup, _, _) => Some(segment.id),
        (Purpose::Rescan, false, true) => None,
        (Purpose::Rescan, _, false) => Some(before.segment),
        (Purpose::Rescan, true, true) => {
            let done = segments::read(db, before.segment)?.is_none_or(|row| row.lease.status == SegmentStatus::Sealed);
            Some(if done { segment.id } else { before.segment })
        }
    })
}

fn record(session: &mut Session, commit: &Commit, settlement: &Settlement) -> Sql<()> {
    let event_type = match settlement.verdict {
        Verdict::Dead => "DEAD_LETTER",
        Verdict::Missing => "KEY_MISSING",
        Verdict::Stored | Verdict::Excluded | Verdict::Retry { .. } => return Ok(()),
    };
    let key = settlement.key.to_string();
    let history = &settlement.history;
    session.append(&LedgerEntry {
        at: commit.now,
        event_type,
        source: commit.stream.source.clone(),
        entity_type: "key",
        payload: json!({
            "stream": commit.stream.stream.as_str(),
            "key": key,
            "reason": settlement.reason,
            "attempts": history.attempts,
            "absences": history.absences,
        }),
        entity_id: key,
        actor: commit.lease.owner.to_string(),
    })
}

pub(super) fn count_unresolved(db: &Connection, id: SegmentId) -> Sql<()> {
    let unresolved = Census::of_segment(db, id)?.tally().unresolved();
    db.prepare_cached("UPDATE ingest_segments SET unresolved_count = ?1 WHERE segment_id = ?2")?
        .execute([unresolved.cast_signed(), id.0])?;
    Ok(())
}

/// Another segment's keys were settled here. Whoever claims it next closes it by the rules, which need the policy and
/// the table of the stream.
pub(super) fn reconsider(db: &Connection, id: SegmentId) -> Sql<()> {
    let status = segments::read(db, id)?.map(|segment| segment.lease.status);
    if matches!(status, Some(SegmentStatus::RetryWait | SegmentStatus::DeadLetter)) {
        segments::put_down(db, id, SegmentStatus::Pending, None)?;
    }
    Ok(())
}

/// The cursor never goes back: jobs of a segment may commit in any order.
fn note_progress(db: &Connection, commit: &Commit, new: u64) -> Sql<()> {
    let last_error = commit.settlements.iter().rev().find_map(|settlement| settlement.last_error.as_deref());
    let cursor = commit.cursor.map(|cursor| cursor.0);
    db.prepare_cached(
        "UPDATE ingest_segments SET stored_count = stored_count + ?1, last_error = COALESCE(?2, last_error),
            scan_cursor = CASE WHEN ?3 > COALESCE(scan_cursor, ?3 - 1) THEN ?3 ELSE scan_cursor END
         WHERE segment_id = ?4",
    )?
    .execute(params![new.cast_signed(), last_error, cursor, commit.lease.segment.0])?;
    Ok(())
}
