//! The mailbox: every message that ever was, its labels, its place in lists, and the history of changes. Bodies are not
//! kept, but for those that were uploaded.

mod build;
mod history;

use std::{
    collections::{BTreeMap, HashMap},
    ops::RangeBounds,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;

pub(super) use self::history::{Change, History, Record};
use super::{
    labels::{Catalogue, Labels},
    letter::{Author, Letter, Nature},
    plan::GmailPlan,
};
use crate::rng::{Purpose, Seed, Share, scale};

/// How far a message may stand off its place in lists.
pub(super) const INVERSION_MAX_MS: i64 = 6 * 3_600_000;

#[derive(Debug)]
pub(super) struct Mailbox {
    seed: Seed,
    pub(super) author: Arc<Author>,
    pub(super) catalogue: Catalogue,
    pub(super) history: History,
    entries: Vec<Entry>,
    by_id: HashMap<u64, usize>,
    /// By place in lists; only what is there.
    order: BTreeMap<Place, usize>,
    threads: HashMap<u64, Vec<usize>>,
    inversions: Share,
}

/// Where a message stands in lists, oldest first.
pub(super) type Place = (i64, u64);

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: u64,
    pub(super) thread: u64,
    pub(super) letter: Letter,
    pub(super) labels: Labels,
    pub(super) history: u64,
    pub(super) state: State,
    pub(super) gets: u32,
    upload: Option<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Present,
    /// At this time of the simulation.
    Deleted(Duration),
}

impl Entry {
    /// Milliseconds since 1970.
    pub(super) const fn date(&self) -> i64 {
        self.letter.date
    }

    pub(super) fn raw(&self, author: &Author) -> Bytes {
        self.upload.clone().unwrap_or_else(|| author.raw(&self.letter).into())
    }

    pub(super) fn header_date(&self, author: &Author) -> i64 {
        author.header_date(&self.letter).unwrap_or(self.letter.date)
    }
}

/// A message to be.
pub(super) struct Arrival {
    pub(super) nature: Nature,
    /// `internalDate`, milliseconds.
    pub(super) date: i64,
    pub(super) labels: Labels,
    pub(super) thread: Option<u64>,
    pub(super) upload: Option<Bytes>,
}

impl Mailbox {
    pub(super) fn generated(seed: Seed, messages: u64, plan: &GmailPlan) -> Self {
        build::mailbox(seed, messages, plan)
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Messages that are there, by id.
    pub(super) fn find(&self, id: u64) -> Option<&Entry> {
        self.entries.get(*self.by_id.get(&id)?).filter(|entry| entry.state == State::Present)
    }

    /// Whatever there is or was, and how often it was asked for before.
    pub(super) fn count_get(&mut self, id: u64) -> Option<u32> {
        let entry = self.entries.get_mut(*self.by_id.get(&id)?)?;
        entry.gets += 1;
        Some(entry.gets - 1)
    }

    /// Newest first, from a range of places.
    pub(super) fn listed(&self, range: impl RangeBounds<Place>) -> impl Iterator<Item = (Place, &Entry)> {
        self.order.range(range).rev().map(|(place, at)| (*place, &self.entries[*at]))
    }

    pub(super) fn thread(&self, id: u64) -> Vec<&Entry> {
        let members = self.threads.get(&id).into_iter().flatten().map(|at| &self.entries[*at]);
        members.filter(|entry| entry.state == State::Present).collect()
    }

    /// Adds a message, and gives its id.
    pub(super) fn arrive(&mut self, arrival: Arrival, wall: i64, now: Duration) -> u64 {
        let number = self.entries.len() as u64;
        let letter = Letter { number, nature: arrival.nature, date: arrival.date, parent: None };
        let id = self.free_id(wall, number);
        let entry = Entry {
            id,
            thread: arrival.thread.unwrap_or(id),
            letter,
            labels: arrival.labels,
            history: 0,
            state: State::Present,
            gets: 0,
            upload: arrival.upload,
        };
        let at = self.insert(entry);
        self.record(at, Change::Added, now);
        id
    }

    /// For good. False if there is no such message.
    pub(super) fn delete(&mut self, id: u64, now: Duration) -> bool {
        let Some(at) = self.position(id) else { return false };
        self.record(at, Change::Deleted, now);
        let entry = &mut self.entries[at];
        entry.state = State::Deleted(now);
        let place = self.place(at);
        self.order.remove(&place);
        true
    }

    /// False if there is no such message. What changes nothing leaves no record.
    pub(super) fn relabel(&mut self, id: u64, add: Labels, remove: Labels, now: Duration) -> bool {
        let Some(at) = self.position(id) else { return false };
        let before = self.entries[at].labels;
        let after = (before | add).without(remove.without(add));
        self.entries[at].labels = after;
        let (added, removed) = (after.without(before), before.without(after));
        if !(added.is_empty() && removed.is_empty()) {
            self.record(at, Change::Labels { added, removed }, now);
        }
        true
    }

    fn position(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).copied().filter(|at| self.entries[*at].state == State::Present)
    }

    fn record(&mut self, at: usize, change: Change, now: Duration) {
        let entry = &mut self.entries[at];
        entry.history = self.history.record(entry, change, now);
    }

    fn insert(&mut self, entry: Entry) -> usize {
        let at = self.entries.len();
        self.by_id.insert(entry.id, at);
        self.threads.entry(entry.thread).or_default().push(at);
        self.entries.push(entry);
        let place = self.place(at);
        self.order.insert(place, at);
        at
    }

    fn place(&self, at: usize) -> Place {
        self.place_of(&self.entries[at])
    }

    pub(super) fn place_of(&self, entry: &Entry) -> Place {
        let hash = self.seed.hash(Purpose::List, entry.letter.number);
        let shift = if self.inversions.hit(hash) {
            scale(crate::rng::mix(hash), 2 * INVERSION_MAX_MS as u64) as i64 - INVERSION_MAX_MS
        } else {
            0
        };
        (entry.date() + shift, entry.id)
    }

    /// Ids begin with the time at which Gmail got the message, as the real ones do.
    fn free_id(&self, wall: i64, number: u64) -> u64 {
        let mut id = (wall.max(0) as u64) << 20 | self.seed.hash(Purpose::Nature, number | 1 << 50) >> 44;
        while self.by_id.contains_key(&id) {
            id += 1;
        }
        id
    }
}

pub(super) fn hex(id: u64) -> String {
    format!("{id:016x}")
}
