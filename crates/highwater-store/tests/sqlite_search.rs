//! The file of a search index: garbage, another version, somebody else's, and who may read it.

#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use highwater_store::{ErrorKind, Execution, OpenOptions, Opening, Result, SqliteIndex, SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;

struct Desk {
    _folder: TempDir,
    store: PathBuf,
    file: PathBuf,
}

impl Desk {
    fn new() -> Desk {
        let folder = TempDir::new().unwrap();
        let (store, file) = (folder.path().join("store.db"), folder.path().join("store-search.db"));
        drop(SqliteStore::open(OpenOptions::new(&store)).unwrap());
        Desk { _folder: folder, store, file }
    }

    fn open(&self, opening: Opening) -> Result<SqliteIndex> {
        SqliteIndex::open(&self.store, opening, Execution::Inline)
    }

    fn collections(&self) -> i64 {
        let count = "SELECT count(*) FROM search_collections";
        Connection::open(&self.file).unwrap().query_row(count, [], |row| row.get(0)).unwrap()
    }
}

#[test]
fn what_is_no_index_any_more_is_made_again() {
    let desk = Desk::new();
    drop(desk.open(Opening::Refresh).unwrap());
    for damage in ["PRAGMA user_version = 99", "DROP TABLE search_documents; PRAGMA user_version = 0"] {
        let enter = "INSERT INTO search_collections (name) VALUES ('old')";
        Connection::open(&desk.file).unwrap().execute_batch(&format!("{enter}; {damage}")).unwrap();
        assert_eq!(desk.open(Opening::AsIs).err().unwrap().kind, ErrorKind::CannotOpen);
        drop(desk.open(Opening::Refresh).unwrap());
        assert_eq!(desk.collections(), 0, "{damage}");
    }
    for garbage in ["", "this is no database at all, whatever it is called"] {
        fs::write(&desk.file, garbage).unwrap();
        drop(desk.open(Opening::Refresh).unwrap());
        assert_eq!(desk.collections(), 0);
    }
    let mut half = fs::read(&desk.file).unwrap();
    let middle = half.len() / 2;
    half[middle..].fill(0xff);
    half.truncate(middle + 100);
    fs::write(&desk.file, half).unwrap();
    desk.open(Opening::Refresh).unwrap();
}

#[test]
fn a_database_of_somebody_else_is_left_alone() {
    let desk = Desk::new();
    Connection::open(&desk.file)
        .unwrap()
        .execute_batch("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (7)")
        .unwrap();
    let refused = desk.open(Opening::Refresh).err().unwrap();
    assert_eq!((refused.kind, refused.doing.contains("move it away")), (ErrorKind::CannotOpen, true), "{refused}");
    let theirs: i64 =
        Connection::open(&desk.file).unwrap().query_row("SELECT a FROM theirs", [], |row| row.get(0)).unwrap();
    assert_eq!(theirs, 7);
}

#[test]
fn who_may_read_the_store_may_read_its_words_and_nobody_else() {
    for (store, index) in [(0o600, 0o600), (0o640, 0o640), (0o444, 0o644)] {
        let desk = Desk::new();
        fs::set_permissions(&desk.store, fs::Permissions::from_mode(store)).unwrap();
        drop(desk.open(Opening::Refresh).unwrap());
        assert_eq!(fs::metadata(&desk.file).unwrap().permissions().mode() & 0o777, index, "{store:o}");
    }
}

#[test]
fn an_index_can_be_read_where_nothing_can_be_written() {
    let desk = Desk::new();
    drop(desk.open(Opening::Refresh).unwrap());
    let journal = "PRAGMA journal_mode";
    let mode: String = Connection::open(&desk.file).unwrap().query_row(journal, [], |row| row.get(0)).unwrap();
    assert_ne!(mode, "wal", "a reader would have to make files beside it");
}
