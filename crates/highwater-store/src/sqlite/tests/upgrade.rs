//! A file made by any of the earlier steps of the schema, opened by what we are now.

use futures_util::future::BoxFuture;
use rusqlite::Connection;
use tempfile::TempDir;

use super::script::options;
use crate::{
    SqliteStore,
    migrations::{MIGRATIONS, Migration, SQLITE},
    suite::{Lab, Scene, upgraded},
};

#[tokio::test(start_paused = true)]
async fn a_file_of_any_earlier_step_is_brought_up_to_date() {
    for steps in (1..MIGRATIONS.len()).map(|count| &MIGRATIONS[..count]) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store.db");
        make(&Connection::open(&path).unwrap(), steps);
        let older = SqliteStore::open(crate::OpenOptions::read_only(&path)).err().unwrap();
        let told = format!("it has schema version {}, not yet {}", steps.len(), MIGRATIONS.len());
        assert!(older.doing.contains(&told), "{older}");
        let store = std::sync::Arc::new(SqliteStore::open(options(&path)).unwrap());
        let query = |_: &str| -> BoxFuture<'static, Vec<String>> { Box::pin(async { Vec::new() }) };
        upgraded::goes_on(Scene::new(Lab { store, query: Box::new(query) }).await).await;
    }
}

fn make(db: &Connection, steps: &[Migration]) {
    db.execute_batch(
        "CREATE TABLE highwater_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)",
    )
    .unwrap();
    for step in steps {
        db.execute_batch(&step.sql_in(SQLITE)).unwrap();
        let note = "INSERT INTO highwater_schema VALUES (?1, ?2, ?3)";
        db.execute(note, (step.version, step.name, step.checksum())).unwrap();
    }
    db.execute_batch(&upgraded::first_rows("1700000000000")).unwrap();
}
