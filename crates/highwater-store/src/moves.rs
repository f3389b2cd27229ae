//! How far mail has been moved to where the settings say it lies: counters that the move only adds to, and whoever
//! draws only reads.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct MoveProgress {
    total: AtomicU64,
    moved: AtomicU64,
}

impl MoveProgress {
    /// Messages to look at.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Messages that are where they should be.
    pub fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    pub(crate) fn expect(&self, messages: u64) {
        self.total.fetch_add(messages, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, messages: u64) {
        self.moved.fetch_add(messages, Ordering::Relaxed);
    }
}
