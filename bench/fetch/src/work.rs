//! The ids still to be fetched, shared by as many tasks as requests may be in flight.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::task::JoinSet;

#[derive(Clone)]
pub(crate) struct Work {
    next: Arc<AtomicU64>,
    last: u64,
    in_flight: NonZeroU32,
}

impl Work {
    pub(crate) fn new(items: u64, in_flight: NonZeroU32) -> Self {
        Work { next: Arc::new(AtomicU64::new(1)), last: items, in_flight }
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight.get()
    }

    pub(crate) fn next_id(&self) -> Option<u64> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        (id <= self.last).then_some(id)
    }

    /// One task for each request in flight; the first error ends all.
    pub(crate) async fn share<F>(&self, mut worker: impl FnMut(Work) -> F) -> anyhow::Result<()>
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let mut tasks: JoinSet<_> = (0..self.in_flight()).map(|_| worker(self.clone())).collect();
        while let Some(joined) = tasks.join_next().await {
            joined??;
        }
        Ok(())
    }
}
