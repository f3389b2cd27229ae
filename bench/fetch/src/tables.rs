//! Rows and bytes of the tables of a SQLite store, indexes included.

use std::{collections::BTreeMap, path::Path};

use rusqlite::{Connection, OpenFlags};
use serde::Serialize;

#[derive(Debug, Default, Serialize)]
pub(crate) struct Table {
    rows: i64,
    bytes: i64,
}

/// Every page belongs to a b-tree, and every b-tree to a table.
const BYTES: &str = "SELECT s.tbl_name, sum(d.pgsize) FROM dbstat AS d JOIN sqlite_schema AS s ON s.name = d.name
    WHERE d.aggregate = TRUE GROUP BY s.tbl_name";

pub(crate) fn read(path: &Path) -> anyhow::Result<BTreeMap<String, Table>> {
    let store = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut tables = BTreeMap::new();
    for (name, bytes) in bytes(&store)? {
        let rows = store.query_row(&format!("SELECT count(*) FROM \"{name}\""), [], |row| row.get(0))?;
        tables.insert(name, Table { rows, bytes });
    }
    Ok(tables)
}

fn bytes(store: &Connection) -> anyhow::Result<Vec<(String, i64)>> {
    let mut statement = store.prepare(BYTES)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_counts_for_its_table() {
        let store = Connection::open_in_memory().unwrap();
        store.execute_batch("CREATE TABLE a (x PRIMARY KEY); CREATE INDEX b ON a (x); CREATE TABLE c (x);").unwrap();
        let bytes: Vec<_> = bytes(&store).unwrap();
        let page = bytes[1].1;
        assert_eq!(bytes, [("a".into(), 3 * page), ("c".into(), page)]);
    }
}
