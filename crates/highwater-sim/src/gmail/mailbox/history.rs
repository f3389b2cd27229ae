//! The history of a mailbox: what changed, in order, and how far back it reaches.

use std::time::Duration;

use super::Entry;
use crate::{
    gmail::{labels::Labels, plan::HistoryPlan},
    rng::{Purpose, Seed, Share, scale},
};

/// Below it are the ids of the messages that were there at the start.
const FIRST: u64 = 1_000_000;

#[derive(Debug)]
pub(in crate::gmail) struct History {
    seed: Seed,
    gap_max: u64,
    bare: Share,
    swapped: Share,
    expire_after: Option<Duration>,
    expire_at: Option<Duration>,
    records: Vec<Record>,
    base: u64,
    /// Everything up to here was forgotten by hand.
    forgotten: u64,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::gmail) struct Record {
    pub(in crate::gmail) id: u64,
    pub(in crate::gmail) message: u64,
    pub(in crate::gmail) thread: u64,
    pub(in crate::gmail) change: Change,
    /// All labels after the change,
    pub(in crate::gmail) after: Labels,
    /// and whether the record tells them.
    pub(in crate::gmail) told: bool,
    at: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gmail) enum Change {
    Added,
    Deleted,
    Labels { added: Labels, removed: Labels },
}

impl History {
    pub(in crate::gmail) fn new(seed: Seed, plan: &HistoryPlan, messages: u64) -> Self {
        let seconds = |seconds: Option<u32>| seconds.map(|seconds| Duration::from_secs(u64::from(seconds)));
        History {
            seed,
            gap_max: u64::from(plan.gap_max.get()),
            bare: Share::new(plan.bare).unwrap_or(Share::NONE),
            swapped: Share::new(plan.swapped).unwrap_or(Share::NONE),
            expire_after: seconds(plan.expire_after_s),
            expire_at: seconds(plan.expire_at_s),
            records: Vec::new(),
            base: FIRST + messages,
            forgotten: 0,
        }
    }

    /// The mailbox's current id.
    pub(in crate::gmail) fn current(&self) -> u64 {
        self.records.last().map_or(self.base, |record| record.id)
    }

    /// Writes a change down, and gives its id.
    pub(super) fn record(&mut self, entry: &Entry, change: Change, now: Duration) -> u64 {
        let hash = self.seed.hash(Purpose::History, self.records.len() as u64);
        let id = self.current() + 1 + scale(hash, self.gap_max);
        let told = !self.bare.hit(crate::rng::mix(hash));
        let (message, thread, after) = (entry.id, entry.thread, entry.labels);
        self.records.push(Record { id, message, thread, change, after, told, at: now });
        id
    }

    /// What came after `start`; `None` if that is longer ago than anyone remembers, or never was.
    pub(in crate::gmail) fn since(&self, start: u64, now: Duration) -> Option<&[Record]> {
        if start < self.oldest(now) || start > self.current() {
            return None;
        }
        let first = self.records.partition_point(|record| record.id <= start);
        Some(&self.records[first..])
    }

    /// Whether this record stands behind the one that follows it.
    pub(in crate::gmail) fn is_swapped(&self, record: u64) -> bool {
        self.swapped.hit(self.seed.hash(Purpose::History, record | 1 << 62))
    }

    /// From now on only what comes is remembered.
    pub(in crate::gmail) fn forget(&mut self) {
        self.forgotten = self.current();
    }

    fn oldest(&self, now: Duration) -> u64 {
        let aged = self.expire_after.and_then(|after| now.checked_sub(after));
        let cutoff = aged.max(self.expire_at.filter(|at| *at <= now));
        let expired = cutoff.map_or(0, |cutoff| self.records.partition_point(|record| record.at <= cutoff));
        let known = expired.checked_sub(1).map_or(self.base, |last| self.records[last].id);
        known.max(self.forgotten)
    }
}
