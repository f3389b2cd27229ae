//! Connections that only read. Each sees one consistent state, and none waits for the writer.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::{error::Sql, open, shards::Shards};
use crate::{Execution, Result};

/// Each has its own page cache.
const READERS_MAX: usize = 3;

pub(super) struct Readers {
    path: PathBuf,
    /// Shared with the threads that read: a connection comes back even if the one who asked has left.
    idle: Arc<Mutex<Vec<Reader>>>,
    permits: Arc<Semaphore>,
    execution: Execution,
}

struct Reader {
    db: Connection,
    shards: Shards,
}

impl Reader {
    fn open(path: &Path) -> Result<Reader> {
        Ok(Reader { db: open::reader(path)?, shards: Shards::to_read(path) })
    }

    /// The files are looked into after the store was: what lay in one may have been moved meanwhile.
    fn read<T>(&mut self, work: impl Fn(&Connection, &mut Shards) -> Sql<T>) -> Sql<T> {
        let mut found = snapshot(&self.db, |db| work(db, &mut self.shards));
        if self.shards.take_missing() {
            found = snapshot(&self.db, |db| work(db, &mut self.shards));
            self.shards.take_missing();
        }
        self.shards.rest();
        found
    }
}

impl Readers {
    pub(super) fn new(path: PathBuf, first: Option<Connection>, execution: Execution) -> Self {
        let first = first.map(|db| Reader { db, shards: Shards::to_read(&path) });
        let idle = Arc::new(Mutex::new(Vec::from_iter(first)));
        Readers { path, idle, permits: Arc::new(Semaphore::new(READERS_MAX)), execution }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Sql<T> + Send + 'static,
    ) -> Result<T> {
        self.with(doing, |reader| snapshot(&reader.db, work)).await
    }

    /// With what lies in shards.
    pub(super) async fn read_whole<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Fn(&Connection, &mut Shards) -> Sql<T> + Send + 'static,
    ) -> Result<T> {
        self.with(doing, |reader| reader.read(work)).await
    }

    async fn with<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Reader) -> Sql<T> + Send + 'static,
    ) -> Result<T> {
        let permit = self.permits.clone().acquire_owned().await.expect("the semaphore is never closed");
        let (idle, path) = (self.idle.clone(), self.path.clone());
        let read = move || {
            let _permit = permit;
            let rested = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut reader = rested.map_or_else(|| Reader::open(&path), Ok)?;
            let found = work(&mut reader).map_err(|fault| fault.while_doing(doing));
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            found
        };
        self.execution.run(read).await
    }
}

/// All queries of `work` see the same commit.
fn snapshot<T>(db: &Connection, work: impl FnOnce(&Connection) -> Sql<T>) -> Sql<T> {
    let transaction = db.unchecked_transaction()?;
    let found = work(&transaction)?;
    transaction.finish()?;
    Ok(found)
}
