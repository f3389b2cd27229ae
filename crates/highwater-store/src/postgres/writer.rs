//! Group commit without a task of its own: callers queue jobs, and whoever leads writes for all that have gathered. Two
//! may lead at a time, so that one group is sent while another waits for the disk. A caller may leave at any time: jobs it
//! took along are written all the same, or brought again by their owners.

use std::{
    collections::{BTreeSet, VecDeque},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use highwater_core::SegmentId;
use tokio::{
    sync::{Mutex as AsyncMutex, Notify, Semaphore, oneshot},
    task::yield_now,
    time::sleep,
};

use super::{
    group::{self, Waiting},
    job::Job,
    pool::Pool,
};
use crate::{Execution, GroupLimits, LiveCommitted, Result, rules::size_of};

/// Busy workers finish a job every few milliseconds; a lone writer loses no more than this.
const QUIET: Duration = Duration::from_millis(5);
/// Jobs that may wait; more than any engine has workers.
const QUEUE_MAX: usize = 1_024;
/// One sends while the other waits for its commit to reach the disk; a third would only share the disk with them.
const LEADERS: usize = 2;
/// Jobs that came while both were writing go along together, up to so many times what is waited for: the longer the
/// server takes, the fewer groups it gets.
const CROWD: usize = 4;

pub(super) struct Writer {
    /// Never held over an `.await`.
    queue: Mutex<Queue>,
    arrived: Notify,
    /// A group has ended, and its segments may be written again.
    freed: Notify,
    room: Semaphore,
    leaders: Semaphore,
    /// One leader at a time waits for company.
    gathering: AsyncMutex<()>,
    limits: GroupLimits,
    execution: Execution,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Weight, Waiting)>,
    /// Segments in the hands of a leader. A group that wrote for one of them too would wait for the other's disk at the
    /// first lock.
    busy: BTreeSet<SegmentId>,
    next: u64,
}

struct Weight {
    ticket: u64,
    rows: usize,
    bytes: usize,
}

impl Writer {
    pub(super) fn new(limits: GroupLimits, execution: Execution) -> Self {
        Writer {
            queue: Mutex::default(),
            arrived: Notify::new(),
            freed: Notify::new(),
            room: Semaphore::new(QUEUE_MAX),
            leaders: Semaphore::new(LEADERS),
            gathering: AsyncMutex::new(()),
            limits,
            execution,
        }
    }

    /// Durable when this returns `Ok`; whole or absent when the caller leaves before.
    pub(super) async fn submit(&self, pool: &Arc<Pool>, job: Job) -> Result<LiveCommitted> {
        let _room = self.room.acquire().await.expect("the semaphore is never closed");
        loop {
            let (reply, mut answer) = oneshot::channel();
            let waiting = Waiting { job: job.clone(), reply };
            let ticket = self.with_queue(|queue| queue.push(waiting));
            self.arrived.notify_one();
            let answered = tokio::select! {
                biased;
                answered = &mut answer => answered,
                seat = self.leaders.acquire() => {
                    self.lead(pool, ticket).await;
                    // Whoever waits for another's group must not keep a third from leading.
                    drop(seat);
                    answer.await
                }
            };
            // Without an answer, the one who led has left: nothing was written, or the same again changes nothing.
            if let Ok(answered) = answered {
                return answered;
            }
        }
    }

    /// Writes groups until the leader's own job is among them, or in the hands of the other leader.
    async fn lead(&self, pool: &Arc<Pool>, ticket: u64) {
        loop {
            let turn = self.gathering.lock().await;
            if !self.with_queue(|queue| queue.holds(ticket)) {
                return;
            }
            self.gather().await;
            let group = self.with_queue(|queue| queue.take(&self.limits));
            if group.is_empty() {
                tokio::select! {
                    () = self.freed.notified() => {}
                    () = self.arrived.notified() => {}
                }
                continue;
            }
            let _hold = Hold { writer: self, segments: group.iter().filter_map(segment_of).collect() };
            drop(turn);
            let pool = pool.clone();
            // To spell a thousand rows takes milliseconds, in which the thread that fetches would fetch nothing.
            self.execution.carry(async move { group::write(&pool, group).await }).await;
        }
    }

    /// Whether rows are being written, or wait to be.
    pub(super) fn is_busy(&self) -> bool {
        self.leaders.available_permits() < LEADERS || self.with_queue(|queue| !queue.waiting.is_empty())
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

/// The segments of a group, for as long as it is written.
struct Hold<'a> {
    writer: &'a Writer,
    segments: BTreeSet<SegmentId>,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.writer.with_queue(|queue| queue.busy.retain(|segment| !self.segments.contains(segment)));
        self.writer.freed.notify_one();
    }
}

fn segment_of(waiting: &Waiting) -> Option<SegmentId> {
    waiting.job.lease().map(|lease| lease.segment)
}

impl Queue {
    fn push(&mut self, waiting: Waiting) -> u64 {
        let job = &waiting.job;
        let rows = job.records().len() + job.unchanged().len() + job.settlements().len();
        let bytes = job.records().iter().map(size_of).sum();
        let ticket = self.next;
        self.next += 1;
        self.waiting.push_back((Weight { ticket, rows, bytes }, waiting));
        ticket
    }

    fn holds(&self, ticket: u64) -> bool {
        self.waiting.iter().any(|(weight, _)| weight.ticket == ticket)
    }

    fn is_ripe(&self, limits: &GroupLimits) -> bool {
        let (mut rows, mut bytes) = (0, 0);
        for (weight, _) in self.waiting.iter().filter(|(_, waiting)| self.is_free(waiting)) {
            rows += weight.rows;
            bytes += weight.bytes;
            if rows >= limits.rows || bytes >= limits.bytes {
                return true;
            }
        }
        false
    }

    fn is_free(&self, waiting: &Waiting) -> bool {
        segment_of(waiting).is_none_or(|segment| !self.busy.contains(&segment))
    }

    /// The first jobs that make one group: at least one, if any waits whose segment nobody else is writing.
    fn take(&mut self, limits: &GroupLimits) -> Vec<Waiting> {
        let (mut rows, mut bytes) = (0, 0);
        let (mut group, mut left) = (Vec::new(), VecDeque::new());
        for (weight, waiting) in std::mem::take(&mut self.waiting) {
            if rows < CROWD * limits.rows && bytes < limits.bytes && self.is_free(&waiting) {
                rows += weight.rows;
                bytes += weight.bytes;
                group.push(waiting);
            } else {
                left.push_back((weight, waiting));
            }
        }
        self.waiting = left;
        self.busy.extend(group.iter().filter_map(segment_of));
        group
    }
}
