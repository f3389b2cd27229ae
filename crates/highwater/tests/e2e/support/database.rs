//! The SQLite file through SQLite alone, as any other program would see it.

use std::{path::Path, time::Duration};

use rusqlite::{
    Connection, OpenFlags, Row,
    types::{FromSql, Value},
};
use serde_json::Value as Json;

use super::truth::{self, Tables};

pub(crate) struct Database(Connection);

impl Database {
    /// Read-only: a writer would fold the log into the file when it leaves, and recovery is what is under test.
    pub(crate) fn open(path: &Path) -> Database {
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

    /// A database of another program.
    pub(crate) fn make(path: &Path, sql: &str) {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Database::connect(path, flags).0.execute_batch(sql).unwrap();
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
        truth::checked_frontier(self)
    }
}

impl Tables for Database {
    fn cells(&self, sql: &str) -> Vec<Vec<Json>> {
        let mut statement = self.0.prepare(sql).unwrap();
        let columns = statement.column_count();
        let cells = |row: &Row<'_>| (0..columns).map(|place| row.get(place).map(json_of)).collect();
        statement.query_map([], cells).unwrap().collect::<Result<_, _>>().unwrap()
    }
}

fn json_of(value: Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Integer(number) => number.into(),
        Value::Real(number) => number.into(),
        Value::Text(text) => text.into(),
        Value::Blob(bytes) => panic!("a column holds {bytes:?}"),
    }
}
