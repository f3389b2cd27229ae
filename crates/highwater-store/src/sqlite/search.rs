//! The index of words in a file of its own beside the store: it needs no lock of the store's, may be deleted at any time,
//! and is made again when it is damaged.

mod amend;
mod file;
mod find;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::future::BoxFuture;
use highwater_core::{Key, search::Query};
use rusqlite::{Connection, OptionalExtension};

use super::{SqliteStore, error::Sql, open, texts};
use crate::{Collection, Execution, Found, Indexing, Opening, Page, Result, SearchIndex, TextStore, Texts};

pub struct SqliteIndex {
    path: PathBuf,
    opening: Opening,
    execution: Execution,
    /// Shared with the threads for blocking work, one of which uses it at a time.
    db: Arc<Mutex<Connection>>,
}

impl SqliteIndex {
    /// Of the store in this file: `highwater-search.db` beside `highwater.db`.
    pub fn open(store: &Path, opening: Opening, execution: Execution) -> Result<SqliteIndex> {
        let store = open::resolve(store)?;
        let path = file::beside(&store);
        let db = file::open(&path, &store, opening)?;
        Ok(SqliteIndex { path, opening, execution, db: Arc::new(Mutex::new(db)) })
    }

    async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Connection) -> Sql<T> + Send + 'static,
    ) -> Result<T> {
        let db = self.db.clone();
        let work = move || work(&mut db.lock().unwrap_or_else(PoisonError::into_inner));
        self.execution.run(work).await.map_err(|fault| fault.while_doing(doing))
    }
}

impl SearchIndex for SqliteIndex {
    fn known<'a>(&'a self, of: &'a Collection, page: Page<Key>) -> BoxFuture<'a, Result<Vec<(Key, i64)>>> {
        let of = of.clone();
        Box::pin(self.run("reading the search index", move |db| amend::known(db, &of, &page)))
    }

    fn amend<'a>(&'a self, of: &'a Collection, amendment: Arc<Indexing>) -> BoxFuture<'a, Result<()>> {
        let of = of.clone();
        Box::pin(self.run("writing the search index", move |db| amend::amend(db, &of, &amendment)))
    }

    fn find<'a>(&'a self, query: &'a Query, among: &'a [Collection], limit: u32) -> BoxFuture<'a, Result<Found>> {
        let (query, among) = (query.clone(), among.to_vec());
        Box::pin(self.run("searching", move |db| find::find(db, &query, &among, limit)))
    }

    fn count<'a>(&'a self, among: &'a [Collection]) -> BoxFuture<'a, Result<u64>> {
        let among = among.to_vec();
        Box::pin(self.run("counting what is indexed", move |db| find::count(db, &among)))
    }

    fn clear(&self) -> BoxFuture<'_, Result<()>> {
        let (path, opening) = (self.path.clone(), self.opening);
        Box::pin(self.run("making the search index again", move |db| {
            // Closed before the file is emptied: who closes last writes what is left in the log.
            *db = Connection::open_in_memory()?;
            *db = file::open_anew(&path, opening)?;
            Ok(())
        }))
    }
}

/// What the index calls a collection; none if it has nothing of it.
fn number_of(db: &Connection, of: &Collection) -> Sql<Option<i64>> {
    let mut select = db.prepare_cached("SELECT id FROM search_collections WHERE name = ?1")?;
    Ok(select.query_row([&of.name], |row| row.get(0)).optional()?)
}

impl TextStore for SqliteStore {
    fn checks<'a>(
        &'a self,
        table: &'static highwater_core::schema::Table,
        page: Page<Key>,
    ) -> BoxFuture<'a, Result<Vec<(Key, i64)>>> {
        Box::pin(self.read("reading checks of rows", move |db| texts::checks(db, table, &page)))
    }

    fn texts<'a>(
        &'a self,
        table: &'static highwater_core::schema::Table,
        searchable: &'static highwater_core::search::Searchable,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Texts>> {
        let keys = keys.to_vec();
        Box::pin(self.read_whole("reading texts", move |db, shards| texts::texts(db, shards, table, searchable, &keys)))
    }
}
