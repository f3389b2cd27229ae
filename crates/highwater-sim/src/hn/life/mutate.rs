//! Single mutations: whom one strikes and how, each a function of the seed and its number.

use std::{collections::hash_map::Entry as Slot, sync::atomic::Ordering, time::Duration};

use bytes::Bytes;

use super::{HnSim, State};
use crate::{
    hn::living::{Living, MutationKind, Wish, choose_for_profile},
    rng::{Purpose, Share, scale},
};

/// How far above an item its new kid is looked for, and how often.
const KID_WITHIN: u64 = 500;
const KID_DRAWS: u64 = 8;

/// Whether `updates` names a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publicity {
    Published,
    Unpublished,
}

/// A body that an object had since a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub at: Duration,
    pub publicity: Publicity,
    pub body: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotMutate {
    #[error("there is no such item yet")]
    Item,
    #[error("there is no such profile")]
    Profile,
    #[error("this item cannot be changed in that way")]
    Kind,
}

impl HnSim {
    pub(super) fn mutate_by_plan(&self, state: &mut State, at: Duration) {
        let plan = &self.plan.mutations;
        let number = state.mutations + 1;
        let draw = |nth| self.world.seed().hash_nth(Purpose::Mutation, number, nth);
        let share = |probability| Share::new(probability).unwrap_or(Share::NONE);
        let unpublished = share(plan.unpublished).hit(draw(0));
        let publicity = if unpublished { Publicity::Unpublished } else { Publicity::Published };
        let Some(id) = self.recent(at, draw(2)) else { return };
        let author = share(plan.profiles).hit(draw(1)).then(|| self.world.author(id)).flatten();
        let changed = match author {
            Some(name) => self.mutate_profile_in(state, &name, publicity, at),
            None => self.mutate_item_in(state, id, None, publicity, at),
        };
        changed.expect("an item that is out can always be changed, and so can its author");
        if publicity == Publicity::Published {
            state.write_at.get_or_insert(self.write_after(at));
        }
    }

    pub(in crate::hn) fn mutate_item_in(
        &self,
        state: &mut State,
        id: u64,
        kind: Option<MutationKind>,
        publicity: Publicity,
        at: Duration,
    ) -> Result<Bytes, CannotMutate> {
        let number = state.mutations + 1;
        let wish = Wish {
            kind,
            number,
            hash: self.world.seed().hash(Purpose::Mutation, number),
            kids: self.kid_candidates(id, number, at),
        };
        let living = match state.items.entry(id) {
            Slot::Occupied(known) => known.into_mut(),
            Slot::Vacant(place) => place.insert(self.living_item(id, at)?),
        };
        let change = living.choose(&wish).ok_or(CannotMutate::Kind)?;
        living.change(change, at, publicity);
        let body = living.body();
        if publicity == Publicity::Published {
            state.unwritten.items.push(id);
        }
        self.count_mutation(state, publicity);
        Ok(body)
    }

    pub(in crate::hn) fn mutate_profile_in(
        &self,
        state: &mut State,
        name: &str,
        publicity: Publicity,
        at: Duration,
    ) -> Result<Bytes, CannotMutate> {
        let number = state.mutations + 1;
        let change = choose_for_profile(number, self.world.seed().hash(Purpose::Mutation, number));
        let living = match state.profiles.entry(name.to_owned()) {
            Slot::Occupied(known) => known.into_mut(),
            Slot::Vacant(place) => {
                let base = self.world.user(name).ok_or(CannotMutate::Profile)?;
                place.insert(Living::new(&base).ok_or(CannotMutate::Profile)?)
            }
        };
        living.change(change, at, publicity);
        let body = living.body();
        if publicity == Publicity::Published {
            state.unwritten.profiles.push(name.to_owned());
        }
        self.count_mutation(state, publicity);
        Ok(body)
    }

    fn count_mutation(&self, state: &mut State, publicity: Publicity) {
        state.mutations += 1;
        self.life.moving.store(true, Ordering::Release);
        self.stats.mutations.fetch_add(1, Ordering::Relaxed);
        if publicity == Publicity::Published {
            self.stats.mutations_published.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn living_item(&self, id: u64, at: Duration) -> Result<Living, CannotMutate> {
        let base = self.world.item(id).filter(|_| id <= self.head.published(at));
        base.and_then(|base| Living::new(&base)).ok_or(CannotMutate::Item)
    }

    /// One of the newest ids whose bodies are out; `None` in an empty world.
    fn recent(&self, at: Duration, draw: u64) -> Option<u64> {
        let (first, newest) = (*self.world.ids().start(), self.head.published(at));
        let window = (newest + 1).checked_sub(first)?.min(u64::from(self.plan.mutations.window_ids.get()));
        (window > 0).then(|| newest - scale(draw, window))
    }

    /// Comments that are out and younger than `id`.
    fn kid_candidates(&self, id: u64, number: u64, at: Duration) -> Vec<u64> {
        let within = self.head.published(at).saturating_sub(id).min(KID_WITHIN);
        let draw = |nth| self.world.seed().hash_nth(Purpose::Mutation, number, 16 + nth);
        let drawn = (0..KID_DRAWS).map(|nth| id + 1 + scale(draw(nth), within)).filter(|_| within > 0);
        drawn.filter(|kid| self.world.is_comment(*kid)).collect()
    }
}
