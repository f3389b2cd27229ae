//! A file made by the first step of the schema, opened by what we are now.

use rusqlite::Connection;
use tempfile::TempDir;

use super::script::options;
use crate::{
    SqliteStore,
    migrations::{MIGRATIONS, SQLITE},
    suite::{Lab, Scene, upgraded},
};

#[tokio::test(start_paused = true)]
async fn a_file_of_the_first_step_is_brought_up_to_date() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&MIGRATIONS[0].sql_in(SQLITE)).unwrap();
    db.execute_batch(
        "CREATE TABLE highwater_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)",
    )
    .unwrap();
    db.execute("INSERT INTO highwater_schema VALUES (1, 'first', ?1)", [MIGRATIONS[0].checksum()]).unwrap();
    db.execute_batch(&upgraded::first_rows("1700000000000")).unwrap();
    let older = SqliteStore::open(crate::OpenOptions::read_only(&path)).err().unwrap();
    assert!(older.doing.contains("it has schema version 1, not yet 3"), "{older}");
    let store = std::sync::Arc::new(SqliteStore::open(options(&path)).unwrap());
    let query = |_: &str| -> futures_util::future::BoxFuture<'static, Vec<String>> { Box::pin(async { Vec::new() }) };
    upgraded::goes_on(Scene::new(Lab { store, query: Box::new(query) }).await).await;
}
