//! What goes into a group: the work of a segment behind its lease, or what the feed told.

use std::sync::Arc;

use highwater_core::{Edit, Key, Lease, Record, Settlement, StreamId, Timestamp, schema::Table};

use super::exceptions::Place;
use crate::{Commit, LiveCommit, rules::Arrival};

#[derive(Clone)]
pub(super) enum Job {
    Segment(Arc<Commit>),
    Live(Arc<LiveCommit>),
}

impl Job {
    pub(super) fn stream(&self) -> &StreamId {
        match self {
            Job::Segment(commit) => &commit.stream,
            Job::Live(commit) => &commit.stream,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        match self {
            Job::Segment(commit) => commit.now,
            Job::Live(commit) => commit.now,
        }
    }

    pub(super) fn arrival(&self) -> Arrival {
        match self {
            Job::Segment(commit) => Arrival { now: commit.now, asked_at: commit.asked_at },
            Job::Live(commit) => Arrival { now: commit.now, asked_at: commit.asked_at },
        }
    }

    pub(super) fn lease(&self) -> Option<&Lease> {
        match self {
            Job::Segment(commit) => Some(&commit.lease),
            Job::Live(_) => None,
        }
    }

    pub(super) fn records(&self) -> &[Record] {
        match self {
            Job::Segment(commit) => &commit.records,
            Job::Live(commit) => &commit.records,
        }
    }

    pub(super) fn unchanged(&self) -> &[(Key, &'static Table)] {
        match self {
            Job::Segment(commit) => &commit.unchanged,
            Job::Live(commit) => &commit.unchanged,
        }
    }

    pub(super) fn edits(&self) -> &[(Key, &'static Table, Vec<Edit>)] {
        match self {
            Job::Segment(commit) => &commit.edits,
            Job::Live(_) => &[],
        }
    }

    /// Who is named in the ledger.
    pub(super) fn actor(&self) -> &str {
        match self {
            Job::Segment(commit) => commit.lease.owner.as_str(),
            Job::Live(_) => "feed",
        }
    }

    pub(super) fn settlements(&self) -> &[Settlement] {
        match self {
            Job::Segment(commit) => &commit.settlements,
            Job::Live(_) => &[],
        }
    }

    /// The keys whose exceptions it may change.
    pub(super) fn settled(&self) -> impl Iterator<Item = Place> {
        let keys: Vec<_> = match self {
            Job::Segment(commit) => commit.settlements.iter().map(|settlement| &settlement.key).collect(),
            Job::Live(commit) => commit.keys().collect(),
        };
        keys.into_iter().map(|key| (self.stream().clone(), key.clone()))
    }
}
