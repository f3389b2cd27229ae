//! Group commit without a task of its own: callers queue jobs, and whoever leads writes for all that have gathered. One
//! leads at a time, and what comes meanwhile makes the next group: the longer the server takes, the fewer groups it gets.
//! A caller may leave at any time: jobs it took along are written all the same, or brought again by their owners.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{
        Mutex as AsyncMutex, Notify, OwnedMutexGuard, Semaphore,
        oneshot::{self, error::TryRecvError},
    },
    task::yield_now,
    time::sleep,
};

use super::{
    group::{self, Waiting},
    job::Job,
    pool::Pool,
};
use crate::{Execution, GroupLimits, LiveCommitted, Result, rules::size_of};

/// Busy workers finish a job every few milliseconds, and those of a process that shares the machine with the server and
/// with others every ten. A lone writer loses no more than this; one that a job comes to every ten milliseconds waits as
/// long as a group may gather.
const QUIET: Duration = Duration::from_millis(20);
/// Jobs that may wait; more than any engine has workers.
const QUEUE_MAX: usize = 1_024;

pub(super) struct Writer {
    /// Never held over an `.await`.
    queue: Mutex<Queue>,
    arrived: Notify,
    room: Semaphore,
    /// Held by the one who writes for all; goes with the group, hence the `Arc`.
    leading: Arc<AsyncMutex<()>>,
    limits: GroupLimits,
    execution: Execution,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Weight, Waiting)>,
    rows: usize,
    bytes: usize,
    live: usize,
}

struct Weight {
    rows: usize,
    bytes: usize,
    /// What the feed told has gathered already, and is to be seen at once.
    is_live: bool,
}

impl Writer {
    pub(super) fn new(limits: GroupLimits, execution: Execution) -> Self {
        Writer {
            queue: Mutex::default(),
            arrived: Notify::new(),
            room: Semaphore::new(QUEUE_MAX),
            leading: Arc::default(),
            limits,
            execution,
        }
    }

    /// Durable when this returns `Ok`; whole or absent when the caller leaves before.
    pub(super) async fn submit(&self, pool: &Arc<Pool>, job: Job) -> Result<LiveCommitted> {
        let _room = self.room.acquire().await.expect("the semaphore is never closed");
        loop {
            let (reply, mut answer) = oneshot::channel();
            self.with_queue(|queue| queue.push(Waiting { job: job.clone(), reply }));
            self.arrived.notify_one();
            let answered = tokio::select! {
                biased;
                answered = &mut answer => answered.ok(),
                turn = self.leading.clone().lock_owned() => self.lead(pool, turn, answer).await,
            };
            // Without an answer, the one who led has left: nothing was written, or the same again changes nothing.
            if let Some(answered) = answered {
                return answered;
            }
        }
    }

    /// Writes group after group until the leader's own job was among them. None if it is to be brought again.
    async fn lead(
        &self,
        pool: &Arc<Pool>,
        mut turn: OwnedMutexGuard<()>,
        mut answer: oneshot::Receiver<Result<LiveCommitted>>,
    ) -> Option<Result<LiveCommitted>> {
        loop {
            match answer.try_recv() {
                Ok(answered) => return Some(answered),
                Err(TryRecvError::Closed) => return None,
                Err(TryRecvError::Empty) => {}
            }
            self.gather().await;
            let group = self.with_queue(|queue| queue.take(&self.limits));
            let pool = pool.clone();
            // To spell a thousand rows takes milliseconds, in which the thread that fetches would fetch nothing.
            let write = async move {
                group::write(&pool, group).await;
                turn
            };
            turn = self.execution.carry(write).await;
        }
    }

    /// Whether rows are being written, or wait to be.
    pub(super) fn is_busy(&self) -> bool {
        self.leading.try_lock().is_err() || self.with_queue(|queue| !queue.waiting.is_empty())
    }

    async fn gather(&self) {
        // Whoever is ready to write at this very moment comes along.
        yield_now().await;
        let mut linger = pin!(sleep(self.limits.linger));
        while !self.with_queue(|queue| queue.is_ripe(&self.limits)) {
            tokio::select! {
                biased;
                () = self.arrived.notified() => {}
                () = &mut linger => break,
                // Nobody has come for a while: company is not worth waiting for.
                () = sleep(QUIET) => break,
            }
        }
    }

    fn with_queue<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> T {
        // Every change leaves the queue whole, so a panic elsewhere spoils nothing.
        change(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Queue {
    fn push(&mut self, waiting: Waiting) {
        let job = &waiting.job;
        let rows = job.records().len() + job.unchanged().len() + job.settlements().len();
        let bytes = job.records().iter().map(size_of).sum();
        let is_live = matches!(job, Job::Live(_));
        self.rows += rows;
        self.bytes += bytes;
        self.live += usize::from(is_live);
        self.waiting.push_back((Weight { rows, bytes, is_live }, waiting));
    }

    fn is_ripe(&self, limits: &GroupLimits) -> bool {
        self.live > 0 || self.rows >= limits.rows || self.bytes >= limits.bytes
    }

    /// The first jobs that make one group: at least one, if any waits.
    fn take(&mut self, limits: &GroupLimits) -> Vec<Waiting> {
        let (mut rows, mut bytes) = (0, 0);
        let mut group = Vec::new();
        while rows < limits.rows
            && bytes < limits.bytes
            && let Some((weight, waiting)) = self.waiting.pop_front()
        {
            rows += weight.rows;
            bytes += weight.bytes;
            self.live -= usize::from(weight.is_live);
            group.push(waiting);
        }
        self.rows -= rows;
        self.bytes -= bytes;
        group
    }
}

#[cfg(test)]
mod tests {
    use highwater_core::{StreamId, Timestamp};

    use super::*;
    use crate::LiveCommit;

    #[test]
    fn what_the_feed_told_does_not_wait_for_company() {
        let stream = StreamId { source: "hn".parse().unwrap(), stream: "items".parse().unwrap() };
        let (now, limits) = (Timestamp::EPOCH, GroupLimits::default());
        let told = LiveCommit { stream, now, asked_at: now, records: Vec::new(), unchanged: Vec::new() };
        let mut queue = Queue::default();
        assert!(!queue.is_ripe(&limits));
        queue.push(Waiting { job: Job::Live(Arc::new(told)), reply: oneshot::channel().0 });
        assert!(queue.is_ripe(&limits));
        assert_eq!(queue.take(&limits).len(), 1);
        assert!(!queue.is_ripe(&limits), "what is being written makes nobody hurry");
    }
}
