//! A long job in parts, fetched a few beside each other and each written as soon as it has come: a crash undoes what is in
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
        if !self.stream.is_in_parts() {
            return self.settle(work, job, beat, turn).await;
        }
        if job.keys.len() <= self.window.part() {
            let _room = self.window.take(job.lane, job.keys.len()).await;
            return self.settle(work, job, beat, turn).await;
        }
        let looked = self.settle_parts(work, job, beat, turn).await?;
        if looked.is_whole()
            && let Some(cursor) = work.cursor_after(job)
        {
            self.commit_part(work, Sorted::default(), self.engine.now(), Some(cursor)).await?;
        }
        Ok(looked)
    }

    /// One after the other as there is room. What one of them fails at the others may still have done; none is begun any
    /// more.
    async fn settle_parts(
        &self,
        work: &Arc<SegmentWork>,
        job: &Job,
        beat: &Beat,
        mut turn: Turn,
    ) -> Result<Looked, JobError> {
        // Dropped, all are cancelled.
        let mut parts = JoinSet::new();
        let mut all = Ok(Looked::default());
        for keys in job.keys.chunks(self.window.part()) {
            let room = self.window.take(job.lane, keys.len()).await;
            while let Some(ended) = parts.try_join_next() {
                all = both(all, heard(ended));
            }
            if all.is_err() {
                break;
            }
            let (part, turn) = (job.part(keys), turn.split(keys.len()));
            let (worker, work, beat) = (self.clone(), work.clone(), beat.clone());
            parts.spawn(async move {
                let looked = worker.settle(&work, &part, &beat, turn).await;
                drop(room);
                looked
            });
        }
        while let Some(ended) = parts.join_next().await {
            all = both(all, heard(ended));
        }
        all
    }
}

fn both(all: Result<Looked, JobError>, part: Result<Looked, JobError>) -> Result<Looked, JobError> {
    match (all, part) {
        (Ok(all), Ok(part)) => Ok(all.and(part)),
        (Err(first), _) | (_, Err(first)) => Err(first),
    }
}

/// A part that panicked is a job that did.
fn heard(ended: Result<Result<Looked, JobError>, JoinError>) -> Result<Looked, JobError> {
    ended.unwrap_or_else(|died| match died.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => unreachable!("parts are cancelled only with the job that hears them"),
    })
}
