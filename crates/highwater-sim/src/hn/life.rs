//! What happens to the world as time goes by: growth, mutations, writes of `updates`. Events that are due are made to
//! happen, in order, whenever somebody looks; nothing here reads a clock.

mod log;
mod mutate;

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::watch;

pub(super) use self::log::{Entry, Log};
pub use self::mutate::{CannotMutate, Publicity, Version};
use super::{HnSim, json::Json, lists, living::Living};
use crate::plan::MutationPlan;

#[derive(Debug)]
pub(super) struct Life {
    /// Requests come on many threads, and all must see what happens in one order.
    state: Mutex<State>,
    /// False while every body is as the world has it; requests for items then take no lock.
    moving: AtomicBool,
    down_until_nanos: AtomicU64,
    /// Tells streams that something was done by hand, which no schedule announces.
    woken: watch::Sender<()>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Until when growth is in the log; `None` while nobody is interested.
    grown_until: Option<Duration>,
    mutations_planned: u64,
    mutations: u64,
    items: HashMap<u64, Living>,
    profiles: HashMap<String, Living>,
    unwritten: Unwritten,
    write_at: Option<Duration>,
    updates: Option<Bytes>,
    pub(super) log: Log,
    pub(super) silent: bool,
}

/// What the next write of `updates` will name.
#[derive(Debug, Default)]
struct Unwritten {
    items: Vec<u64>,
    profiles: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Due {
    Growth,
    Mutation,
    Write,
}

impl Life {
    pub(super) fn new(plan: &MutationPlan) -> Self {
        let moving = plan.every_ms.is_some();
        let state = State { grown_until: moving.then_some(Duration::ZERO), ..State::default() };
        Life {
            state: Mutex::new(state),
            moving: AtomicBool::new(moving),
            down_until_nanos: AtomicU64::new(0),
            woken: watch::Sender::default(),
        }
    }

    pub(super) fn woken(&self) -> watch::Receiver<()> {
        self.woken.subscribe()
    }

    pub(super) fn wake(&self) {
        self.woken.send_replace(());
    }

    pub(super) fn is_down(&self, now: Duration) -> bool {
        now.as_nanos() < u128::from(self.down_until_nanos.load(Ordering::Relaxed))
    }

    pub(super) fn go_down(&self, until: Duration) {
        self.down_until_nanos.store(u64::try_from(until.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn is_moving(&self) -> bool {
        self.moving.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HnSim {
    /// The state of things, with everything done that was due.
    pub(super) fn live(&self, now: Duration) -> MutexGuard<'_, State> {
        let mut state = self.life.lock();
        state.grown_until.get_or_insert(now);
        while let Some((at, due)) = self.next_due(&state).filter(|(at, _)| *at <= now) {
            self.happen(&mut state, due, at);
        }
        state
    }

    /// When something happens next, if nobody interferes.
    pub(super) fn next_event(&self, state: &State) -> Option<Duration> {
        self.next_due(state).map(|(at, _)| at)
    }

    /// The body of an item as it is now, as far as anybody has looked.
    pub(super) fn item_body(&self, id: u64) -> Option<Bytes> {
        if !self.life.is_moving() {
            return self.world.item(id);
        }
        self.item_in(&self.life.lock(), id)
    }

    pub(super) fn item_in(&self, state: &State, id: u64) -> Option<Bytes> {
        state.items.get(&id).map(Living::body).or_else(|| self.world.item(id))
    }

    pub(super) fn user_in(&self, state: &State, name: &str) -> Option<Bytes> {
        state.profiles.get(name).map(Living::body).or_else(|| self.world.user(name))
    }

    /// Until its first write, `updates` names some of the newest.
    pub(super) fn updates_in(&self, state: &State) -> Bytes {
        let first = || lists::updates(&self.world, self.head.max_item(Duration::ZERO)).into();
        state.updates.clone().unwrap_or_else(first)
    }

    /// The body of an item at `time`, which must be past: its first body and the changes until then.
    pub fn item_at(&self, id: u64, time: Duration) -> Option<Bytes> {
        let base = self.world.item(id)?;
        match self.live(time).items.get(&id) {
            Some(living) => living.body_at(&base, time),
            None => Some(base),
        }
    }

    /// The bodies an item had until `now`: the first, and one for each change.
    pub fn item_versions(&self, id: u64, now: Duration) -> Option<(Bytes, Vec<Version>)> {
        let base = self.world.item(id)?;
        let changed = self.live(now).items.get(&id).map(|living| living.versions(&base)).unwrap_or_default();
        Some((base, changed))
    }

    /// The bodies a profile had until `now`: the first, and one for each change.
    pub fn user_versions(&self, name: &str, now: Duration) -> Option<(Bytes, Vec<Version>)> {
        let base = self.world.user(name)?;
        let changed = self.live(now).profiles.get(name).map(|living| living.versions(&base)).unwrap_or_default();
        Some((base, changed))
    }

    pub(super) fn profiles_changed(&self, now: Duration) -> Vec<String> {
        let mut names: Vec<String> = self.live(now).profiles.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    fn next_due(&self, state: &State) -> Option<(Duration, Due)> {
        let growth = state.grown_until.and_then(|until| self.head.next_growth(until));
        let candidates =
            [(growth, Due::Growth), (self.next_mutation(state), Due::Mutation), (state.write_at, Due::Write)];
        candidates.into_iter().filter_map(|(at, due)| Some((at?, due))).min_by_key(|(at, _)| *at)
    }

    fn next_mutation(&self, state: &State) -> Option<Duration> {
        let plan = &self.plan.mutations;
        let at = times(plan.every()?, state.mutations_planned + 1);
        (at <= plan.stop_after()).then_some(at)
    }

    fn happen(&self, state: &mut State, due: Due, at: Duration) {
        match due {
            Due::Growth => {
                state.grown_until = Some(at);
                state.log.push(Entry::Grew(self.head.max_item(at)));
            }
            Due::Mutation => {
                state.mutations_planned += 1;
                self.mutate_by_plan(state, at);
            }
            Due::Write => state.write_updates(),
        }
    }

    /// Where the next write of `updates` falls, not before `at`.
    fn write_after(&self, at: Duration) -> Duration {
        let every = self.plan.mutations.updates_every();
        times(every, at.as_nanos().div_ceil(every.as_nanos()) as u64)
    }
}

impl State {
    /// Firebase knows no empty lists: a key without values is not there.
    pub(super) fn write_updates(&mut self) {
        let Unwritten { items, profiles } = std::mem::take(&mut self.unwritten);
        let mut json = Json::with_capacity(1_024);
        if !items.is_empty() {
            json.list("items", latest_first(items));
        }
        if !profiles.is_empty() {
            let names: Vec<String> = latest_first(profiles).collect();
            json.raw("profiles", serde_json::json!(names).to_string().as_bytes());
        }
        let written = Bytes::from(json.finish());
        self.updates = Some(written.clone());
        self.write_at = None;
        self.log.push(Entry::Wrote(written));
    }
}

/// Latest first, each once.
fn latest_first<T: Clone + Eq + Hash>(changed: Vec<T>) -> impl Iterator<Item = T> {
    let mut seen = HashSet::new();
    changed.into_iter().rev().filter(move |one| seen.insert(one.clone()))
}

fn times(step: Duration, count: u64) -> Duration {
    let nanos = step.as_nanos().saturating_mul(u128::from(count));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
