//! What happens to the instance by itself, as time goes by or as requests come in: edits, new objects, deletions.

mod cues;

use std::time::Duration;

use super::{
    Inside, LookerSim,
    build::LOOKML,
    instance::State,
    kind::{Bin, LookerType},
    plan::LookerMutations,
};
use crate::rng::{Purpose, Seed, SplitMix64};

pub(super) use self::cues::Cues;

/// A mutation clock: how often something has happened.
#[derive(Debug)]
pub(super) struct Life {
    plan: LookerMutations,
    /// By the clock.
    struck: u64,
    /// Requests since the last change that came with one.
    waited: u32,
    /// Draws so far.
    draws: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Edit,
    Insert,
    Trash,
    Purge,
}

impl Change {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Change::Edit => "edit",
            Change::Insert => "insert",
            Change::Trash => "trash",
            Change::Purge => "purge",
        }
    }
}

impl Life {
    pub(super) fn new(plan: &LookerMutations) -> Self {
        Life { plan: plan.clone(), struck: 0, waited: 0, draws: 0 }
    }

    /// Since when another change is due by the clock.
    fn due(&mut self, now: Duration) -> Option<Duration> {
        let every = u64::from(self.plan.every_ms?.get());
        let due = Duration::from_millis(every * (self.struck + 1));
        if due > now || self.is_over(due) {
            return None;
        }
        self.struck += 1;
        Some(due)
    }

    fn due_by_requests(&mut self, now: Duration) -> bool {
        let Some(every) = self.plan.every_requests else { return false };
        self.waited += 1;
        if self.waited < every.get() || self.is_over(now) {
            return false;
        }
        self.waited = 0;
        true
    }

    fn is_over(&self, at: Duration) -> bool {
        let stop = self.plan.stop_after_ms.map_or(Duration::MAX, |ms| Duration::from_millis(u64::from(ms)));
        at > stop || self.plan.most.is_some_and(|most| self.draws >= u64::from(most))
    }

    fn draw(&mut self, seed: Seed) -> Option<(SplitMix64, LookerType, Change)> {
        self.draws += 1;
        let mut rng = SplitMix64::new(seed.hash(Purpose::LookerLife, self.draws));
        let kinds = &self.plan.types;
        let kind = *kinds.get(rng.below(kinds.len() as u64) as usize)?;
        let weights = [
            (Change::Edit, self.plan.edit),
            (Change::Insert, self.plan.insert),
            (Change::Trash, self.plan.trash),
            (Change::Purge, self.plan.purge),
        ];
        let mut place = rng.below(weights.iter().map(|(_, weight)| u64::from(*weight)).sum());
        let change = weights.into_iter().find(|(_, weight)| {
            let hit = place < u64::from(*weight);
            place = place.saturating_sub(u64::from(*weight));
            hit
        });
        Some((rng, kind, change?.0))
    }
}

impl LookerSim {
    /// Everything that was due until `now`.
    pub(super) fn live(&self, inside: &mut Inside, now: Duration) {
        while let Some(at) = inside.life.due(now) {
            self.strike(inside, at);
        }
    }

    pub(super) fn live_by_requests(&self, inside: &mut Inside, now: Duration) {
        if inside.life.due_by_requests(now) {
            self.strike(inside, now);
        }
    }

    fn strike(&self, inside: &mut Inside, at: Duration) {
        let Some((mut rng, kind, change)) = inside.life.draw(self.seed) else { return };
        let wall = self.wall(at);
        let chosen = inside.instance.pick(kind, &mut rng, |record| !stays(&record.id));
        let chosen = chosen.map(|record| record.id.clone());
        let instance = &mut inside.instance;
        match (change, chosen) {
            (Change::Insert, _) => drop(instance.insert(kind, wall)),
            (Change::Edit, Some(id)) => instance.edit(kind, &id, None, wall),
            (Change::Trash, Some(id)) => instance.trash(kind, &id, wall),
            (Change::Purge, Some(id)) => {
                let trashed = instance.all(kind).iter().find(|record| record.state == State::Trashed);
                let emptied =
                    trashed.filter(|_| kind.bin() == Bin::Trash && rng.chance(1, 2)).map(|one| one.id.clone());
                instance.purge(kind, &emptied.unwrap_or(id));
            }
            (_, None) => return,
        }
        inside.counts.count_mutation(change.as_str());
    }
}

/// The roots of the tree, the caller, and what everybody is in.
fn stays(id: &str) -> bool {
    ["1", "2", "3", LOOKML].contains(&id)
}
