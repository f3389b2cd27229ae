//! Keys are asked for, and what comes of them is written, until none is open or none may be asked for any more.

use std::time::Duration;

use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use highwater_core::{BatchCounts, Failure, FailureKind, Key, Timestamp};
use highwater_sources::{Answer, Beat, Call, Fetched};

use super::{JobError, Worker};
use crate::{
    turns::Turn,
    work::{Job, SegmentWork},
};

/// Until what was behind is asked for again.
const ASK_AGAIN: Duration = Duration::from_millis(300);

impl Worker {
    /// Looks until no key is open, or none may be asked for any more.
    pub(super) async fn settle(
        &self,
        work: &SegmentWork,
        job: &Job,
        beat: &Beat,
        turn: Turn,
    ) -> Result<Looked, JobError> {
        let mut batch = BatchCounts::default();
        let mut turn = Some(turn);
        let mut marks = work.marks.clone();
        let mut rest = job.clone();
        loop {
            let look = Look {
                asked_at: marks.read_at.unwrap_or(self.engine.now()),
                call: Call { tags: marks.tags.clone(), ..Call::new(job.lane, beat.clone()) },
            };
            let looked = self.look(work, &rest, &look, &mut turn).await?;
            batch.add(&looked.batch);
            if looked.skipped || looked.spent.is_some() || looked.open.is_empty() {
                return Ok(Looked { batch, ..looked });
            }
            // Somebody else has just stored something, which does not happen for ever.
            rest.keys = looked.open;
            marks = marks.unshown();
            self.engine.world.clock.sleep(ASK_AGAIN).await;
        }
    }

    /// One look at the keys of a job: what comes is written, part by part if memory is short. The turn ends with the
    /// last of it.
    async fn look(
        &self,
        work: &SegmentWork,
        job: &Job,
        look: &Look,
        turn: &mut Option<Turn>,
    ) -> Result<Looked, JobError> {
        let mut looked = Looked { left: job.keys.len(), ..Looked::default() };
        let mut parts = self.parts(job, &look.call);
        while let Some(answers) = parts.next().await {
            let answers = answers.map_err(batch_error)?;
            looked.left = looked.left.checked_sub(answers.len()).ok_or_else(miscounted)?;
            if looked.left == 0 {
                drop(turn.take());
            }
            let refused = self.write(work, job, look, answers, &mut looked).await?;
            if let Some(failure) = refused {
                return Err(JobError::Account(failure));
            }
        }
        if looked.left == 0 { Ok(looked) } else { Err(miscounted()) }
    }

    /// Writes what says something of its keys; why the account cannot be used any more, if some say that.
    async fn write(
        &self,
        work: &SegmentWork,
        job: &Job,
        look: &Look,
        answers: Vec<Answer>,
        looked: &mut Looked,
    ) -> Result<Option<Failure>, JobError> {
        let Usable { answers, refused } = looked.usable(answers);
        if answers.is_empty() {
            return Ok(refused);
        }
        let keys: Vec<Key> = answers.iter().map(|answer| answer.key.clone()).collect();
        let sorted = self.judge(work, answers);
        looked.skipped |= sorted.skipped;
        let cursor = if looked.is_whole() { work.cursor_after(job) } else { None };
        let batch = self.commit_part(work, sorted, look.asked_at, cursor).await?;
        looked.batch.add(&batch);
        match batch.behind {
            0 => work.note_settled(job, keys),
            _ => looked.open.extend(keys),
        }
        Ok(refused)
    }

    fn parts<'a>(&'a self, job: &'a Job, call: &'a Call) -> BoxStream<'a, Result<Vec<Answer>, Failure>> {
        if let Some(failure) = &job.blame {
            let blamed = |key: &Key| Answer::new(key.clone(), Fetched::Failed(failure.clone()));
            return Box::pin(stream::iter([Ok(job.keys.iter().map(blamed).collect())]));
        }
        self.engine.source.fetch_parts(&self.stream.spec.name, &job.keys, call)
    }
}

/// How keys are asked for.
struct Look {
    asked_at: Timestamp,
    call: Call,
}

#[derive(Default)]
pub(super) struct Looked {
    pub(super) batch: BatchCounts,
    /// Keys without an answer.
    left: usize,
    /// Some keys were not asked for.
    pub(super) skipped: bool,
    /// Keys that are to be asked for again.
    pub(super) open: Vec<Key>,
    /// Why some were not asked for, if the operator allows no more.
    pub(super) spent: Option<Failure>,
}

impl Looked {
    pub(super) fn is_whole(&self) -> bool {
        self.left == 0 && !self.skipped && self.open.is_empty()
    }

    /// Two looks at different keys as one.
    pub(super) fn and(mut self, other: Looked) -> Looked {
        self.batch.add(&other.batch);
        self.open.extend(other.open);
        Looked {
            left: self.left + other.left,
            skipped: self.skipped || other.skipped,
            spent: self.spent.or(other.spent),
            ..self
        }
    }

    /// Parts answers that say something of their keys from the others, whose keys stay open.
    fn usable(&mut self, mut answers: Vec<Answer>) -> Usable {
        let mut refused = None;
        for Answer { key, fetched, .. } in answers.extract_if(.., |answer| is_about_account(&answer.fetched)) {
            self.open.push(key);
            match fetched {
                Fetched::Failed(failure) if failure.kind == FailureKind::Spent => self.spent = Some(failure),
                Fetched::Failed(failure) => refused = Some(failure),
                _ => {}
            }
        }
        Usable { answers, refused }
    }
}

struct Usable {
    answers: Vec<Answer>,
    /// An account that cannot be used is the end of all.
    refused: Option<Failure>,
}

fn is_about_account(fetched: &Fetched) -> bool {
    matches!(fetched, Fetched::Failed(failure) if matches!(failure.kind, FailureKind::Credentials | FailureKind::Spent))
}

fn batch_error(failure: Failure) -> JobError {
    match failure.kind {
        FailureKind::Spent => JobError::Account(failure),
        _ => JobError::Batch(failure),
    }
}

fn miscounted() -> JobError {
    JobError::Batch(Failure::new(FailureKind::Internal, "there are not as many answers as keys"))
}
