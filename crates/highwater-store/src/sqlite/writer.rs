//! Group commit without a task of its own: callers queue operations, and whoever gets hold of the connection first
//! writes for all that have gathered. A caller may leave at any time without harm to the others.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use highwater_core::Key;
use tokio::{
    sync::{Mutex as AsyncMutex, Notify, OwnedMutexGuard, Semaphore, oneshot},
    task::yield_now,
    time::sleep,
};

use super::{
    error::Sql,
    group::{self, Operation, Task},
    open::GroupLimits,
    session::Session,
};
use crate::{ErrorKind, Execution, Result, StoreError};

/// Busy workers finish a job every few milliseconds. Groups of a thousand rows write a third of the pages that groups of
/// three hundred do, so a gap this long is waited for, and a lone writer loses no more than this.
const QUIET: Duration = Duration::from_millis(5);

/// Operations that may wait; more than any engine has workers.
const QUEUE_MAX: usize = 1_024;

pub(super) struct Writer {
    /// Held by the one who writes for all; moves to a thread for blocking work and back, hence the `Arc`.
    pub(super) session: Arc<AsyncMutex<Session>>,
    pub(super) queue: Mutex<Queue>,
    arrived: Notify,
    room: Arc<Semaphore>,
    limits: GroupLimits,
    execution: Execution,
}

/// What an operation means for the group it joins.
#[derive(Clone, Debug, Default)]
pub(super) struct Weight {
    pub(super) rows: usize,
    pub(super) bytes: usize,
    pub(super) haste: Haste,
    /// The table and key it writes first. Neighbours are written in this order: pages are filled from left to right.
    pub(super) first: Option<(&'static str, Key)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Haste {
    /// Worth waiting for company.
    Gather,
    #[default]
    AtOnce,
}

#[derive(Default)]
pub(super) struct Queue {
    pub(super) waiting: VecDeque<(Weight, Box<dyn Operation>)>,
    rows: usize,
    bytes: usize,
    hasty: usize,
}

impl Writer {
    pub(super) fn new(session: Session, limits: GroupLimits, execution: Execution) -> Self {
        Writer {
            session: Arc::new(AsyncMutex::new(session)),
            queue: Mutex::default(),
            arrived: Notify::new(),
            room: Arc::new(Semaphore::new(QUEUE_MAX)),
            limits,
            execution,
        }
    }

    /// Runs `work` in a transaction, together with others. Durable when this returns `Ok`; not begun, or carried
    /// through, when the caller leaves before.
    pub(super) async fn submit<T: Send + 'static>(
        &self,
        doing: &'static str,
        weight: Weight,
        work: impl FnMut(&mut Session) -> Sql<T> + Send + 'static,
    ) -> Result<T> {
        let room = self.room.clone().acquire_owned().await.expect("the semaphore is never closed");
        let (reply, mut answer) = oneshot::channel();
        self.with_queue(|queue| queue.push(weight, Box::new(Task::new(doing, work, reply, room))));
        self.arrived.notify_one();
        tokio::select! {
            biased;
            answered = &mut answer => answered.unwrap_or_else(|_| Err(unanswered(doing))),
            session = self.session.clone().lock_owned() => self.lead(session, answer, doing).await,
        }
    }

    /// Writes group after group until the leader's own operation was among them.
    async fn lead<T>(
        &self,
        mut session: OwnedMutexGuard<Session>,
        mut answer: oneshot::Receiver<Result<T>>,
        doing: &'static str,
    ) -> Result<T> {
        loop {
            match answer.try_recv() {
                Ok(answered) => return answered,
                Err(oneshot::error::TryRecvError::Closed) => return Err(unanswered(doing)),
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
            self.gather().await;
            let operations = self.with_queue(|queue| queue.take(&self.limits));
            session = self.write(session, operations).await;
        }
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

    async fn write(
        &self,
        mut session: OwnedMutexGuard<Session>,
        operations: Vec<Box<dyn Operation>>,
    ) -> OwnedMutexGuard<Session> {
        let write = move || {
            group::write(&mut session, operations);
            session
        };
        self.execution.run(write).await
    }

    fn with_queue<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> T {
        // Every change leaves the queue whole, so a panic elsewhere spoils nothing.
        change(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Queue {
    fn push(&mut self, weight: Weight, operation: Box<dyn Operation>) {
        self.rows += weight.rows;
        self.bytes += weight.bytes;
        self.hasty += usize::from(weight.haste == Haste::AtOnce);
        self.waiting.push_back((weight, operation));
    }

    fn is_ripe(&self, limits: &GroupLimits) -> bool {
        self.hasty > 0 || self.rows >= limits.rows || self.bytes >= limits.bytes
    }

    /// The operations at the front that make one group: at least one, if any waits.
    fn take(&mut self, limits: &GroupLimits) -> Vec<Box<dyn Operation>> {
        let (mut rows, mut bytes) = (0, 0);
        let mut group = Vec::new();
        while rows < limits.rows
            && bytes < limits.bytes
            && let Some((weight, operation)) = self.waiting.pop_front()
        {
            rows += weight.rows;
            bytes += weight.bytes;
            self.hasty -= usize::from(weight.haste == Haste::AtOnce);
            group.push((weight, operation));
        }
        self.rows -= rows;
        self.bytes -= bytes;
        in_order(&mut group);
        group.into_iter().map(|(_, operation)| operation).collect()
    }
}

/// Sorts each run of operations that write rows. Others stay where they are: a claim may depend on what came before.
fn in_order(group: &mut [(Weight, Box<dyn Operation>)]) {
    for run in group.chunk_by_mut(|(a, _), (b, _)| a.first.is_some() == b.first.is_some()) {
        run.sort_by(|(a, _), (b, _)| a.first.cmp(&b.first));
    }
}

fn unanswered(doing: &str) -> StoreError {
    StoreError::new(ErrorKind::Unavailable, doing).caused_by("the one who wrote the group panicked")
}
