//! How many keys may be asked for and not yet be written: a share of all that were claimed, so that a crash undoes little
//! of the work, however small the whole is.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use highwater_core::Lane;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One in so many may be fetched again after a crash.
const SHARE: usize = 20;
/// Fewer at once would be slow, and undo nothing worth the name.
const LEAST: usize = 8;
/// More than any number of requests under way and of commits behind them needs.
const MOST: usize = 16_000;
/// Parts that are asked for beside each other, at least.
const PARTS: usize = 4;
/// Keys that are written together. What a remote lists may be large and slow to come; what came of it is not to wait for
/// hundreds of others.
const PART: usize = 25;

#[derive(Clone)]
pub(crate) struct Window {
    keys: Arc<Semaphore>,
    claimed: Arc<AtomicUsize>,
}

impl Window {
    pub(crate) fn new() -> Self {
        Window { keys: Arc::new(Semaphore::new(LEAST)), claimed: Arc::default() }
    }

    /// More keys are to be fetched.
    pub(crate) fn widen(&self, keys: usize) {
        let before = self.claimed.fetch_add(keys, Ordering::Relaxed);
        self.keys.add_permits(size(before + keys) - size(before));
    }

    /// How many keys are to be written together.
    pub(crate) fn part(&self) -> usize {
        (size(self.claimed.load(Ordering::Relaxed)) / PARTS).min(PART)
    }

    /// Room for a part, until it is written. Only backfill waits, and for nothing but parts that have room.
    pub(crate) async fn take(&self, lane: Lane, part: usize) -> Option<OwnedSemaphorePermit> {
        match lane {
            Lane::Backfill => {
                let keys = u32::try_from(part).expect("a part is bounded");
                Some(self.keys.clone().acquire_many_owned(keys).await.expect("the semaphore is never closed"))
            }
            Lane::Live | Lane::Retry => None,
        }
    }
}

fn size(claimed: usize) -> usize {
    (claimed / SHARE).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widened(claims: &[usize]) -> (usize, usize) {
        let window = Window::new();
        claims.iter().for_each(|keys| window.widen(*keys));
        (window.keys.available_permits(), window.part())
    }

    #[test]
    fn a_twentieth_of_what_was_claimed_is_open_at_once() {
        assert_eq!(widened(&[]), (8, 2));
        assert_eq!(widened(&[3, 100]), (8, 2));
        assert_eq!(widened(&[300, 100]), (20, 5));
        assert_eq!(widened(&[1_000, 1_000, 3_000]), (250, 25));
        assert_eq!(widened(&[1_000_000, 1]), (16_000, 25));
    }

    #[tokio::test]
    async fn a_part_waits_for_those_before_it_to_be_written() {
        let window = Window::new();
        let first = window.take(Lane::Backfill, 8).await;
        let mut second = Box::pin(window.take(Lane::Backfill, 2));
        assert!(futures_util::poll!(&mut second).is_pending());
        assert!(window.take(Lane::Retry, 100).await.is_none(), "others pass by");
        drop(first);
        assert!(second.await.is_some());
    }
}
