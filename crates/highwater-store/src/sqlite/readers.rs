//! Connections that only read. Each sees one consistent state, and none waits for the writer.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::{
    error::Sql,
    open::{self, Execution},
};
use crate::Result;

/// Each has its own page cache.
const READERS_MAX: usize = 3;

pub(super) struct Readers {
    path: PathBuf,
    /// Shared with the threads that read: a connection comes back even if the one who asked has left.
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
    execution: Execution,
}

impl Readers {
    pub(super) fn new(path: PathBuf, first: Option<Connection>, execution: Execution) -> Self {
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
        let permit = self.permits.clone().acquire_owned().await.expect("the semaphore is never closed");
        let (idle, path) = (self.idle.clone(), self.path.clone());
        let read = move || {
            let _permit = permit;
            let rested = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let db = rested.map_or_else(|| open::reader(&path), Ok)?;
            let found = snapshot(&db, work).map_err(|fault| fault.while_doing(doing));
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(db);
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
