//! What the events of a source add up to since the process began.

use std::{sync::Mutex, time::Duration};

use highwater_core::{BatchCounts, Event, Observer, Timestamp};

use crate::mailbox::how;

/// Upper bounds in seconds; what is slower has no bound.
pub(super) const COMMIT_BOUNDS: [f64; 9] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) retries: u64,
    pub(super) splits: u64,
    pub(super) stalls: u64,
    pub(super) panics: u64,
    pub(super) batch: BatchCounts,
    pub(super) commits: u64,
    pub(super) commit_seconds: f64,
    /// One more than the bounds.
    pub(super) commit_classes: [u64; COMMIT_BOUNDS.len() + 1],
    /// The store cannot write at the moment.
    pub(super) store_trouble: Option<String>,
    /// The operator allows no more until then.
    pub(super) spent_until: Option<Timestamp>,
    /// The source is out, and how that shows.
    pub(super) outage: Option<&'static str>,
}

/// The mutex is held for a few instructions.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<Counts>);

impl Counters {
    pub(super) fn view(&self) -> Counts {
        self.0.lock().expect("no code panics while it holds this lock").clone()
    }

    /// Whoever knew of what lasts has ended.
    pub(super) fn begin_anew(&self) {
        let mut counts = self.0.lock().expect("no code panics while it holds this lock");
        (counts.spent_until, counts.outage) = (None, None);
    }
}

impl Observer for Counters {
    fn notify(&self, event: &Event) {
        let mut counts = self.0.lock().expect("no code panics while it holds this lock");
        match event {
            Event::Committed { batch, took, .. } | Event::LiveCommitted { batch, took, .. } => {
                counts.committed(batch, *took);
            }
            Event::JobSplit { .. } => counts.splits += 1,
            Event::JobStalled { .. } => counts.stalls += 1,
            Event::WorkerPanicked { .. } | Event::LiveWorkerFell => counts.panics += 1,
            Event::StoreTrouble { error } => counts.store_trouble = Some(error.clone()),
            Event::StoreHealed => counts.store_trouble = None,
            Event::Spent { until } => counts.spent_until = Some(*until),
            Event::SpentOver => counts.spent_until = None,
            Event::OutageConfirmed { kind, .. } => counts.outage = Some(how(*kind)),
            Event::OutageOver => counts.outage = None,
            _ => {}
        }
    }
}

impl Counts {
    fn committed(&mut self, batch: &BatchCounts, took: Duration) {
        self.batch.add(batch);
        self.retries += batch.retrying;
        self.commits += 1;
        self.commit_seconds += took.as_secs_f64();
        let class = COMMIT_BOUNDS.partition_point(|bound| *bound < took.as_secs_f64());
        self.commit_classes[class] += 1;
        self.store_trouble = None;
    }
}
