//! The SQLite file through SQLite alone, as any other program would see it.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, types::FromSql};

pub(crate) struct Database(pub(super) Connection);

impl Database {
    /// Read-only: a writer would fold the log into the file when it leaves, and recovery is what is under test.
    pub(super) fn open(path: &Path) -> Database {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Database::connect(path, flags)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Database {
        let connection = Connection::open_with_flags(path, flags).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        Database(connection)
    }

    /// Changes the store behind the product's back.
    pub(crate) fn meddle(path: &Path, sql: &str) -> usize {
        let database = Database::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
        let changed = database.0.execute(sql, []).unwrap();
        assert!(changed > 0, "{sql} changed nothing");
        changed
    }

    pub(crate) fn one<T: FromSql>(&self, sql: &str) -> T {
        self.0.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    pub(crate) fn all<T: FromSql>(&self, sql: &str) -> Vec<T> {
        let mut statement = self.0.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    /// The frontier, after a check that every id before it is accounted for.
    pub(crate) fn checked_frontier(&self) -> i64 {
        let frontier: i64 = self.one("SELECT coalesce(max(frontier), 0) FROM ingest_streams");
        let origin: i64 = self.one("SELECT coalesce(max(origin), 0) FROM ingest_streams");
        let accounted: i64 = self.one(
            "SELECT count(*) FROM (
                SELECT id FROM hn_items, ingest_streams WHERE id >= origin AND id < frontier
                UNION
                SELECT item_number FROM ingest_exceptions, ingest_streams
                WHERE state IN ('missing', 'excluded') AND item_number >= origin AND item_number < frontier)",
        );
        assert_eq!(accounted, frontier - origin, "the frontier stands at {frontier} and ids before it are missing");
        frontier
    }
}
