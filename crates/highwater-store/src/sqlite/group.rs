//! A group of operations in one transaction. One that is fenced off or refused does not spoil the others: then all are
//! run again, each with a savepoint of its own. That is rare, and a savepoint costs a copy of every page that is written
//! after it. Nobody is answered before the whole group is durable.

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::{
    error::{Fault, Sql},
    session::Session,
};
use crate::{ErrorKind, Result, StoreError};

/// Something to write, and whoever waits for it.
pub(super) trait Operation: Send {
    fn doing(&self) -> &'static str;
    /// Nobody waits any more.
    fn is_abandoned(&self) -> bool;
    /// May be called again after what it did was undone.
    fn run(&mut self, session: &mut Session) -> Sql<()>;
    /// Tells what the last `run` brought, or why it brought nothing.
    fn answer(self: Box<Self>, outcome: Result<()>);
}

pub(super) struct Task<T, F> {
    doing: &'static str,
    work: F,
    result: Option<T>,
    reply: oneshot::Sender<Result<T>>,
    _room: OwnedSemaphorePermit,
}

impl<T, F> Task<T, F> {
    pub(super) fn new(
        doing: &'static str,
        work: F,
        reply: oneshot::Sender<Result<T>>,
        room: OwnedSemaphorePermit,
    ) -> Self {
        Task { doing, work, result: None, reply, _room: room }
    }
}

impl<T, F> Operation for Task<T, F>
where
    T: Send,
    F: FnMut(&mut Session) -> Sql<T> + Send,
{
    fn doing(&self) -> &'static str {
        self.doing
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, session: &mut Session) -> Sql<()> {
        self.result = Some((self.work)(session)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let Task { work, result, reply, .. } = *self;
        // What it holds is the asker's again.
        drop(work);
        let result = outcome.map(|()| result.expect("an operation that did not fail has a result"));
        // The one who asked may have left: what was written stays written.
        drop(reply.send(result));
    }
}

/// Writes the operations in order and answers all of them.
pub(super) fn write(session: &mut Session, mut operations: Vec<Box<dyn Operation>>) {
    operations.retain(|operation| !operation.is_abandoned());
    if operations.is_empty() {
        return;
    }
    let mut failed = Vec::with_capacity(operations.len());
    let written = transact(session, &mut operations, &mut failed);
    if written.is_err() {
        session.undo();
    }
    failed.resize_with(operations.len(), || None);
    for (operation, failure) in operations.into_iter().zip(failed) {
        let outcome = match (failure, &written) {
            (Some(failure), _) => Err(failure),
            (None, Ok(())) => Ok(()),
            (None, Err(fault)) => Err(shared(fault, operation.doing())),
        };
        operation.answer(outcome);
    }
}

fn transact(
    session: &mut Session,
    operations: &mut [Box<dyn Operation>],
    failed: &mut Vec<Option<StoreError>>,
) -> Sql<()> {
    session.begin()?;
    if let Err(fault) = operations.iter_mut().try_for_each(|operation| operation.run(session)) {
        if spoils_group(&fault, &session.db) {
            return Err(fault);
        }
        session.undo();
        session.begin()?;
        for operation in operations {
            failed.push(attempt(session, operation.as_mut())?);
        }
    }
    session.commit()
}

/// The failure of this operation alone; an `Err` has spoiled the group.
fn attempt(session: &mut Session, operation: &mut dyn Operation) -> Sql<Option<StoreError>> {
    session.db.execute_batch("SAVEPOINT operation")?;
    let failure = match operation.run(session) {
        Ok(()) => None,
        Err(fault) if spoils_group(&fault, &session.db) => return Err(fault),
        Err(fault) => {
            session.db.execute_batch("ROLLBACK TO operation")?;
            session.forget();
            Some(fault.while_doing(operation.doing()))
        }
    };
    session.db.execute_batch("RELEASE operation")?;
    Ok(failure)
}

fn spoils_group(fault: &Fault, db: &Connection) -> bool {
    let own = matches!(fault.kind(), ErrorKind::Fenced | ErrorKind::Unaccounted | ErrorKind::Refused);
    // SQLite ends a transaction by itself when it cannot go on.
    !own || db.is_autocommit()
}

fn shared(fault: &Fault, doing: &str) -> StoreError {
    let cause = match fault {
        Fault::Sql(error) => error.to_string(),
        Fault::Decided(error) => error.to_string(),
    };
    StoreError::new(fault.kind(), doing).caused_by(cause)
}
