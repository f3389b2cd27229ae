//! One job: fetch outside any transaction, judge every answer, then one commit, or several for a long one.

mod looking;
mod parts;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;
use highwater_core::{
    BatchCounts, Edit, Event, Failure, FailureKind, History, Judge, Key, Lane, Position, Purpose, Record, Settlement,
    Strike, Timestamp, Value, Verdict, halves, schema::Table,
};
use highwater_sources::{Answer, Beat, Call, Density, Fetched, Held};
use highwater_store::{Close, Closed, Commit, ErrorKind, StoreError};

use crate::{
    context::{Engine, StreamContext},
    guard::Guard,
    turns::{Turn, Turns},
    window::Window,
    work::{Job, SegmentWork},
};
use looking::Looked;

/// What became of a job that did not fail as a whole.
#[derive(Debug)]
pub(crate) enum JobEnd {
    Committed {
        batch: BatchCounts,
        closed: Option<Closed>,
        /// What came to light when all was thought to be done.
        more: Vec<Job>,
    },
    /// The run is stopping: what was in hand is committed, the rest was not asked for.
    Interrupted { batch: BatchCounts },
    /// The operator's allowance is used up: what came is committed, the rest was not asked for.
    Spent { batch: BatchCounts, rest: Job, failure: Failure },
    /// Somebody else has the segment now.
    LeaseLost,
}

impl JobEnd {
    pub(crate) fn batch(&self) -> BatchCounts {
        match self {
            JobEnd::Committed { batch, .. } | JobEnd::Interrupted { batch } | JobEnd::Spent { batch, .. } => *batch,
            JobEnd::LeaseLost => BatchCounts::default(),
        }
    }
}

#[derive(Debug)]
pub(crate) enum JobError {
    /// The batch failed as a whole: to be tried again, split, or blamed on its one key.
    Batch(Failure),
    /// The account cannot be used any more.
    Account(Failure),
    Store(StoreError),
}

impl From<StoreError> for JobError {
    fn from(error: StoreError) -> Self {
        JobError::Store(error)
    }
}

/// Everything a job needs; cloned into its task.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) engine: Engine,
    pub(crate) stream: Arc<StreamContext>,
    pub(crate) guard: Arc<Guard>,
    pub(crate) turns: Turns,
    pub(crate) window: Window,
    pub(crate) second_look: SecondLook,
}

/// What a rescan asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecondLook {
    /// Bodies, whatever is stored: a row that was damaged here is the same as ever to the remote.
    Whole,
    /// Bodies the remote has not given out yet.
    ByMark,
}

impl Worker {
    pub(crate) fn new(engine: Engine, stream: Arc<StreamContext>) -> Self {
        Worker { second_look: SecondLook::Whole, ..Worker::guarded(engine, stream, Arc::default()) }
    }

    /// Beside others that meet the same remote: what befalls all of them at once is seen as one.
    pub(crate) fn guarded(engine: Engine, stream: Arc<StreamContext>, guard: Arc<Guard>) -> Self {
        let keys = stream.keys_fetching(&engine.settings);
        let (turns, window) = (Turns::new(keys), Window::new());
        Worker { engine, stream, guard, turns, window, second_look: SecondLook::ByMark }
    }

    pub(crate) async fn run(
        &self,
        work: &Arc<SegmentWork>,
        job: &Job,
        beat: &Beat,
        turn: Turn,
    ) -> Result<JobEnd, JobError> {
        let Looked { batch, skipped, open, spent, .. } = match self.settle_job(work, job, beat, turn).await {
            Err(JobError::Store(error)) if error.kind == ErrorKind::Fenced => return Ok(self.lost(work)),
            settled => settled?,
        };
        if skipped {
            work.abandon_job(job);
            return Ok(JobEnd::Interrupted { batch });
        }
        if let Some(failure) = spent {
            let mut rest = job.clone();
            rest.keys = open;
            return Ok(JobEnd::Spent { batch, rest, failure });
        }
        let mut more = Vec::new();
        if work.finish_job(job) {
            more = self.recheck(work).await?;
            if more.is_empty() {
                return Ok(JobEnd::Committed { batch, closed: self.close(work).await?, more });
            }
        }
        Ok(JobEnd::Committed { batch, closed: None, more })
    }

    async fn commit_part(
        &self,
        work: &SegmentWork,
        mut sorted: Sorted,
        asked_at: Timestamp,
        cursor: Option<Position>,
    ) -> Result<BatchCounts, JobError> {
        let mut batch = BatchCounts::default();
        let began = self.engine.world.clock.moment();
        let held = std::mem::take(&mut sorted.held);
        self.commit(work, sorted, asked_at, cursor, &mut batch).await?;
        drop(held);
        let took = self.engine.world.clock.moment().since(began);
        self.engine.emit(Event::Committed { segment: work.lease.segment, batch, took });
        Ok(batch)
    }

    /// Heads and listings go ahead of all mirrored work.
    pub(crate) fn control_call(&self) -> Call {
        Call::new(Lane::Live, Beat::new(self.engine.world.clock.clone()))
    }

    fn judge(&self, work: &SegmentWork, answers: Vec<Answer>) -> Sorted {
        let strike = self.guard.observe(&answers, self.engine.world.clock.moment(), self.engine.now());
        let judge = self.judge_now();
        let mut sorted = Sorted { records: Vec::with_capacity(answers.len()), ..Sorted::default() };
        for Answer { key, fetched, held } in answers {
            sorted.held.extend(held);
            let history = work.history(&key);
            match fetched {
                Fetched::Found(record) => {
                    if work.has_exception(&key) {
                        sorted.settlements.push(settled(key, history));
                    }
                    sorted.records.push(record);
                }
                Fetched::Delayed { record, looks } => {
                    let settlement = judge.delayed(key.clone(), &work.looks(&key), looks);
                    if settlement.verdict != Verdict::Stored || work.has_exception(&settlement.key) {
                        sorted.settlements.push(settlement);
                    }
                    sorted.records.push(record);
                }
                Fetched::Absent if work.snapshot.as_ref().is_some_and(|snapshot| snapshot.doubts_absence) => {
                    let failure = Failure::new(FailureKind::Vanished, TOO_MANY);
                    let settlement = judge.failure(key, &history, &failure, strike);
                    self.tell(&settlement, failure.kind);
                    sorted.settlements.push(settlement);
                }
                Fetched::Absent if work.is_stored(&key) && self.stream.spec.vanished.is_some() => {
                    self.engine.emit(Event::Vanished { key: key.clone() });
                    sorted.edits.extend(self.vanished(&key));
                    sorted.settlements.push(settled(key, history));
                }
                Fetched::Absent if work.is_stored(&key) => {
                    self.engine.emit(Event::Vanished { key: key.clone() });
                    // One absence proves nothing: it is looked at again, ever later.
                    sorted.settlements.push(judge.delayed(key, &history, LOOKS_AT_VANISHED));
                }
                Fetched::Absent => {
                    let region = self.stream.region(&key);
                    sorted.settlements.push(judge.absence(key, &history, region));
                }
                Fetched::Unchanged => {
                    if work.has_exception(&key) {
                        sorted.settlements.push(settled(key.clone(), history));
                    }
                    sorted.unchanged.push((key, self.stream.spec.table));
                }
                Fetched::Excluded { reason } => {
                    let verdict = Verdict::Excluded;
                    sorted.settlements.push(Settlement { key, verdict, history, reason, last_error: None });
                }
                Fetched::Failed(failure) => {
                    let failure = work.as_known(&key, failure);
                    let settlement = self.judge_failure(&judge, work, key, &failure, strike);
                    self.tell(&settlement, failure.kind);
                    sorted.settlements.push(settlement);
                }
                Fetched::Skipped => sorted.skipped = true,
            }
        }
        sorted
    }

    /// The body stays; that it is gone is noted beside it.
    fn vanished(&self, key: &Key) -> Option<(Key, &'static Table, Vec<Edit>)> {
        let column = self.stream.spec.vanished?;
        let gone = Edit::Fill { column, value: Value::Time(self.engine.now()) };
        Some((key.clone(), self.stream.spec.table, vec![gone]))
    }

    /// A key dies only when the remote is known to have answered for others since it was tried before.
    fn judge_failure(
        &self,
        judge: &Judge,
        work: &SegmentWork,
        key: Key,
        failure: &Failure,
        strike: Strike,
    ) -> Settlement {
        let history = work.history(&key);
        let settlement = judge.failure(key.clone(), &history, failure, strike);
        if settlement.verdict == Verdict::Dead && self.guard.doubts_a_death(failure.kind, work.last_tried(&key)) {
            let spared = judge.failure(key, &history, failure, Strike::Outage);
            return Settlement { verdict: Verdict::Retry { at: judge.now + LAST_CHANCE }, ..spared };
        }
        let is_old_enough = work.purpose == Purpose::Catchup && work.snapshot.is_none();
        // What is stored may be less than there is.
        let is_held_back = history.absences > 0;
        if settlement.verdict == Verdict::Dead && is_old_enough && !is_held_back && work.is_stored(&key) {
            // A body is stored; that it could not be had again is told, and no reason to hold the frontier.
            return settled(key, history);
        }
        settlement
    }

    /// One roll of the dice per batch: keys that failed together become due together, and are claimed once.
    fn judge_now(&self) -> Judge {
        Judge {
            retry: self.engine.settings.retry,
            absence: self.stream.policy.absence,
            now: self.engine.now(),
            jitter: self.engine.world.entropy.unit(),
        }
    }

    fn tell(&self, settlement: &Settlement, kind: FailureKind) {
        let key = settlement.key.clone();
        let retry_at = match settlement.verdict {
            Verdict::Retry { at } => Some(at),
            _ => None,
        };
        if settlement.verdict == Verdict::Dead {
            self.engine.emit(Event::DeadLetter { key: key.clone(), reason: settlement.reason });
        }
        self.engine.emit(Event::KeyFailed { key, kind, attempts: settlement.history.attempts, retry_at });
    }

    /// Writes a batch; if the store refuses the data, halves it until the one row that it refuses is found.
    async fn commit(
        &self,
        work: &SegmentWork,
        sorted: Sorted,
        asked_at: Timestamp,
        cursor: Option<Position>,
        batch: &mut BatchCounts,
    ) -> Result<(), JobError> {
        let (mut unchanged, mut edits) = (sorted.unchanged, sorted.edits);
        let mut records = sorted.records;
        self.store_blobs(&mut records).await?;
        let mut parts = vec![(records, sorted.settlements)];
        while let Some((records, settlements)) = parts.pop() {
            // The cursor may pass these keys only together with the last of them.
            let cursor = if parts.is_empty() { cursor } else { None };
            let commit = Arc::new(Commit {
                lease: work.lease.clone(),
                stream: self.stream.id.clone(),
                now: self.engine.now(),
                asked_at,
                records,
                unchanged: std::mem::take(&mut unchanged),
                edits: std::mem::take(&mut edits),
                settlements,
                cursor,
            });
            match self.engine.steady(|| self.engine.store.commit(commit.clone())).await {
                Ok(counts) => batch.add(&counts),
                Err(error) if error.kind == ErrorKind::Refused && !commit.records.is_empty() => {
                    let mut commit = Arc::unwrap_or_clone(commit);
                    // None of these was refused: they go with the next part, no later than the verdicts on their keys.
                    (unchanged, edits) = (std::mem::take(&mut commit.unchanged), std::mem::take(&mut commit.edits));
                    parts.extend(self.smaller(work, commit, &error));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Before the rows that name them.
    async fn store_blobs(&self, records: &mut [Record]) -> Result<(), JobError> {
        let blobs: Vec<_> = records.iter_mut().flat_map(|record| std::mem::take(&mut record.blobs)).collect();
        if blobs.is_empty() {
            return Ok(());
        }
        let Some(place) = &self.engine.blobs else {
            let failure = Failure::new(FailureKind::Internal, "there is no place for attachments");
            return Err(JobError::Batch(failure));
        };
        let stored = blobs.into_iter().map(|blob| {
            let content = Bytes::from(blob.content);
            async move { self.engine.steady(|| place.put(content.clone())).await.map(drop) }
        });
        let mut stored = futures_util::stream::iter(stored).buffer_unordered(BLOBS_AT_ONCE);
        while let Some(outcome) = stored.next().await {
            outcome?;
        }
        Ok(())
    }

    /// A refused batch as two smaller ones; a single refused record as a failure of its key.
    fn smaller(&self, work: &SegmentWork, commit: Commit, error: &StoreError) -> Vec<(Vec<Record>, Vec<Settlement>)> {
        let Commit { mut records, mut settlements, .. } = commit;
        if records.len() > 1 {
            self.engine.emit(Event::JobSplit { segment: work.lease.segment, keys: records.len() as u64 });
            let (left, right) = halves(records);
            let of_right = |settlement: &Settlement| right.iter().any(|record| record.key == settlement.key);
            let (right_settlements, left_settlements) = settlements.into_iter().partition(of_right);
            return vec![(left, left_settlements), (right, right_settlements)];
        }
        let key = records.remove(0).key;
        let failure = Failure::new(FailureKind::Internal, format!("the store refuses it: {}", crate::describe(error)));
        let history = work.history(&key);
        settlements.retain(|settlement| settlement.key != key);
        let settlement = self.judge_now().failure(key, &history, &failure, Strike::Counts);
        self.tell(&settlement, failure.kind);
        settlements.push(settlement);
        vec![(Vec::new(), settlements)]
    }

    pub(crate) async fn close(&self, work: &SegmentWork) -> Result<Option<Closed>, StoreError> {
        let dense = (self.stream.spec.density == Density::Dense).then_some(self.stream.spec.table);
        let close = |now: Timestamp| Close {
            lease: work.lease.clone(),
            stream: self.stream.id.clone(),
            policy: self.stream.policy.dead_letters,
            dense,
            now,
        };
        match self.engine.steady(|| self.engine.store.close(close(self.engine.now()))).await {
            Ok(closed) => {
                let (segment, span) = (work.lease.segment, work.span);
                self.engine.emit(Event::Closed { segment, span, status: closed.status, frontier: closed.frontier });
                Ok(Some(closed))
            }
            Err(error) if error.kind == ErrorKind::Fenced => {
                self.lost(work);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn lost(&self, work: &SegmentWork) -> JobEnd {
        work.mark_lost();
        self.engine.emit(Event::LeaseLost { segment: work.lease.segment });
        JobEnd::LeaseLost
    }
}

const TOO_MANY: &str = "gone, as is more than what is left of its kind: deleted, or hidden from this account";

/// Each waits for the disk, or for a store far away.
const BLOBS_AT_ONCE: usize = 8;

/// Within half a minute.
const LOOKS_AT_VANISHED: u32 = 4;

/// Long enough to ask a canary meanwhile.
const LAST_CHANCE: Duration = Duration::from_secs(1);

/// Answers as what is to be written.
#[derive(Default)]
struct Sorted {
    records: Vec<Record>,
    settlements: Vec<Settlement>,
    unchanged: Vec<(Key, &'static Table)>,
    edits: Vec<(Key, &'static Table, Vec<Edit>)>,
    /// The memory that all this takes up.
    held: Vec<Held>,
    /// Some keys were not asked for.
    skipped: bool,
}

fn settled(key: Key, history: History) -> Settlement {
    Settlement { key, verdict: Verdict::Stored, history, reason: "stored", last_error: None }
}
