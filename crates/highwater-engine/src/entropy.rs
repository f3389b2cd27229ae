//! The one home of randomness: jitter, worker names, samples. Seeded in simulations, from the system otherwise.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use highwater_core::WorkerId;

/// A splitmix64 sequence that may be shared: each draw takes the next state.
#[derive(Clone, Debug)]
pub struct Entropy(Arc<AtomicU64>);

impl Entropy {
    pub fn seeded(seed: u64) -> Self {
        Entropy(Arc::new(AtomicU64::new(seed)))
    }

    pub fn from_system() -> Self {
        Entropy::seeded(RandomState::new().hash_one(std::process::id()))
    }

    pub fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// In `[0, 1)`.
    pub fn unit(&self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// In `[0, bound)`; zero when there is nothing to choose from.
    pub fn below(&self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    pub fn worker_id(&self) -> WorkerId {
        WorkerId::new(&self.id())
    }

    pub fn id(&self) -> String {
        format!("{:016x}{:016x}", self.next(), self.next())
    }
}
