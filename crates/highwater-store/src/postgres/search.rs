//! The index of words in tables of its own in the mirror's schema, made when somebody searches, and made again when they
//! are of another version. Only a search knows of them.

mod amend;
mod find;
mod tables;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use highwater_core::{
    Key,
    schema::Table,
    search::{Query, Searchable},
};

use super::{
    PostgresStore,
    error::Fault,
    link::Db,
    open,
    pool::{Access, Pool, Seat, unreachable},
    texts,
};
use crate::{Collection, Found, Indexing, Mode, Opening, Page, PostgresOptions, Result, SearchIndex, TextStore, Texts};

/// One is asked at a time.
const CONNECTIONS: usize = 2;

/// A word that is everywhere takes long to rank, a thousand long texts take long to enter, and others may be at it.
const UNHURRIED: &str = "SET LOCAL statement_timeout = '10min'; SET LOCAL lock_timeout = '10min'";

pub struct PostgresIndex {
    pool: Pool,
}

impl PostgresIndex {
    pub async fn open(url: &str, opening: Opening) -> Result<PostgresIndex> {
        let options = PostgresOptions { mode: Mode::ReadOnly, connections: CONNECTIONS, ..PostgresOptions::new(url) };
        let (pool, _) = open::open(&options).await?;
        let index = PostgresIndex { pool };
        let doing = "opening the search index";
        let is_ready = {
            let (seat, db) = index.to_read(doing).await?;
            seat.run(doing, tables::are_ready(&db)).await?
        };
        match opening {
            _ if is_ready => Ok(index),
            Opening::AsIs => Err(Fault::from(tables::absent()).while_doing(doing)),
            Opening::Refresh => {
                let (seat, db) = index.to_write(doing).await?;
                seat.run(doing, tables::make(&db)).await?;
                Ok(index)
            }
        }
    }

    async fn to_read(&self, doing: &str) -> Result<(Seat<'_>, Db)> {
        self.pool.seat(Access::Read).await.map_err(|fault| unreachable(fault, doing))
    }

    async fn to_write(&self, doing: &str) -> Result<(Seat<'_>, Db)> {
        self.pool.seat(Access::Write).await.map_err(|fault| unreachable(fault, doing))
    }
}

impl SearchIndex for PostgresIndex {
    fn known<'a>(&'a self, of: &'a Collection, page: Page<Key>) -> BoxFuture<'a, Result<Vec<(Key, i64)>>> {
        transact!(self, to_read, "reading the search index", |db| amend::known(db, of, &page))
    }

    fn amend<'a>(&'a self, of: &'a Collection, amendment: Arc<Indexing>) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "writing the search index", |db| amend::amend(db, of, &amendment))
    }

    fn find<'a>(&'a self, query: &'a Query, among: &'a [Collection], limit: u32) -> BoxFuture<'a, Result<Found>> {
        transact!(self, to_read, "searching", |db| find::find(db, query, among, limit))
    }

    fn count<'a>(&'a self, among: &'a [Collection]) -> BoxFuture<'a, Result<u64>> {
        transact!(self, to_read, "counting what is indexed", |db| find::count(db, among))
    }

    fn clear(&self) -> BoxFuture<'_, Result<()>> {
        transact!(self, to_write, "making the search index again", |db| tables::make_anew(db))
    }
}

impl TextStore for PostgresStore {
    fn checks<'a>(&'a self, table: &'static Table, page: Page<Key>) -> BoxFuture<'a, Result<Vec<(Key, i64)>>> {
        transact!(self, to_read, "reading checks of rows", |db| texts::checks(db, table, &page))
    }

    fn texts<'a>(
        &'a self,
        table: &'static Table,
        searchable: &'static Searchable,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Texts>> {
        transact!(self, to_read, "reading texts", |db| texts::texts(db, table, searchable, keys))
    }
}
