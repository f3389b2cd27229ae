//! Everything there is on the simulated instance: objects by type and id, what they are tied to, and which of them are
//! in the trash, gone or hidden from the caller. It renders nothing and knows no requests.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};

use super::{kind::LookerType, plan::InstancePlan, template::Template};
use crate::rng::{Purpose, Seed, SplitMix64};

#[derive(Debug)]
pub(super) struct Instance {
    pub(super) seed: Seed,
    pub(super) plan: InstancePlan,
    shelves: Vec<Shelf>,
    edits: u64,
}

#[derive(Debug, Default)]
struct Shelf {
    records: Vec<Record>,
    by_id: HashMap<String, usize>,
    last: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) template: Arc<Template>,
    pub(super) state: State,
    /// Whether the caller may see it.
    pub(super) sight: Sight,
    /// What it belongs to or is made of: its folder, its owner, its queries, its groups.
    pub(super) ties: Vec<Tie>,
    /// How often it was asked for alone.
    pub(super) gets: u32,
}

pub(super) type Tie = (LookerType, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Present,
    Trashed,
    Purged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    Open,
    /// Left out of lists, and 404 when asked for.
    Hidden,
}

impl Record {
    pub(super) fn exists(&self) -> bool {
        self.state != State::Purged
    }

    pub(super) fn is_tied(&self, kind: LookerType, id: &str) -> bool {
        self.ties.iter().any(|(known, tied)| *known == kind && tied == id)
    }

    pub(super) fn tied(&self, kind: LookerType) -> impl Iterator<Item = &str> {
        self.ties.iter().filter(move |(known, _)| *known == kind).map(|(_, id)| id.as_str())
    }
}

impl Instance {
    pub(super) fn empty(seed: Seed, plan: InstancePlan) -> Self {
        Instance { seed, plan, shelves: LookerType::ALL.iter().map(|_| Shelf::default()).collect(), edits: 0 }
    }

    /// What is purged among them.
    pub(super) fn all(&self, kind: LookerType) -> &[Record] {
        &self.shelves[kind.index()].records
    }

    pub(super) fn existing(&self, kind: LookerType) -> impl Iterator<Item = &Record> {
        self.all(kind).iter().filter(|record| record.exists())
    }

    pub(super) fn find(&self, kind: LookerType, id: &str) -> Option<&Record> {
        let shelf = &self.shelves[kind.index()];
        shelf.by_id.get(id).map(|at| &shelf.records[*at]).filter(|record| record.exists())
    }

    pub(super) fn find_mut(&mut self, kind: LookerType, id: &str) -> Option<&mut Record> {
        let shelf = &mut self.shelves[kind.index()];
        shelf.by_id.get(id).map(|at| &mut shelf.records[*at]).filter(|record| record.exists())
    }

    pub(super) fn add(&mut self, kind: LookerType, id: impl Into<String>, body: &Value, ties: Vec<Tie>) -> String {
        let (id, shelf) = (id.into(), &mut self.shelves[kind.index()]);
        let template = Arc::new(Template::new(body.as_object().expect("a body is an object")));
        shelf.by_id.insert(id.clone(), shelf.records.len());
        let (state, sight) = (State::Present, Sight::Open);
        shelf.records.push(Record { id: id.clone(), template, state, sight, ties, gets: 0 });
        id
    }

    /// A number that no other object of this type has.
    pub(super) fn number(&mut self, kind: LookerType) -> u64 {
        let shelf = &mut self.shelves[kind.index()];
        shelf.last += 1;
        shelf.last
    }

    /// Counts another edit.
    pub(super) fn number_of_edits(&mut self) -> u64 {
        self.edits += 1;
        self.edits
    }

    pub(super) fn rng(&self, kind: LookerType, number: u64) -> SplitMix64 {
        SplitMix64::new(self.seed.hash_nth(Purpose::LookerBody, number, kind.index() as u64))
    }

    pub(super) fn change(&mut self, kind: LookerType, id: &str, change: impl FnOnce(&mut Map<String, Value>)) {
        if let Some(record) = self.find_mut(kind, id) {
            let mut object = record.template.object();
            change(&mut object);
            record.template = Arc::new(Template::new(&object));
        }
    }

    /// The first that fits, from a place drawn on.
    pub(super) fn pick(
        &self,
        kind: LookerType,
        rng: &mut SplitMix64,
        fits: impl Fn(&Record) -> bool,
    ) -> Option<&Record> {
        let records = self.all(kind);
        let start = rng.below(records.len() as u64) as usize;
        records[start..].iter().chain(&records[..start]).find(|record| record.state == State::Present && fits(record))
    }

    /// The id of any object of a type.
    pub(super) fn any(&self, kind: LookerType, rng: &mut SplitMix64) -> Option<String> {
        self.pick(kind, rng, |_| true).map(|record| record.id.clone())
    }
}
