//! Whose turn it is to fetch. More keys than requests may be under way are asked for at once; jobs beyond that
//! wait as a whole, which is cheaper than waiting for permits, and bounds what is fetched and not yet written.

use std::sync::Arc;

use highwater_core::Lane;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::work::Job;

#[derive(Clone)]
pub(crate) struct Turns {
    keys: Arc<Semaphore>,
    over: Arc<Notify>,
}

/// Held by a job while it fetches.
pub(crate) struct Turn {
    keys: Option<OwnedSemaphorePermit>,
    over: Arc<Notify>,
}

impl Turns {
    pub(crate) fn new(keys: usize) -> Self {
        Turns { keys: Arc::new(Semaphore::new(keys)), over: Arc::default() }
    }

    /// None while others fetch. Only backfill waits: the throttle lets the other lanes pass by it.
    pub(crate) fn take(&self, job: &Job) -> Option<Turn> {
        let keys = match job.lane {
            Lane::Backfill => {
                let keys = u32::try_from(job.keys.len()).expect("a job is bounded");
                Some(self.keys.clone().try_acquire_many_owned(keys).ok()?)
            }
            Lane::Live | Lane::Retry => None,
        };
        Some(Turn { keys, over: self.over.clone() })
    }

    /// A job has ended its turn since this was last asked.
    pub(crate) async fn over(&self) {
        self.over.notified().await;
    }
}

impl Turn {
    /// The turn of some of the keys, which may end before that of the others.
    pub(crate) fn split(&mut self, keys: usize) -> Turn {
        Turn { keys: self.keys.as_mut().and_then(|held| held.split(keys)), over: self.over.clone() }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop(self.keys.take());
        self.over.notify_one();
    }
}
