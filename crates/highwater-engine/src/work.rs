//! A claimed segment in memory: its jobs, how far they are, and when the last one is done.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use highwater_core::{Exception, Failure, History, Key, KeySet, Lane, Lease, Position, Purpose, Span, Timestamp};
use highwater_store::{Claimed, Known};

/// A batch of keys of one segment.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) keys: Vec<Key>,
    /// How often the batch as a whole has failed.
    pub(crate) failures: u32,
    /// The batch is one key, and this is known of it without asking again.
    pub(crate) blame: Option<Failure>,
}

impl Job {
    pub(crate) fn new(keys: Vec<Key>) -> Self {
        Job { keys, failures: 0, blame: None }
    }

    fn start(&self) -> Option<i64> {
        self.keys.first().and_then(Key::number)
    }
}

/// Shared by the jobs of a segment; the mutex is held for a few instructions and never over an await.
pub(crate) struct SegmentWork {
    pub(crate) lease: Lease,
    pub(crate) span: Span,
    pub(crate) lane: Lane,
    exceptions: BTreeMap<Key, Exception>,
    /// Keys that have a row already.
    stored: BTreeSet<Key>,
    state: Mutex<WorkState>,
}

#[derive(Default)]
struct WorkState {
    open_jobs: usize,
    /// First positions of the jobs in scan order that are not committed yet.
    open_starts: BTreeSet<i64>,
    /// Keys were left untried; the segment cannot be closed now.
    unfinished: bool,
    lost: bool,
}

impl SegmentWork {
    /// Cuts what is left of a claimed segment into jobs.
    pub(crate) fn new(claimed: Claimed, keys: KeySet, known: Known, job_size: usize) -> (SegmentWork, Vec<Job>) {
        let rest = claimed.rest();
        let due: BTreeSet<Key> = claimed.due.iter().map(|exception| exception.key.clone()).collect();
        let mut open = open_keys(keys, &known, claimed.purpose, rest);
        open.retain(|key| !due.contains(key));
        let exceptions = known.exceptions.into_iter().chain(claimed.due);
        let due: Vec<Key> = due.into_iter().collect();
        let mut jobs: Vec<Job> = due.chunks(job_size).map(|keys| Job::new(keys.to_vec())).collect();
        let retry_jobs = jobs.len();
        jobs.extend(open.chunks(job_size).map(|keys| Job::new(keys.to_vec())));
        let state = WorkState {
            open_jobs: jobs.len(),
            open_starts: jobs[retry_jobs..].iter().filter_map(Job::start).collect(),
            ..WorkState::default()
        };
        let work = SegmentWork {
            lease: claimed.lease,
            span: claimed.span,
            lane: if rest.is_empty() { Lane::Retry } else { Lane::Backfill },
            stored: known.stored,
            exceptions: exceptions.map(|exception| (exception.key.clone(), exception)).collect(),
            state: Mutex::new(state),
        };
        (work, jobs)
    }

    pub(crate) fn history(&self, key: &Key) -> History {
        self.exceptions.get(key).map(|exception| exception.history.clone()).unwrap_or_default()
    }

    pub(crate) fn last_tried(&self, key: &Key) -> Option<Timestamp> {
        self.exceptions.get(key).map(|exception| exception.last_tried_at)
    }

    pub(crate) fn has_exception(&self, key: &Key) -> bool {
        self.exceptions.contains_key(key)
    }

    /// Whether a body of the key is stored: whatever the remote says of it now, that stays.
    pub(crate) fn is_stored(&self, key: &Key) -> bool {
        self.stored.contains(key)
    }

    /// Where the cursor stands once `job` is committed: everything before it is settled or has a row.
    pub(crate) fn cursor_after(&self, job: &Job) -> Position {
        let state = self.lock();
        let next = state.open_starts.iter().find(|start| Some(**start) != job.start());
        next.map_or(self.span.end(), |start| Position(*start))
    }

    /// A job is committed; true when it was the last one and the segment can be closed.
    pub(crate) fn finish_job(&self, job: &Job) -> bool {
        let mut state = self.lock();
        if let Some(start) = job.start() {
            state.open_starts.remove(&start);
        }
        state.open_jobs -= 1;
        state.open_jobs == 0 && !state.unfinished && !state.lost
    }

    /// A job has become two.
    pub(crate) fn split_job(&self, right: &Job) {
        let mut state = self.lock();
        state.open_jobs += 1;
        if let Some(start) = right.start() {
            state.open_starts.insert(start);
        }
    }

    /// A job ends with keys untried.
    pub(crate) fn abandon_job(&self) {
        let mut state = self.lock();
        state.open_jobs -= 1;
        state.unfinished = true;
    }

    pub(crate) fn mark_lost(&self) {
        self.lock().lost = true;
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lock().lost
    }

    /// Whether the last job has closed the segment.
    pub(crate) fn is_closed(&self) -> bool {
        let state = self.lock();
        state.open_jobs == 0 && !state.unfinished
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, WorkState> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}

/// The keys still to be asked for. A rescan asks again for all it has not gone through.
fn open_keys(keys: KeySet, known: &Known, purpose: Purpose, rest: Span) -> Vec<Key> {
    let excepted: BTreeSet<&Key> = known.exceptions.iter().map(|exception| &exception.key).collect();
    let is_open = |key: &Key| match purpose {
        Purpose::Rescan => key.number().is_none_or(|position| rest.contains(Position(position))),
        Purpose::Catchup => !(known.stored.contains(key) || excepted.contains(key)),
    };
    match keys {
        KeySet::Range(span) => (span.start().0..span.end().0).map(Key::Number).filter(is_open).collect(),
        KeySet::List(list) => list.into_iter().filter(is_open).collect(),
    }
}
