//! A bounded number of connections, handed out one transaction at a time. Broken ones are thrown away, and the next
//! caller connects anew.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    address::Address,
    error::{Fault, Sql},
    link::{Db, Link},
};
use crate::{ErrorKind, Result, StoreError};

pub(super) struct Pool {
    address: Address,
    begin: Begin,
    /// Never held over an `.await`.
    idle: Mutex<Vec<Link>>,
    permits: Semaphore,
}

/// How transactions begin: one message, after which nothing of the session matters.
pub(super) struct Begin {
    pub(super) write: Arc<str>,
    pub(super) read: Arc<str>,
}

/// Nothing waits longer than this for an answer or a lock. A process that is stopped in the middle of a transaction
/// loses it before its leases expire, and others go on.
const LIMITS: &str = "SET LOCAL statement_timeout = '60s'; SET LOCAL lock_timeout = '20s'; \
     SET LOCAL idle_in_transaction_session_timeout = '10s'";

/// How the server compresses long values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packs {
    /// By LZ4, which takes it a fraction of the time. From PostgreSQL 14 on, if it was built so.
    Quickly,
    AsEver,
}

impl Begin {
    pub(super) fn new(schema: &str, packs: Packs) -> Begin {
        let set = format!("SET LOCAL search_path = {}; {LIMITS}", quoted(schema));
        let packing = match packs {
            Packs::Quickly => "; SET LOCAL default_toast_compression = 'lz4'",
            Packs::AsEver => "",
        };
        Begin {
            write: format!("BEGIN; {set}{packing}").into(),
            read: format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {set}").into(),
        }
    }
}

/// An identifier as it is.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Write,
    /// All queries see the same commit.
    Read,
}

impl Pool {
    pub(super) fn new(address: Address, begin: Begin, first: Link, connections: usize) -> Pool {
        Pool { address, begin, idle: Mutex::new(vec![first]), permits: Semaphore::new(connections.max(1)) }
    }

    /// A connection for one transaction, and the handle to speak through.
    pub(super) async fn seat(&self, access: Access) -> Sql<(Seat<'_>, Db)> {
        let permit = self.permits.acquire().await.expect("the semaphore is never closed");
        let link = match self.rested().await {
            Some(link) => link,
            None => Link::connect(&self.address).await?,
        };
        let begin = match access {
            Access::Write => &self.begin.write,
            Access::Read => &self.begin.read,
        };
        let db = Db { client: link.client(), begin: begin.clone() };
        Ok((Seat { pool: self, link, _permit: permit }, db))
    }

    /// A connection that is still good; the others are closed here.
    async fn rested(&self) -> Option<Link> {
        loop {
            let mut link = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            if link.is_alive().await {
                return Some(link);
            }
        }
    }
}

/// The right to use one connection. Dropped before its work has ended, it closes the connection.
pub(super) struct Seat<'p> {
    pool: &'p Pool,
    link: Link,
    _permit: SemaphorePermit<'p>,
}

impl Seat<'_> {
    /// Carries a whole transaction, from its beginning to its commit.
    pub(super) async fn carry<T>(mut self, work: impl Future<Output = Sql<T>>) -> Sql<T> {
        let outcome = self.link.drive(work).await;
        if outcome.is_ok() || self.link.undo().await {
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.link);
        }
        outcome
    }

    /// Carries a part of a transaction that goes on afterwards. Whoever leaves before its end closes the connection.
    pub(super) async fn carry_on<T>(&mut self, work: impl Future<Output = Sql<T>>) -> Sql<T> {
        self.link.drive(work).await
    }

    pub(super) async fn run<T>(self, doing: &str, work: impl Future<Output = Sql<T>>) -> Result<T> {
        self.carry(work).await.map_err(|fault| fault.while_doing(doing))
    }
}

/// A failure to get a connection in the middle of a run may heal, whatever the server says about it.
pub(super) fn unreachable(fault: Fault, doing: &str) -> StoreError {
    match fault.kind() {
        ErrorKind::Unauthorized => fault.while_doing(doing),
        _ => StoreError { kind: ErrorKind::Unavailable, ..fault.while_doing(doing) },
    }
}
