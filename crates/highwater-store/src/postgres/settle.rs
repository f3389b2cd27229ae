//! The verdicts of a group on keys, one after the other in memory, then written all at once.

use std::collections::{BTreeMap, BTreeSet};

use highwater_core::{BatchCounts, Exception, ExceptionState, SegmentId, SegmentStatus, Settlement};

use super::{
    error::{Fault, Sql},
    exceptions::{Changes, Place},
    job::Job,
    link::Db,
    segments::{self, Locked},
};
use crate::{
    Commit, LedgerEntry,
    rules::{self, SegmentRow, Stored},
};

pub(super) struct Settling<'a> {
    locked: &'a Locked,
    /// As they were before the group.
    before: BTreeSet<Place>,
    /// As they are after what was settled so far: none if there is no exception any more.
    now: BTreeMap<Place, Option<Exception>>,
    changed: BTreeSet<Place>,
    touched: BTreeSet<SegmentId>,
    /// Segments that are not those of the jobs that touched them.
    reconsidered: BTreeSet<SegmentId>,
    pub(super) entries: Vec<LedgerEntry>,
}

impl<'a> Settling<'a> {
    pub(super) fn new(locked: &'a Locked, seen: Vec<(Place, Exception)>) -> Self {
        Settling {
            locked,
            before: seen.iter().map(|(place, _)| place.clone()).collect(),
            now: seen.into_iter().map(|(place, exception)| (place, Some(exception))).collect(),
            changed: BTreeSet::new(),
            touched: BTreeSet::new(),
            reconsidered: BTreeSet::new(),
            entries: Vec::new(),
        }
    }

    pub(super) fn settle(&mut self, job: &Job, stored: &Stored, counts: &mut BatchCounts) -> Sql<()> {
        match job {
            Job::Segment(commit) => self.settle_all(commit, stored, counts)?,
            Job::Live(_) => {
                job.settled().filter(|(_, key)| !stored.behind.contains(key)).for_each(|place| self.end(place));
            }
        }
        Ok(())
    }

    /// A row came in by itself: the key is stored, whatever was thought of it.
    fn end(&mut self, place: Place) {
        let before = self.now.get(&place).and_then(Option::as_ref);
        if let Some(before) = before.filter(|before| rules::is_ended_by_row(before.state)) {
            let owner = before.segment;
            self.touched.insert(owner);
            self.reconsidered.insert(owner);
            self.now.insert(place.clone(), None);
            self.changed.insert(place);
        }
    }

    fn settle_all(&mut self, commit: &Commit, stored: &Stored, counts: &mut BatchCounts) -> Sql<()> {
        let locked = self.locked;
        let segment = locked.get(&commit.lease.segment).ok_or(Fault::Raced)?;
        for settlement in commit.settlements.iter().filter(|settlement| !stored.leaves_open(settlement)) {
            let place = (commit.stream.clone(), settlement.key.clone());
            let before = self.now.get(&place).cloned().flatten();
            if !rules::is_outrun(before.as_ref(), settlement, commit.asked_at) {
                rules::count(counts, &settlement.verdict);
                self.settle_one(commit, segment, settlement, place, before)?;
            }
        }
        Ok(())
    }

    fn settle_one(
        &mut self,
        commit: &Commit,
        segment: &SegmentRow,
        settlement: &Settlement,
        place: Place,
        before: Option<Exception>,
    ) -> Sql<()> {
        if let Some(before) = &before {
            self.touch(segment.id, before.segment);
        }
        let Some(state) = settlement.verdict.exception_state() else {
            if before.is_some() {
                self.now.insert(place.clone(), None);
                self.changed.insert(place);
            }
            return Ok(());
        };
        let status_of = |id| self.locked.get(&id).map(|row| Some(row.lease.status)).ok_or(Fault::Raced);
        let Some(owner) = rules::owner(segment, before.as_ref(), state, status_of)? else {
            return Ok(());
        };
        self.touch(segment.id, owner);
        if before.as_ref().is_none_or(|before| before.state != state) {
            self.entries.extend(rules::ledger_entry(commit, settlement));
        }
        let exception = written(commit, settlement, state, owner, before.as_ref());
        if before.as_ref() != Some(&exception) {
            self.now.insert(place.clone(), Some(exception));
            self.changed.insert(place);
        }
        Ok(())
    }

    fn touch(&mut self, by: SegmentId, id: SegmentId) {
        self.touched.insert(id);
        if id != by {
            self.reconsidered.insert(id);
        }
    }

    pub(super) async fn write(&self, db: &Db) -> Sql<()> {
        if self.changed.is_empty() && self.touched.is_empty() {
            return Ok(());
        }
        let mut changes = Changes::default();
        for place in &self.changed {
            match (self.now.get(place).and_then(Option::as_ref), self.before.contains(place)) {
                (Some(exception), true) => changes.updated.push((place, exception)),
                (Some(exception), false) => changes.added.push((place, exception)),
                (None, true) => changes.removed.push(place),
                (None, false) => {}
            }
        }
        changes.write(db).await?;
        segments::count_unresolved(db, &self.touched).await?;
        segments::put_down(db, &reconsidered(self.locked, &self.reconsidered)).await
    }
}

/// Those of the segments that somebody has to close again.
pub(super) fn reconsidered(
    locked: &Locked,
    ids: &BTreeSet<SegmentId>,
) -> Vec<(SegmentId, SegmentStatus, Option<highwater_core::Timestamp>)> {
    let rows = ids.iter().filter_map(|id| locked.get(id));
    let asked = rows.filter(|row| rules::is_to_be_reconsidered(row.lease.status));
    asked.map(|row| (row.id, SegmentStatus::Pending, None)).collect()
}

fn written(
    commit: &Commit,
    settlement: &Settlement,
    state: ExceptionState,
    owner: SegmentId,
    before: Option<&Exception>,
) -> Exception {
    Exception {
        key: settlement.key.clone(),
        segment: owner,
        state,
        history: settlement.history.clone(),
        first_seen_at: before.map_or(commit.now, |before| before.first_seen_at),
        last_tried_at: commit.now,
        next_retry_at: rules::next_retry(&settlement.verdict),
        reason: settlement.reason.into(),
        last_error: settlement.last_error.clone(),
    }
}
