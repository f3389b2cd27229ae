//! What a job brings, behind a check of its lease: rows, verdicts, cursor, ledger lines.

use std::collections::BTreeSet;

use highwater_core::{
    BatchCounts, Exception, Key, Record, SegmentId, SegmentStatus, Settlement, StreamId, schema::Table,
};
use rusqlite::{Connection, params};

use super::{
    ages,
    edits::{self, Edited},
    error::Sql,
    exceptions, rows, segments,
    session::Session,
    streams,
};
use crate::{
    Commit, LiveCommit, LiveCommitted,
    rules::{self, Arrival, SegmentRow, Stored},
};

pub(super) fn commit(session: &mut Session, commit: &Commit) -> Sql<BatchCounts> {
    let segment = segments::held(&session.db, &commit.lease)?;
    let arrival = Arrival { now: commit.now, asked_at: commit.asked_at };
    let actor = commit.lease.owner.as_str();
    let mut stored = bring(session, &commit.stream, &commit.records, &commit.unchanged, arrival, actor)?;
    edit(session, commit, &mut stored)?;
    let mut counts = stored.counts();
    let mut touched = BTreeSet::new();
    for settlement in &commit.settlements {
        let before = exceptions::find(&session.db, &commit.stream, &settlement.key)?;
        if stored.leaves_open(settlement) || rules::is_outrun(before.as_ref(), settlement, commit.asked_at) {
            continue;
        }
        rules::count(&mut counts, &settlement.verdict);
        settle(session, &segment, commit, settlement, before, &mut touched)?;
    }
    for id in touched {
        count_unresolved(&session.db, id)?;
        if id != segment.id {
            reconsider(&session.db, id)?;
        }
    }
    note_progress(&session.db, commit, &stored)?;
    Ok(counts)
}

/// What the remote told by itself: no lease stands behind it.
pub(super) fn commit_live(session: &mut Session, commit: &LiveCommit) -> Sql<LiveCommitted> {
    let arrival = Arrival { now: commit.now, asked_at: commit.asked_at };
    let stored = bring(session, &commit.stream, &commit.records, &commit.unchanged, arrival, FEED)?;
    streams::count_stored(&session.db, &commit.stream, stored.new, commit.now)?;
    let mut touched = BTreeSet::new();
    for key in commit.keys().filter(|key| !stored.behind.contains(key)) {
        let ended = exceptions::find(&session.db, &commit.stream, key)?;
        if let Some(ended) = ended.filter(|exception| rules::is_ended_by_row(exception.state)) {
            exceptions::remove(&session.db, &commit.stream, key)?;
            touched.insert(ended.segment);
        }
    }
    for id in touched {
        count_unresolved(&session.db, id)?;
        reconsider(&session.db, id)?;
    }
    Ok(LiveCommitted { batch: stored.counts(), ages: stored.ages, behind: stored.behind })
}

/// Rows, and what the stream's books say of them.
fn bring(
    session: &mut Session,
    stream: &StreamId,
    records: &[Record],
    unchanged: &[(Key, &'static Table)],
    arrival: Arrival,
    actor: &str,
) -> Sql<Stored> {
    let mut stored = rows::store(session, records, arrival)?;
    rows::confirm(session, unchanged, arrival, &mut stored)?;
    for note in std::mem::take(&mut stored.notes) {
        session.append(&rules::note_entry(stream, note, arrival.now, actor))?;
    }
    edits::refresh(session, stream, std::mem::take(&mut stored.groups), arrival.now, actor)?;
    ages::add(&session.db, stream, &stored.ages.counts)?;
    Ok(stored)
}

/// Who wrote what no lease stands behind.
const FEED: &str = "feed";

/// Changes rows by what is known of them without their body.
fn edit(session: &mut Session, commit: &Commit, stored: &mut Stored) -> Sql<()> {
    let mut edited = Edited::default();
    for (key, table, edits) in &commit.edits {
        edits::edit(session, table, key, edits, commit.now, &mut edited)?;
    }
    stored.changed += edited.edited;
    edits::refresh(session, &commit.stream, edited.groups, commit.now, commit.lease.owner.as_str())
}

/// Writes one verdict; names the segments whose exceptions it changed.
fn settle(
    session: &mut Session,
    segment: &SegmentRow,
    commit: &Commit,
    settlement: &Settlement,
    before: Option<Exception>,
    touched: &mut BTreeSet<SegmentId>,
) -> Sql<()> {
    touched.extend(before.iter().map(|before| before.segment));
    let Some(state) = settlement.verdict.exception_state() else {
        return exceptions::remove(&session.db, &commit.stream, &settlement.key);
    };
    let status_of = |id| -> Sql<_> { Ok(segments::read(&session.db, id)?.map(|row| row.lease.status)) };
    let Some(owner) = rules::owner(segment, before.as_ref(), state, status_of)? else {
        return Ok(());
    };
    touched.insert(owner);
    exceptions::put(&session.db, &commit.stream, owner, settlement, state, commit.now)?;
    if before.is_none_or(|before| before.state != state)
        && let Some(entry) = rules::ledger_entry(commit, settlement)
    {
        session.append(&entry)?;
    }
    Ok(())
}

pub(super) fn count_unresolved(db: &Connection, id: SegmentId) -> Sql<()> {
    let unresolved = exceptions::census(db, id)?.tally().unresolved();
    db.prepare_cached("UPDATE ingest_segments SET unresolved_count = ?1 WHERE segment_id = ?2")?
        .execute([unresolved.cast_signed(), id.0])?;
    Ok(())
}

/// Another segment's keys were settled here.
pub(super) fn reconsider(db: &Connection, id: SegmentId) -> Sql<()> {
    let status = segments::read(db, id)?.map(|segment| segment.lease.status);
    if status.is_some_and(rules::is_to_be_reconsidered) {
        segments::put_down(db, id, SegmentStatus::Pending, None)?;
    }
    Ok(())
}

/// The cursor never goes back: jobs of a segment may commit in any order. Nor does it pass what is to be asked for again.
fn note_progress(db: &Connection, commit: &Commit, stored: &Stored) -> Sql<()> {
    let last_error = commit.settlements.iter().rev().find_map(|settlement| settlement.last_error.as_deref());
    let cursor = commit.cursor.filter(|_| stored.behind.is_empty()).map(|cursor| cursor.0);
    db.prepare_cached(
        "UPDATE ingest_segments SET stored_count = stored_count + ?1, uncounted = uncounted + ?1,
            last_error = COALESCE(?2, last_error),
            scan_cursor = CASE WHEN ?3 > COALESCE(scan_cursor, ?3 - 1) THEN ?3 ELSE scan_cursor END,
            seen_count = seen_count + ?5, changed_count = changed_count + ?6
         WHERE segment_id = ?4",
    )?
    .execute(params![
        stored.new.cast_signed(),
        last_error,
        cursor,
        commit.lease.segment.0,
        stored.seen().cast_signed(),
        stored.changed.cast_signed(),
    ])?;
    Ok(())
}
