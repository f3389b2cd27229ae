//! Closings that wait at the same time share a transaction. One caller at a time leads: while it writes, the next ones
//! gather. A caller may leave at any time; closings it took along unwritten are brought again by their owners.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Mutex as AsyncMutex, oneshot},
    time::sleep,
};

use super::{
    close::{self, Answers},
    error::{Fault, Sql},
    pool::{Access, Pool, unreachable},
    writer::Writer,
};
use crate::{Close, Closed, ErrorKind, Result};

const DOING: &str = "closing a segment";
/// Closings of one transaction: more would keep the stream's row for longer than others like to wait.
const GROUP_MAX: usize = 64;
/// A closing costs the server as much as storing a hundred and fifty rows, nearly all of it whatever its size. While
/// rows come in, other segments are about to end: so many are waited for, but not for long.
const COMPANY: usize = 8;
const LINGER: Duration = Duration::from_millis(100);
/// How often it is looked whether rows still come in.
const NAP: Duration = Duration::from_millis(5);
/// A closing may meet others at the same rows now and then, not over and over.
const COLLISIONS_MAX: u32 = 5;

#[derive(Default)]
pub(super) struct Closer {
    /// Never held over an `.await`.
    queue: Mutex<Vec<Waiting>>,
    leading: AsyncMutex<()>,
}

struct Waiting {
    close: Arc<Close>,
    reply: oneshot::Sender<Result<Closed>>,
}

impl Closer {
    /// Durable when this returns `Ok`; whole or absent when the caller leaves before.
    pub(super) async fn submit(&self, pool: &Pool, writer: &Writer, close: Close) -> Result<Closed> {
        let close = Arc::new(close);
        loop {
            let (reply, mut answer) = oneshot::channel();
            self.with_queue(|queue| queue.push(Waiting { close: close.clone(), reply }));
            let answered = tokio::select! {
                biased;
                answered = &mut answer => answered,
                turn = self.leading.lock() => {
                    // Who has just led may have taken this one along.
                    if answer.is_empty() {
                        self.gather(writer).await;
                    }
                    while answer.is_empty() && self.lead(pool).await {}
                    drop(turn);
                    answer.await
                }
            };
            // Without an answer, the one who led has left.
            if let Ok(answered) = answered {
                return answered;
            }
        }
    }

    async fn gather(&self, writer: &Writer) {
        let mut patience = LINGER;
        while writer.is_busy() && !patience.is_zero() && self.with_queue(|queue| queue.len() < COMPANY) {
            sleep(NAP).await;
            patience = patience.saturating_sub(NAP);
        }
    }

    /// Closes what has gathered on the stream and axis of the first; none if nothing has.
    async fn lead(&self, pool: &Pool) -> bool {
        let group = self.with_queue(take);
        let any = !group.is_empty();
        write(pool, group).await;
        any
    }

    fn with_queue<T>(&self, change: impl FnOnce(&mut Vec<Waiting>) -> T) -> T {
        // Every change leaves the queue whole, so a panic elsewhere spoils nothing.
        change(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn take(queue: &mut Vec<Waiting>) -> Vec<Waiting> {
    queue.retain(|waiting| !waiting.reply.is_closed());
    let Some(first) = queue.first().map(|waiting| waiting.close.clone()) else { return Vec::new() };
    let mut taken = 0;
    queue
        .extract_if(.., |waiting| {
            let is_taken = taken < GROUP_MAX && is_alike(&waiting.close, &first);
            taken += usize::from(is_taken);
            is_taken
        })
        .collect()
}

fn is_alike(one: &Close, other: &Close) -> bool {
    one.stream == other.stream && one.dense.map(|table| table.name) == other.dense.map(|table| table.name)
}

/// One that does not add up is found by closing each alone.
async fn write(pool: &Pool, group: Vec<Waiting>) {
    match attempt(pool, &group).await {
        Ok(answers) => group.into_iter().zip(answers).for_each(|(waiting, outcome)| answer(waiting, outcome)),
        Err(fault) if is_about_one(&fault) && group.len() > 1 => {
            for waiting in group {
                let alone = attempt(pool, std::slice::from_ref(&waiting)).await;
                let outcome = alone.map(|mut answers| answers.remove(0)).map_err(|fault| fault.while_doing(DOING));
                answer(waiting, outcome.and_then(|outcome| outcome));
            }
        }
        Err(fault) if group.len() == 1 => {
            let fault = fault.while_doing(DOING);
            group.into_iter().take(1).zip([fault]).for_each(|(waiting, fault)| answer(waiting, Err(fault)));
        }
        Err(fault) => group.into_iter().for_each(|waiting| answer(waiting, Err(fault.shared(DOING)))),
    }
}

fn is_about_one(fault: &Fault) -> bool {
    matches!(fault.kind(), ErrorKind::Unaccounted | ErrorKind::Refused)
}

fn answer(waiting: Waiting, outcome: Result<Closed>) {
    // The one who asked may have left: what was written stays written.
    drop(waiting.reply.send(outcome));
}

async fn attempt(pool: &Pool, group: &[Waiting]) -> Sql<Answers> {
    if group.is_empty() {
        return Ok(Vec::new());
    }
    let closes: Vec<_> = group.iter().map(|waiting| waiting.close.as_ref()).collect();
    let mut collisions = 0;
    loop {
        let (seat, db) = pool.seat(Access::Write).await.map_err(|fault| Fault::Decided(unreachable(fault, DOING)))?;
        match seat.carry(close::close(&db, &closes)).await {
            Err(fault) if fault.is_collision() && collisions < COLLISIONS_MAX => collisions += 1,
            outcome => return outcome,
        }
    }
}
