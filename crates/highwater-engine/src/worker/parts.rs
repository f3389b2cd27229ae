//! A long job in parts, fetched beside each other and each written as soon as it has come: a crash undoes what is in
//! hand, not the job.

use std::sync::Arc;

use highwater_sources::Beat;
use tokio::task::{JoinError, JoinSet};

use super::{JobError, Sorted, Worker, looking::Looked};
use crate::{
    turns::Turn,
    work::{Job, SegmentWork},
};

impl Worker {
    /// Each key of the job has an answer that is written, or the reason why not.
    pub(super) async fn settle_job(
        &self,
        work: &Arc<SegmentWork>,
        job: &Job,
        beat: &Beat,
        turn: Turn,
    ) -> Result<Looked, JobError> {
        if job.keys.len() <= self.stream.part_size() {
            return self.settle(work, job, beat, turn).await;
        }
        let looked = join_all(self.start_parts(work, job, beat, turn)).await?;
        if looked.is_whole()
            && let Some(cursor) = work.cursor_after(job)
        {
            self.commit_part(work, Sorted::default(), self.engine.now(), Some(cursor)).await?;
        }
        Ok(looked)
    }

    fn start_parts(&self, work: &Arc<SegmentWork>, job: &Job, beat: &Beat, mut turn: Turn) -> Parts {
        let mut parts = JoinSet::new();
        for keys in job.keys.chunks(self.stream.part_size()) {
            let (part, turn) = (job.part(keys), turn.split(keys.len()));
            let (worker, work, beat) = (self.clone(), work.clone(), beat.clone());
            parts.spawn(async move { worker.settle(&work, &part, &beat, turn).await });
        }
        parts
    }
}

/// Dropped, all are cancelled.
type Parts = JoinSet<Result<Looked, JobError>>;

/// What one of them fails at the others may still have done.
async fn join_all(mut parts: Parts) -> Result<Looked, JobError> {
    let mut all = Ok(Looked::default());
    while let Some(ended) = parts.join_next().await {
        all = match (all, heard(ended)) {
            (Ok(all), Ok(part)) => Ok(all.and(part)),
            (Err(first), _) | (_, Err(first)) => Err(first),
        };
    }
    all
}

/// A part that panicked is a job that did.
fn heard(ended: Result<Result<Looked, JobError>, JoinError>) -> Result<Looked, JobError> {
    ended.unwrap_or_else(|died| match died.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => unreachable!("parts are cancelled only with the job that hears them"),
    })
}
