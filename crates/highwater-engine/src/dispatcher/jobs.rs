//! Jobs as tasks: started, heard of, tried again, split, and cancelled when they stall.

use std::sync::Arc;

use highwater_core::{AfterFailure, BatchCounts, Event, Failure, FailureKind, ItemSignals, Signals, after_failure};
use highwater_sources::Beat;
use tokio::task::{AbortHandle, Id as TaskId, JoinError};

use super::Dispatcher;
use crate::{
    EngineError,
    error::Result,
    turns::Turn,
    work::{Job, SegmentWork},
    worker::{JobEnd, JobError},
};

pub(super) struct Running {
    work: Arc<SegmentWork>,
    job: Job,
    beat: Beat,
    handle: AbortHandle,
    stalled: bool,
}

impl Running {
    /// Its segment is lost: what it holds is fetched again by whoever has it now.
    pub(super) fn cancel(&self) {
        self.handle.abort();
    }
}

impl Dispatcher {
    pub(super) fn jobs_max(&self) -> usize {
        self.worker.stream.jobs_max(&self.worker.engine.settings)
    }

    pub(super) fn start_jobs(&mut self) {
        while self.spent.is_none()
            && self.running.len() < self.jobs_max()
            && let Some(((work, job), turn)) = self.ready.take(&self.worker.turns)
        {
            if !work.is_lost() {
                self.start_job(work, job, turn);
            }
        }
    }

    fn start_job(&mut self, work: Arc<SegmentWork>, job: Job, turn: Turn) {
        let beat = Beat::new(self.worker.engine.world.clock.clone());
        let task = {
            let (worker, work, job, beat) = (self.worker.clone(), work.clone(), job.clone(), beat.clone());
            async move { worker.run(&work, &job, &beat, turn).await }
        };
        let handle = self.tasks.spawn(task);
        let number = self.next_number;
        self.next_number += 1;
        self.numbers.insert(handle.id(), number);
        self.running.insert(number, Running { work, job, beat, handle, stalled: false });
    }

    pub(super) fn handle_joined(
        &mut self,
        joined: Result<(TaskId, Result<JobEnd, JobError>), JoinError>,
    ) -> Result<()> {
        let id = joined.as_ref().map_or_else(|error| error.id(), |(id, _)| *id);
        let number = self.numbers.remove(&id).expect("every task was numbered when it was started");
        let running = self.running.remove(&number).expect("every numbered task is listed as running");
        match joined {
            Ok((_, Ok(end))) => self.handle_end(&running.work, end),
            Ok((_, Err(JobError::Batch(failure)))) => self.try_again(running, failure),
            Ok((_, Err(JobError::Store(error)))) => return Err(error.into()),
            Ok((_, Err(JobError::Account(failure)))) => return Err(failure.into()),
            Err(_) if running.stalled => {
                let failure = Failure::new(FailureKind::Timeout, "no sign of life within the stall timeout");
                self.try_again(running, failure);
            }
            Err(error) if error.is_panic() => self.handle_panic(running)?,
            Err(_) if running.work.is_lost() => {}
            Err(error) => return Err(EngineError::TaskDied(error.to_string())),
        }
        Ok(())
    }

    fn handle_end(&mut self, work: &Arc<SegmentWork>, end: JobEnd) {
        self.panics_in_row = 0;
        match end {
            JobEnd::Committed { batch, closed, more } => {
                self.totals.add(&batch);
                self.alert();
                more.into_iter().for_each(|job| self.ready.push(work.clone(), job));
                if closed.is_some() {
                    self.forget(work);
                }
            }
            JobEnd::Interrupted { batch } => self.totals.add(&batch),
            JobEnd::Spent { batch, rest, failure } => {
                self.totals.add(&batch);
                self.handle_spent(work, rest, failure);
            }
            JobEnd::LeaseLost => self.forget(work),
        }
    }

    /// The segment may have been claimed anew meanwhile; that claim is another piece of work.
    fn forget(&mut self, work: &Arc<SegmentWork>) {
        if self.open.get(&work.lease.segment).is_some_and(|open| Arc::ptr_eq(open, work)) {
            self.open.remove(&work.lease.segment);
        }
    }

    fn alert(&mut self) {
        let BatchCounts { missing, excluded, dead, .. } = self.totals;
        let items = ItemSignals { settled: self.totals.stored() + missing + excluded + dead, bad: dead };
        let signals = Signals { items, ..Signals::default() };
        for change in self.alerts.observe(&signals, self.worker.engine.now()) {
            self.worker.engine.emit(Event::Alert(change));
        }
    }

    fn handle_panic(&mut self, running: Running) -> Result<()> {
        self.panics_in_row += 1;
        self.worker.engine.emit(Event::WorkerPanicked { segment: running.work.lease.segment });
        if self.panics_in_row > PANICS_IN_ROW_MAX {
            return Err(EngineError::WorkersDie { panics: self.panics_in_row });
        }
        self.try_again(running, Failure::new(FailureKind::Internal, "the worker panicked on it"));
        Ok(())
    }

    /// A batch that failed as a whole is tried again, then halved until the failure is one key.
    fn try_again(&mut self, running: Running, failure: Failure) {
        let Running { work, mut job, .. } = running;
        work.leave_out_settled(&mut job);
        job.failures += 1;
        match after_failure(job.keys.len(), job.failures) {
            AfterFailure::TryAgain => self.ready.push(work, job),
            AfterFailure::Blame => {
                job.blame = Some(failure);
                self.ready.push(work, job);
            }
            AfterFailure::Split => {
                let keys = job.keys.len() as u64;
                self.worker.engine.emit(Event::JobSplit { segment: work.lease.segment, keys });
                work.split_job(job).into_iter().for_each(|half| self.ready.push(work.clone(), half));
            }
        }
    }

    pub(super) fn cancel_stalled(&mut self) {
        let patience = self.worker.engine.settings.patience.stall;
        let now = self.worker.engine.world.clock.moment();
        for running in self.running.values_mut() {
            if !running.stalled && running.beat.is_stalled(now, patience) {
                let keys = running.job.keys.len() as u64;
                self.worker
                    .engine
                    .world
                    .observer
                    .notify(&Event::JobStalled { segment: running.work.lease.segment, keys });
                running.stalled = true;
                running.handle.abort();
            }
        }
    }
}

/// One poisonous key in a job of a hundred costs fewer than twenty panics before it is alone.
const PANICS_IN_ROW_MAX: u32 = 100;
