//! The tables of an index: made by the first who searches.

use futures_util::future::try_join;

use super::UNHURRIED;
use crate::{
    ErrorKind, StoreError,
    postgres::{error::Sql, link::Db},
    search::{INDEX_VERSION, NO_INDEX},
};

const SCHEMA: &str = "
    CREATE TABLE search_state (version BIGINT NOT NULL);
    CREATE TABLE search_collections (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT COLLATE \"C\" NOT NULL UNIQUE);
    CREATE TABLE search_documents (
        collection BIGINT NOT NULL,
        number BIGINT NOT NULL,
        name TEXT COLLATE \"C\" NOT NULL,
        row_check BIGINT NOT NULL,
        at BIGINT,
        words TSVECTOR NOT NULL,
        PRIMARY KEY (collection, number, name)
    );
    CREATE INDEX search_documents_by_word ON search_documents USING gin (words);";
const DROP: &str = "DROP TABLE IF EXISTS search_state, search_collections, search_documents";

pub(super) fn absent() -> StoreError {
    StoreError::new(ErrorKind::CannotOpen, NO_INDEX)
}

/// Whether they are there, and as this program knows them.
pub(super) async fn are_ready(db: &Db) -> Sql<bool> {
    db.begin().await?;
    let is_ready = is_current(db).await?;
    db.commit().await?;
    Ok(is_ready)
}

async fn is_current(db: &Db) -> Sql<bool> {
    let there = "SELECT to_regclass(quote_ident(current_schema()) || '.search_state') IS NOT NULL
        AND to_regclass(quote_ident(current_schema()) || '.search_documents') IS NOT NULL";
    if !db.query(there, &[]).await?[0].try_get::<_, bool>(0)? {
        return Ok(false);
    }
    let versions = db.query("SELECT version FROM search_state", &[]).await?;
    let versions = versions.iter().map(|row| Ok(row.try_get(0)?)).collect::<Sql<Vec<i64>>>()?;
    Ok(versions == [INDEX_VERSION])
}

pub(super) async fn make(db: &Db) -> Sql<()> {
    try_join(db.begin(), lock(db)).await?;
    if !is_current(db).await? {
        build(db).await?;
    }
    db.commit().await
}

pub(super) async fn make_anew(db: &Db) -> Sql<()> {
    try_join(db.begin(), lock(db)).await?;
    build(db).await?;
    db.commit().await
}

async fn build(db: &Db) -> Sql<()> {
    db.run(&format!("{DROP}; {SCHEMA}; INSERT INTO search_state (version) VALUES ({INDEX_VERSION})")).await
}

/// One changes the index at a time, so that two who find the same words missing do not wait for each other in a circle.
pub(super) async fn lock(db: &Db) -> Sql<()> {
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('highwater search ' || current_schema(), 0))";
    db.run(&format!("{UNHURRIED}; {lock}")).await
}
