//! A claimed segment in memory: its jobs, how far they are, and when the last one is done.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, OnceLock},
};

use highwater_core::{
    Exception, ExceptionState, Failure, FailureKind, History, Key, KeySet, Lane, Lease, Pending, Position, Purpose,
    Span, Timestamp, halves,
};
use highwater_sources::Tags;
use highwater_store::{Claimed, Known};

/// A batch of keys of one segment.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    id: JobId,
    /// Where its first key is on the axis, if its keys have a place there.
    start: Option<i64>,
    pub(crate) keys: Vec<Key>,
    pub(crate) lane: Lane,
    /// How often the batch as a whole has failed.
    pub(crate) failures: u32,
    /// The batch is one key, and this is known of it without asking again.
    pub(crate) blame: Option<Failure>,
    /// Some of the keys of a job, which is finished with all of its parts.
    is_part: bool,
}

impl Job {
    pub(crate) fn part(&self, keys: &[Key]) -> Job {
        let Job { id, start, lane, failures, .. } = *self;
        Job { id, start, keys: keys.to_vec(), lane, failures, blame: None, is_part: true }
    }
}

/// What the remote is shown of stored bodies, and since when those may be others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    pub(crate) tags: Tags,
    pub(crate) read_at: Option<Timestamp>,
}

impl Marks {
    /// None is shown: the remote is to say what there is.
    pub(crate) fn unshown(&self) -> Marks {
        let tags = match self.tags {
            Tags::NotAsked => Tags::NotAsked,
            Tags::Asked(_) => Tags::Asked(Arc::default()),
        };
        Marks { tags, read_at: None }
    }
}

/// Unique among the jobs of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct JobId(usize);

/// Shared by the jobs of a segment; the mutex is held for a few instructions and never over an await.
pub(crate) struct SegmentWork {
    pub(crate) lease: Lease,
    pub(crate) purpose: Purpose,
    pub(crate) span: Span,
    exceptions: BTreeMap<Key, Exception>,
    /// Keys that have a row already.
    stored: BTreeSet<Key>,
    /// The marks of stored bodies that are looked at again.
    pub(crate) marks: Marks,
    /// Of a segment that is everything there is at a time.
    pub(crate) snapshot: Option<SnapshotWork>,
    state: Mutex<WorkState>,
}

/// What a list has shown, until it is made once more.
#[derive(Default)]
pub(crate) struct SnapshotWork {
    pub(crate) listed: BTreeSet<Key>,
    /// So little is listed of what is stored that what cannot be had may as well be hidden.
    pub(crate) doubts_absence: bool,
    /// Stand for what could not be listed.
    pub(crate) unlisted: Vec<Key>,
    /// What is known of keys that only the second list has shown; filled when that is made.
    later: OnceLock<Known>,
}

impl SnapshotWork {
    pub(crate) fn of(listed: BTreeSet<Key>, doubts_absence: bool, unlisted: Vec<Key>) -> Self {
        SnapshotWork { listed, doubts_absence, unlisted, later: OnceLock::new() }
    }
}

#[derive(Default)]
struct WorkState {
    /// By id, not as a number: a job that is run again after it has finished is finished only once.
    open_jobs: BTreeSet<JobId>,
    next_id: usize,
    /// First positions of the jobs in scan order that are not committed yet.
    open_starts: BTreeSet<i64>,
    /// Keys are positions. A name may look like a number, and is none.
    is_placed: bool,
    /// Keys of jobs whose other parts are not done.
    settled: BTreeSet<Key>,
    /// Keys were left untried; the segment cannot be closed now.
    unfinished: bool,
    lost: bool,
}

impl SegmentWork {
    /// Cuts what is left of a claimed segment into jobs.
    pub(crate) fn new(
        claimed: Claimed,
        keys: KeySet,
        known: Known,
        marks: Marks,
        job_size: usize,
    ) -> (SegmentWork, Vec<Job>) {
        let rest = claimed.rest();
        let is_placed = matches!(keys, KeySet::Range(_));
        let open = open_keys(keys, &known, claimed.purpose, rest);
        let (mut work, jobs) = SegmentWork::of_open(claimed, open, is_placed, known, job_size);
        work.marks = marks;
        (work, jobs)
    }

    /// Of a snapshot: these keys are asked for, whatever is stored.
    pub(crate) fn of_snapshot(
        claimed: Claimed,
        open: Vec<Key>,
        known: Known,
        snapshot: SnapshotWork,
        job_size: usize,
    ) -> (SegmentWork, Vec<Job>) {
        let (mut work, jobs) = SegmentWork::of_open(claimed, open, false, known, job_size);
        work.snapshot = Some(snapshot);
        (work, jobs)
    }

    fn of_open(
        claimed: Claimed,
        mut open: Vec<Key>,
        is_placed: bool,
        known: Known,
        job_size: usize,
    ) -> (SegmentWork, Vec<Job>) {
        let due: BTreeSet<Key> = claimed.due.iter().map(|exception| exception.key.clone()).collect();
        open.retain(|key| !due.contains(key));
        let exceptions = known.exceptions.into_iter().chain(claimed.due);
        let due: Vec<Key> = due.into_iter().collect();
        let mut state = WorkState { is_placed, ..WorkState::default() };
        let mut jobs = Vec::new();
        for (lane, keys) in [(Lane::Retry, due), (Lane::Backfill, open)] {
            jobs.extend(keys.chunks(job_size).map(|keys| state.add(keys.to_vec(), lane)));
        }
        let work = SegmentWork {
            lease: claimed.lease,
            purpose: claimed.purpose,
            span: claimed.span,
            stored: known.stored,
            marks: Marks::default(),
            snapshot: None,
            exceptions: exceptions.map(|exception| (exception.key.clone(), exception)).collect(),
            state: Mutex::new(state),
        };
        (work, jobs)
    }

    pub(crate) fn history(&self, key: &Key) -> History {
        self.exception(key).map(|exception| exception.history.clone()).unwrap_or_default()
    }

    /// As `history`, for an object that is there: how often it was found absent before it came says nothing of how often
    /// it was looked at since.
    pub(crate) fn looks(&self, key: &Key) -> History {
        let was_absent = |exception: &&Exception| exception.reason != Pending::Delayed.as_str() && !self.is_stored(key);
        match self.exception(key).filter(was_absent) {
            Some(exception) => History { absences: 0, first_absent_at: None, ..exception.history.clone() },
            None => self.history(key),
        }
    }

    /// What may not be seen is not found either. It stays forbidden until a list or an answer says something else.
    pub(crate) fn as_known(&self, key: &Key, failure: Failure) -> Failure {
        let is_forbidden = |exception: &Exception| {
            exception.state == ExceptionState::DeadLetter && exception.reason == FailureKind::Forbidden.as_str()
        };
        match self.exception(key) {
            Some(exception) if failure.kind == FailureKind::NotFound && is_forbidden(exception) => {
                Failure { kind: FailureKind::Forbidden, ..failure }
            }
            _ => failure,
        }
    }

    pub(crate) fn last_tried(&self, key: &Key) -> Option<Timestamp> {
        self.exception(key).map(|exception| exception.last_tried_at)
    }

    pub(crate) fn has_exception(&self, key: &Key) -> bool {
        self.exception(key).is_some()
    }

    fn exception(&self, key: &Key) -> Option<&Exception> {
        let later = || self.later()?.exceptions.iter().find(|exception| exception.key == *key);
        later().or_else(|| self.exceptions.get(key))
    }

    fn later(&self) -> Option<&Known> {
        self.snapshot.as_ref()?.later.get()
    }

    /// Whether a body of the key is stored: whatever the remote says of it now, that stays.
    pub(crate) fn is_stored(&self, key: &Key) -> bool {
        self.stored.contains(key) || self.later().is_some_and(|later| later.stored.contains(key))
    }

    /// Whether the list of a snapshot is still to be made once more.
    pub(crate) fn is_to_be_rechecked(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|snapshot| snapshot.later.get().is_none() && !snapshot.listed.is_empty())
    }

    /// More keys, which the second list has shown.
    pub(crate) fn add_later(&self, keys: &[Key], known: Known, job_size: usize) -> Vec<Job> {
        if let Some(snapshot) = &self.snapshot {
            snapshot.later.get_or_init(|| known);
        }
        let mut state = self.lock();
        keys.chunks(job_size).map(|keys| state.add(keys.to_vec(), Lane::Backfill)).collect()
    }

    /// Where the cursor stands once `job` is committed: everything before it is settled or has a row. Keys without a
    /// place on the axis are behind it only all together.
    pub(crate) fn cursor_after(&self, job: &Job) -> Option<Position> {
        let state = self.lock();
        // What closes a snapshot is the second list, not its last job.
        if self.snapshot.is_some() || job.is_part {
            return None;
        }
        if job.start.is_none() && state.open_jobs.iter().any(|open| *open != job.id) {
            return None;
        }
        let next = state.open_starts.iter().find(|start| Some(**start) != job.start);
        Some(next.map_or(self.span.end(), |start| Position(*start)))
    }

    /// Keys of a part are committed.
    pub(crate) fn note_settled(&self, job: &Job, keys: Vec<Key>) {
        if job.is_part {
            self.lock().settled.extend(keys);
        }
    }

    /// What is left of a job that is to be run again.
    pub(crate) fn leave_out_settled(&self, job: &mut Job) {
        let state = self.lock();
        job.keys.retain(|key| !state.settled.contains(key));
    }

    /// A job is committed; true when no other is left and the segment can be closed.
    pub(crate) fn finish_job(&self, job: &Job) -> bool {
        let mut state = self.lock();
        state.remove(job);
        state.open_jobs.is_empty() && !state.unfinished && !state.lost
    }

    /// A job that failed becomes two, which are suspected of failing as well.
    pub(crate) fn split_job(&self, job: Job) -> [Job; 2] {
        let mut state = self.lock();
        state.remove(&job);
        let (left, right) = halves(job.keys);
        [left, right].map(|keys| Job { failures: 1, ..state.add(keys, job.lane) })
    }

    /// A job ends with keys untried.
    pub(crate) fn abandon_job(&self, job: &Job) {
        let mut state = self.lock();
        state.open_jobs.remove(&job.id);
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
        state.open_jobs.is_empty() && !state.unfinished
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, WorkState> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}

impl WorkState {
    /// Due exceptions lie anywhere; only jobs of the scan hold the cursor back.
    fn add(&mut self, keys: Vec<Key>, lane: Lane) -> Job {
        let start = keys.first().and_then(Key::number).filter(|_| self.is_placed);
        let job = Job { id: JobId(self.next_id), start, keys, lane, failures: 0, blame: None, is_part: false };
        self.next_id += 1;
        self.open_jobs.insert(job.id);
        if lane == Lane::Backfill {
            self.open_starts.extend(job.start);
        }
        job
    }

    fn remove(&mut self, job: &Job) {
        self.open_jobs.remove(&job.id);
        if let Some(start) = job.start {
            self.open_starts.remove(&start);
        }
    }
}

/// The keys still to be asked for. A rescan asks again for all it has not gone through.
fn open_keys(keys: KeySet, known: &Known, purpose: Purpose, rest: Span) -> Vec<Key> {
    let excepted: BTreeSet<&Key> = known.exceptions.iter().map(|exception| &exception.key).collect();
    let is_open = |key: &Key| match purpose {
        Purpose::Rescan => true,
        Purpose::Catchup => !(known.stored.contains(key) || excepted.contains(key)),
    };
    match keys {
        KeySet::Range(span) => {
            let span = if purpose == Purpose::Rescan { span.intersect(rest) } else { span };
            (span.start().0..span.end().0).map(Key::Number).filter(is_open).collect()
        }
        KeySet::List(list) => list.into_iter().filter(is_open).collect(),
    }
}

#[cfg(test)]
mod tests {
    use highwater_core::{Epoch, SegmentId, WorkerId};

    use super::*;

    fn claimed(due: &[i64]) -> Claimed {
        let lease = Lease { segment: SegmentId(1), owner: WorkerId::new("w"), epoch: Epoch::default() };
        let exception = |key: &i64| Exception {
            key: Key::Number(*key),
            segment: SegmentId(1),
            state: ExceptionState::RetryWait,
            history: History::default(),
            first_seen_at: Timestamp::EPOCH,
            last_tried_at: Timestamp::EPOCH,
            next_retry_at: Some(Timestamp::EPOCH),
            reason: "server".into(),
            last_error: None,
        };
        Claimed {
            lease,
            purpose: Purpose::Catchup,
            span: Span::new(Position(1), Position(41)),
            cursor: None,
            attempts: 0,
            due: due.iter().map(exception).collect(),
        }
    }

    /// The looks at a key that was found absent twice and is due again for `reason`.
    fn looks(reason: &str, known: Known) -> u32 {
        let mut claimed = claimed(&[7]);
        claimed.due[0].reason = reason.into();
        claimed.due[0].history.absences = 2;
        let (work, _) = SegmentWork::new(claimed, KeySet::List(Vec::new()), known, Marks::default(), 20);
        work.looks(&Key::Number(7)).absences
    }

    #[test]
    fn absences_before_an_object_came_are_no_looks_at_it() {
        assert_eq!(looks("null", Known::default()), 0);
        assert_eq!(looks("delayed", Known::default()), 2);
        let stored = Known { stored: [Key::Number(7)].into(), ..Known::default() };
        assert_eq!(looks("server", stored), 2, "another failure on the way does not begin anew");
    }

    fn work(due: &[i64]) -> (SegmentWork, Vec<Job>) {
        let claimed = claimed(due);
        let keys = KeySet::Range(claimed.span);
        SegmentWork::new(claimed, keys, Known::default(), Marks::default(), 20)
    }

    #[test]
    fn a_job_run_again_after_it_finished_is_finished_once() {
        let (work, jobs) = work(&[]);
        let [first, second] = &jobs[..] else { panic!("{} jobs", jobs.len()) };
        assert!(!work.finish_job(first));
        assert!(!work.finish_job(first), "the other job is still open");
        assert!(work.finish_job(second));
        assert!(work.finish_job(second), "whoever died before closing the segment gets to close it");
    }

    #[test]
    fn halves_of_a_job_that_had_finished_are_open_again() {
        let (work, jobs) = work(&[]);
        assert!(!work.finish_job(&jobs[1]));
        assert!(!work.finish_job(&jobs[1]));
        let halves = work.split_job(jobs[1].clone());
        assert!(!work.finish_job(&jobs[0]), "both halves are open");
        assert_eq!(halves.each_ref().map(|half| work.finish_job(half)), [false, true]);
    }

    #[test]
    fn keys_without_a_place_are_behind_the_cursor_only_all_together() {
        let names = ["a", "7", "c"].map(Key::from).to_vec();
        let (work, jobs) = SegmentWork::new(claimed(&[]), KeySet::List(names), Known::default(), Marks::default(), 2);
        assert_eq!(work.cursor_after(&jobs[0]), None);
        work.finish_job(&jobs[0]);
        assert_eq!(work.cursor_after(&jobs[1]), Some(Position(41)));
    }

    #[test]
    fn a_job_that_is_run_again_leaves_out_what_its_parts_have_done() {
        let (work, jobs) = work(&[]);
        let (mut job, keys) = (jobs[1].clone(), jobs[1].keys.clone());
        let part = job.part(&keys[..5]);
        work.note_settled(&part, keys[..5].to_vec());
        work.note_settled(&job, keys[5..6].to_vec());
        assert_eq!(work.cursor_after(&part), None, "the job is not done");
        work.leave_out_settled(&mut job);
        assert_eq!(job.keys, keys[5..], "a job that is no part is done as a whole");
        assert!(!work.finish_job(&jobs[0]));
        assert!(work.finish_job(&job));
    }

    #[test]
    fn due_retries_go_ahead_of_the_scan_of_the_same_segment() {
        let (work, jobs) = work(&[7, 30]);
        let lanes: Vec<_> = jobs.iter().map(|job| (job.lane, job.keys.len())).collect();
        assert_eq!(lanes, [(Lane::Retry, 2), (Lane::Backfill, 20), (Lane::Backfill, 18)]);
        assert_eq!(work.cursor_after(&jobs[1]), Some(Position(22)), "a retry does not hold the cursor back");
    }
}
