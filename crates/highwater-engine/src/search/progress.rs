//! How far an index is brought up to date: counters that the work only adds to, and whoever draws only reads.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

#[derive(Debug, Default)]
pub struct IndexProgress {
    looked_at: AtomicU64,
    indexed: AtomicU64,
    /// Changes a few times; held for a few instructions.
    table: Mutex<&'static str>,
}

impl IndexProgress {
    /// Rows compared with the index.
    pub fn looked_at(&self) -> u64 {
        self.looked_at.load(Ordering::Relaxed)
    }

    /// Rows whose texts were read.
    pub fn indexed(&self) -> u64 {
        self.indexed.load(Ordering::Relaxed)
    }

    pub fn table(&self) -> &'static str {
        *self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn at(&self, table: &'static str) {
        *self.table.lock().unwrap_or_else(PoisonError::into_inner) = table;
    }

    pub(super) fn add_looked_at(&self, rows: usize) {
        self.looked_at.fetch_add(rows as u64, Ordering::Relaxed);
    }

    pub(super) fn add_indexed(&self, rows: usize) {
        self.indexed.fetch_add(rows as u64, Ordering::Relaxed);
    }

    pub(super) fn restart(&self) {
        self.looked_at.store(0, Ordering::Relaxed);
        self.indexed.store(0, Ordering::Relaxed);
    }
}
