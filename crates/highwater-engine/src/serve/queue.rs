//! Keys the remote has named, until they are stored: bounded, each at most once at a time, none dropped. A key that is
//! named again while it is being fetched is fetched once more, because the answer under way may be older.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use highwater_core::{
    Key, Moment, StreamName, Timestamp,
    planted::{Bug, planted},
};
use highwater_sources::Clock;
use tokio::sync::Notify;

pub(super) struct LiveQueue {
    clock: Clock,
    max: usize,
    state: Mutex<State>,
    room: Notify,
    work: Notify,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LiveKey {
    pub(super) stream: StreamName,
    pub(super) key: Key,
}

#[derive(Default)]
struct State {
    entries: BTreeMap<LiveKey, Entry>,
    ready: VecDeque<LiveKey>,
    waiting: BTreeMap<(Moment, u64), LiveKey>,
    next_wait: u64,
    /// What was told at that time is still being entered, or was when the one who told it broke off,
    arriving: Option<Timestamp>,
    /// and these are not entered.
    left: VecDeque<LiveKey>,
}

struct Entry {
    heard_at: Timestamp,
    entered: Moment,
    tries: u32,
    place: Place,
}

impl Entry {
    fn new(heard_at: Timestamp, entered: Moment) -> Self {
        Entry { heard_at, entered, tries: 0, place: Place::Queued }
    }

    fn name_again(&mut self, heard_at: Timestamp) {
        if let Place::Taken { again } = &mut self.place
            && !planted(Bug::NamedInFlightForgotten)
        {
            again.get_or_insert(heard_at);
        }
    }
}

enum Place {
    Queued,
    /// Named again since it was taken, first at that time.
    Taken {
        again: Option<Timestamp>,
    },
}

/// Held while what was told at a time is being entered; what is left when that is broken off is not forgotten.
pub(super) struct Arriving<'a> {
    queue: &'a LiveQueue,
    heard_at: Timestamp,
}

impl Arriving<'_> {
    /// Enters those of the keys that are to be fetched, and waits for room as long as there is none.
    pub(super) async fn enter(self, keys: Vec<LiveKey>) {
        self.queue.lock().left = keys.into();
        while !self.queue.enter_left(self.heard_at) {
            self.queue.room.notified().await;
        }
    }
}

impl Drop for Arriving<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        if state.left.is_empty() {
            state.arriving = None;
        }
    }
}

/// Keys of one stream in the hands of a worker. Dropped without a word, as by a panic, they go back to the queue.
pub(super) struct Taken {
    queue: Arc<LiveQueue>,
    pub(super) keys: Vec<TakenKey>,
}

#[derive(Clone, Debug)]
pub(super) struct TakenKey {
    pub(super) live: LiveKey,
    pub(super) entered: Moment,
    pub(super) tries: u32,
}

impl LiveQueue {
    pub(super) fn new(clock: Clock, max: usize) -> Arc<Self> {
        Arc::new(LiveQueue { clock, max, state: Mutex::default(), room: Notify::new(), work: Notify::new() })
    }

    /// What was told together counts as heard from now on.
    pub(super) fn arriving(&self, keys: Vec<LiveKey>, heard_at: Timestamp) -> Arriving<'_> {
        let mut state = self.lock();
        (state.arriving, state.left) = (Some(heard_at), keys.into());
        Arriving { queue: self, heard_at }
    }

    /// Enters, ahead of all others, what there is room for: keys that somebody else answers for as well.
    pub(super) fn enter_first(&self, keys: Vec<LiveKey>, heard_at: Timestamp) {
        let now = self.clock.moment();
        let mut state = self.lock();
        for key in keys.into_iter().rev() {
            if state.entries.len() < self.max && !state.entries.contains_key(&key) {
                state.entries.insert(key.clone(), Entry::new(heard_at, now));
                state.ready.push_front(key);
            }
        }
        drop(state);
        self.work.notify_one();
    }

    /// Enters what is left of what was told, as far as there is room; whether that is all of it.
    fn enter_left(&self, heard_at: Timestamp) -> bool {
        let now = self.clock.moment();
        let mut state = self.lock();
        while let Some(key) = state.left.pop_front() {
            if let Some(entry) = state.entries.get_mut(&key) {
                entry.name_again(heard_at);
            } else if state.entries.len() < self.max {
                state.entries.insert(key.clone(), Entry::new(heard_at, now));
                state.ready.push_back(key);
            } else {
                state.left.push_front(key);
                break;
            }
        }
        self.work.notify_one();
        state.left.is_empty()
    }

    /// Up to `most` keys of one stream, as soon as there is one.
    pub(super) async fn take(self: &Arc<Self>, most: usize) -> Taken {
        loop {
            let now = self.clock.moment();
            let next = {
                let mut state = self.lock();
                state.make_due(now);
                let keys = state.take(most);
                if !keys.is_empty() {
                    if !state.ready.is_empty() {
                        self.work.notify_one();
                    }
                    return Taken { queue: self.clone(), keys };
                }
                state.waiting.keys().next().map(|(at, _)| *at)
            };
            tokio::select! {
                biased;
                () = self.work.notified() => {}
                () = self.clock.sleep_until(next.unwrap_or(now + LOOK)) => {}
            }
        }
    }

    /// All of a stream that was told and is not stored.
    pub(super) fn keys_of(&self, stream: &StreamName) -> Vec<Key> {
        let state = self.lock();
        let all: BTreeSet<&LiveKey> = state.entries.keys().chain(&state.left).collect();
        all.into_iter().filter(|live| live.stream == *stream).map(|live| live.key.clone()).collect()
    }

    /// Somebody else answers for the key, whoever has it in hand.
    pub(super) fn forget(&self, key: &LiveKey) {
        let mut state = self.lock();
        state.entries.remove(key);
        self.room.notify_one();
        if state.left.is_empty() {
            return;
        }
        state.left.retain(|left| left != key);
        if state.left.is_empty() {
            state.arriving = None;
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.lock().entries.len()
    }

    pub(super) fn room(&self) -> usize {
        self.max.saturating_sub(self.depth())
    }

    /// Whether what may take its time keeps nobody else out.
    pub(super) fn is_roomy(&self) -> bool {
        2 * self.depth() <= self.max
    }

    /// When the eldest of what is not stored yet was told.
    pub(super) fn eldest(&self) -> Option<Timestamp> {
        let state = self.lock();
        state.entries.values().map(|entry| entry.heard_at).chain(state.arriving).min()
    }

    fn finish(&self, key: &LiveKey) {
        let mut state = self.lock();
        let Some(Entry { place, .. }) = state.entries.get_mut(key) else { return };
        match std::mem::replace(place, Place::Queued) {
            Place::Taken { again: Some(heard_at) } => {
                state.entries.insert(key.clone(), Entry::new(heard_at, self.clock.moment()));
                state.ready.push_back(key.clone());
                self.work.notify_one();
            }
            Place::Taken { again: None } | Place::Queued => {
                state.entries.remove(key);
                self.room.notify_one();
            }
        }
    }

    fn put_back(&self, key: &LiveKey, tries: u32, at: Moment) {
        let mut state = self.lock();
        if let Some(entry) = state.entries.get_mut(key) {
            // Named again or not, it is asked for anew.
            entry.place = Place::Queued;
            entry.tries = tries;
            let place = (at, state.next_wait);
            state.next_wait += 1;
            state.waiting.insert(place, key.clone());
            self.work.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}

/// Nothing waits for longer without a look.
const LOOK: Duration = Duration::from_secs(3600);

impl State {
    fn make_due(&mut self, now: Moment) {
        while let Some(entry) = self.waiting.first_entry().filter(|entry| entry.key().0 <= now) {
            let key = entry.remove();
            self.ready.push_back(key);
        }
    }

    fn take(&mut self, most: usize) -> Vec<TakenKey> {
        let mut taken: Vec<TakenKey> = Vec::new();
        while let Some(first) = self.ready.front() {
            let same = taken.first().is_none_or(|other| other.live.stream == first.stream);
            if taken.len() >= most || !same {
                break;
            }
            let Some(live) = self.ready.pop_front() else { break };
            let Some(entry) = self.entries.get_mut(&live) else { continue };
            entry.place = Place::Taken { again: None };
            taken.push(TakenKey { live, entered: entry.entered, tries: entry.tries });
        }
        taken
    }
}

impl Taken {
    /// Tries that count against a key.
    pub(super) fn tries_of(&self, key: &Key) -> u32 {
        self.keys.iter().find(|taken| taken.live.key == *key).map_or(0, |taken| taken.tries)
    }

    /// The key is stored, or somebody else's business from now on.
    pub(super) fn finish(&mut self, key: &Key) {
        if let Some(index) = self.keys.iter().position(|taken| taken.live.key == *key) {
            let taken = self.keys.swap_remove(index);
            self.queue.finish(&taken.live);
        }
    }

    /// The key is to be asked for again, then; `tries` are those that count against it.
    pub(super) fn put_back(&mut self, key: &Key, tries: u32, at: Moment) {
        if let Some(index) = self.keys.iter().position(|taken| taken.live.key == *key) {
            let taken = self.keys.swap_remove(index);
            self.queue.put_back(&taken.live, tries, at);
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let now = self.queue.clock.moment();
        for taken in std::mem::take(&mut self.keys) {
            self.queue.put_back(&taken.live, taken.tries + 1, now + AFTER_A_FALL);
        }
    }
}

const AFTER_A_FALL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn keys(ids: impl IntoIterator<Item = i64>) -> Vec<LiveKey> {
        let stream: StreamName = "items".parse().unwrap();
        ids.into_iter().map(|id| LiveKey { stream: stream.clone(), key: Key::Number(id) }).collect()
    }

    fn numbers(taken: &Taken) -> Vec<i64> {
        taken.keys.iter().filter_map(|taken| taken.live.key.number()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_queued_once_and_fetched_again_if_it_is_named_while_under_way() {
        let queue = LiveQueue::new(Clock::system(), 10);
        queue.arriving(keys([1, 2, 1]), at(5)).enter(keys([1, 2, 1])).await;
        let mut taken = queue.take(10).await;
        assert_eq!(numbers(&taken), [1, 2]);
        queue.arriving(keys([2]), at(7)).enter(keys([2])).await;
        assert_eq!(queue.eldest(), Some(at(5)));
        taken.finish(&Key::Number(1));
        taken.finish(&Key::Number(2));
        assert_eq!((queue.depth(), queue.eldest()), (1, Some(at(7))));
        let mut again = queue.take(10).await;
        assert_eq!(numbers(&again), [2]);
        again.finish(&Key::Number(2));
        assert_eq!((queue.depth(), queue.eldest()), (0, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_makes_the_teller_wait_and_drops_nothing() {
        let queue = LiveQueue::new(Clock::system(), 3);
        let teller = tokio::spawn({
            let queue = queue.clone();
            async move { queue.arriving(keys(1..=100), at(1)).enter(keys(1..=100)).await }
        });
        let mut seen = Vec::new();
        while seen.len() < 100 {
            let mut taken = queue.take(2).await;
            assert!(queue.depth() <= 3);
            assert_eq!(queue.eldest(), Some(at(1)), "what is still being entered counts as heard");
            for key in numbers(&taken) {
                seen.push(key);
                taken.finish(&Key::Number(key));
            }
        }
        teller.await.unwrap();
        assert_eq!(seen, (1..=100).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_told_and_could_not_be_entered_is_not_forgotten() {
        let queue = LiveQueue::new(Clock::system(), 2);
        queue.arriving(keys([1]), at(1)).enter(keys([1])).await;
        let arriving = queue.arriving(keys([7, 8, 9]), at(5));
        let taken = queue.take(1).await;
        taken.queue.forget(&taken.keys[0].live);
        assert_eq!(queue.eldest(), Some(at(5)), "before it is known which of them are to be fetched");
        assert!(arriving.enter(keys([8, 9, 10])).now_or_never().is_none(), "there is no room for the last");
        let mut left = queue.keys_of(&keys([1])[0].stream);
        assert_eq!((left.clone(), queue.eldest()), ([8, 9, 10].map(Key::Number).to_vec(), Some(at(5))));
        left.drain(..).for_each(|key| queue.forget(&LiveKey { key, ..keys([1])[0].clone() }));
        assert_eq!((queue.depth(), queue.eldest()), (0, None));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_worker_drops_comes_back_with_its_tries_counted() {
        let queue = LiveQueue::new(Clock::system(), 10);
        queue.arriving(keys([1, 2]), at(1)).enter(keys([1, 2])).await;
        let mut taken = queue.take(2).await;
        taken.put_back(&Key::Number(1), 0, queue.clock.moment() + Duration::from_secs(5));
        drop(taken);
        let first = queue.take(2).await;
        assert_eq!((numbers(&first), first.keys[0].tries), (vec![2], 1));
        let second = queue.take(2).await;
        assert_eq!((numbers(&second), second.keys[0].tries), (vec![1], 0));
        assert!(queue.clock.moment().since_start() >= Duration::from_secs(5));
    }
}
