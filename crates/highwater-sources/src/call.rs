//! On whose behalf a request is made, and whether that work still shows signs of life.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use highwater_core::{Key, Lane, Moment};

use crate::Clock;

/// Passed along with every request to the gateway.
#[derive(Clone, Debug)]
pub struct Call {
    pub lane: Lane,
    pub beat: Beat,
    pub tags: Tags,
}

impl Call {
    pub fn new(lane: Lane, beat: Beat) -> Self {
        Call { lane, beat, tags: Tags::NotAsked }
    }
}

/// Marks by which the remote recognises a body it has given out, to be spared the same body again.
#[derive(Clone, Debug, Default)]
pub enum Tags {
    /// Bodies are new, or few enough.
    #[default]
    NotAsked,
    /// Asked for with every body; those known are shown.
    Asked(Arc<BTreeMap<Key, String>>),
}

/// Marks when requests leave and come back. Work that waits for a permit is not stalled; work that waits for an answer
/// that never comes is.
#[derive(Clone, Debug)]
pub struct Beat {
    clock: Clock,
    state: Arc<BeatState>,
}

#[derive(Debug, Default)]
struct BeatState {
    in_flight: AtomicU32,
    last_nanos: AtomicU64,
}

impl Beat {
    pub fn new(clock: Clock) -> Self {
        let beat = Beat { clock, state: Arc::default() };
        beat.mark();
        beat
    }

    /// A request is on its way until the returned guard is dropped.
    pub fn in_flight(&self) -> InFlight<'_> {
        self.state.in_flight.fetch_add(1, Ordering::Relaxed);
        self.mark();
        InFlight(self)
    }

    pub fn is_stalled(&self, now: Moment, patience: Duration) -> bool {
        let last = Moment::after_start(Duration::from_nanos(self.state.last_nanos.load(Ordering::Relaxed)));
        self.state.in_flight.load(Ordering::Relaxed) > 0 && now.since(last) >= patience
    }

    fn mark(&self) {
        let nanos = u64::try_from(self.clock.moment().since_start().as_nanos()).unwrap_or(u64::MAX);
        self.state.last_nanos.store(nanos, Ordering::Relaxed);
    }
}

/// Held while a request is on its way.
#[derive(Debug)]
pub struct InFlight<'a>(&'a Beat);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.state.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.mark();
    }
}
