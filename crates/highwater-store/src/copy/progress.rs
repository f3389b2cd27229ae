//! How far a copy is: counters that it only adds to, and whoever draws only reads.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

#[derive(Debug, Default)]
pub struct CopyProgress {
    total: AtomicU64,
    copied: AtomicU64,
    compared: AtomicU64,
    /// Changes a dozen times in a copy; held for a few instructions.
    doing: Mutex<String>,
}

impl CopyProgress {
    /// Rows of the source, as far as they are counted.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Rows gone through, once to copy and once to compare.
    pub fn done(&self) -> u64 {
        self.copied.load(Ordering::Relaxed) + self.compared.load(Ordering::Relaxed)
    }

    /// What is being done, for people.
    pub fn doing(&self) -> String {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn expect(&self, rows: u64) {
        self.total.fetch_add(rows, Ordering::Relaxed);
    }

    pub(super) fn copying(&self, table: &str) {
        self.set(format!("copying {table}"));
    }

    pub(super) fn comparing(&self, table: &str) {
        self.set(format!("comparing {table}"));
    }

    pub(super) fn copied(&self, rows: usize) {
        self.copied.fetch_add(rows as u64, Ordering::Relaxed);
    }

    pub(super) fn compared(&self, rows: usize) {
        self.compared.fetch_add(rows as u64, Ordering::Relaxed);
    }

    fn set(&self, doing: String) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = doing;
    }
}
