//! The SQL of a described table, and how its values lie in columns.

use highwater_core::{
    Key, Timestamp, Value,
    schema::{Column, ColumnType, Edges, Table},
};
use rusqlite::{
    Row, ToSql,
    types::{ToSqlOutput, ValueRef},
};

use super::inserts::EDGES_AT_ONCE;
use crate::rules::key_column;

pub(super) struct TableSql {
    /// The columns in order, then `first_seen_at`, `last_fetched_at`, `last_changed_at`, `row_check`, `etag`.
    pub(super) insert: String,
    /// The columns in order, then `last_fetched_at`, `last_changed_at`, `row_check`, `etag`; by key.
    pub(super) select: String,
    /// As `select`, of all rows: a page adds its condition and order.
    pub(super) select_all: String,
    /// The columns in order, then `last_fetched_at`, `last_changed_at`, `row_check`, `etag`, key.
    pub(super) update: String,
    /// `last_fetched_at`, `row_check`, `etag` if there is a new one, key.
    pub(super) touch: String,
    /// `last_fetched_at`, key, and since when the body must not have changed.
    pub(super) confirm: String,
    /// Key.
    pub(super) has: String,
    /// Key, `seen_at`, body.
    pub(super) keep_version: Option<String>,
    pub(super) edges: Option<EdgeSql>,
    pub(super) key: &'static str,
}

pub(super) struct EdgeSql {
    /// Of so many as [`EDGES_AT_ONCE`] says.
    pub(super) inserts: [String; EDGES_AT_ONCE.len()],
    pub(super) delete: String,
    pub(super) select: String,
    /// Parent and member of all parents in a closed range.
    pub(super) select_range: String,
}

impl TableSql {
    pub(super) fn of(table: &'static Table) -> Self {
        let name = table.name;
        let key = key_column(table).name;
        let columns = joined(table, |column| format!("\"{}\"", column.name));
        let places = (1..=table.columns.len() + 5).map(|n| format!("?{n}")).collect::<Vec<_>>().join(", ");
        let assigned = joined(table, |column| format!("\"{0}\" = ?{1}", column.name, place(table, column)));
        let width = table.columns.len();
        let select_all = format!("SELECT {columns}, last_fetched_at, last_changed_at, row_check, etag FROM \"{name}\"");
        TableSql {
            insert: format!(
                "INSERT INTO \"{name}\" ({columns}, first_seen_at, last_fetched_at, last_changed_at, row_check, etag)
                 VALUES ({places}) ON CONFLICT (\"{key}\") DO NOTHING"
            ),
            select: format!("{select_all} WHERE \"{key}\" = ?1"),
            select_all,
            update: format!(
                "UPDATE \"{name}\" SET {assigned}, last_fetched_at = ?{}, last_changed_at = ?{}, row_check = ?{},
                    etag = ?{} WHERE \"{key}\" = ?{}",
                width + 1,
                width + 2,
                width + 3,
                width + 4,
                width + 5
            ),
            touch: format!(
                "UPDATE \"{name}\" SET last_fetched_at = max(last_fetched_at, ?1), row_check = ?2, etag = COALESCE(?3, etag)
                 WHERE \"{key}\" = ?4"
            ),
            confirm: format!(
                "UPDATE \"{name}\" SET last_fetched_at = max(last_fetched_at, ?1)
                 WHERE \"{key}\" = ?2 AND last_changed_at <= ?3"
            ),
            has: format!("SELECT 1 FROM \"{name}\" WHERE \"{key}\" = ?1"),
            keep_version: table
                .versions
                .map(|versions| format!("INSERT INTO \"{versions}\" (\"{key}\", seen_at, body) VALUES (?1, ?2, ?3)")),
            edges: table.edges.as_ref().map(EdgeSql::of),
            key,
        }
    }
}

impl EdgeSql {
    fn of(edges: &Edges) -> Self {
        let Edges { table, parent, member, order, .. } = edges;
        // Not `ON CONFLICT DO NOTHING`: a statement of many rows that may fail keeps a copy of every page it changes.
        // `OR IGNORE` would pass over what is NULL as well; it is given integers only, and the table has no other check.
        let insert = |rows: usize| {
            let rows = vec!["(?, ?, ?)"; rows].join(", ");
            format!("INSERT OR IGNORE INTO \"{table}\" (\"{parent}\", \"{member}\", \"{order}\") VALUES {rows}")
        };
        EdgeSql {
            inserts: EDGES_AT_ONCE.map(insert),
            delete: format!("DELETE FROM \"{table}\" WHERE \"{parent}\" = ?1"),
            select: format!("SELECT \"{member}\" FROM \"{table}\" WHERE \"{parent}\" = ?1 ORDER BY \"{order}\""),
            select_range: format!(
                "SELECT \"{parent}\", \"{member}\" FROM \"{table}\" WHERE \"{parent}\" BETWEEN ?1 AND ?2
                 ORDER BY \"{parent}\", \"{order}\""
            ),
        }
    }
}

fn joined(table: &Table, spell: impl Fn(&Column) -> String) -> String {
    table.columns.iter().map(spell).collect::<Vec<_>>().join(", ")
}

fn place(table: &Table, column: &Column) -> usize {
    table.position(column.name).expect("a column of this table") + 1
}

/// A key as the column of its table holds it.
pub(super) struct KeyParam<'a>(pub(super) &'a Key);

impl ToSql for KeyParam<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Key::Number(number) => ToSqlOutput::from(*number),
            Key::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

/// A value as its column holds it.
pub(super) struct ValueParam<'a>(pub(super) &'a Value);

impl ToSql for ValueParam<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Value::Bool(flag) => ToSqlOutput::from(*flag),
            Value::Int(number) => ToSqlOutput::from(*number),
            Value::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Value::Json(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Value::Ints(numbers) => ToSqlOutput::from(spelled(numbers)),
            Value::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Value::Time(at) => ToSqlOutput::from(at.as_millis()),
        })
    }
}

pub(super) fn spelled(numbers: &[i64]) -> String {
    serde_json::Value::from(numbers.to_vec()).to_string()
}

/// Reads what lies in the columns. What its column should not hold comes back as what it is, so that it differs from
/// anything a source says, instead of stopping those who would repair it.
pub(super) fn values_of(table: &Table, row: &Row<'_>) -> rusqlite::Result<Vec<Value>> {
    table.columns.iter().enumerate().map(|(index, column)| Ok(value_of(column.kind, row.get_ref(index)?))).collect()
}

pub(super) fn value_of(kind: ColumnType, cell: ValueRef<'_>) -> Value {
    match (kind, cell) {
        (_, ValueRef::Null) => Value::Null,
        (ColumnType::Bool, ValueRef::Integer(flag @ 0..=1)) => Value::Bool(flag == 1),
        (ColumnType::Time, ValueRef::Integer(millis)) => Value::Time(Timestamp::from_millis(millis)),
        (_, ValueRef::Integer(number)) => Value::Int(number),
        (ColumnType::Bytes, ValueRef::Blob(bytes)) => Value::Bytes(bytes.to_vec()),
        (_, ValueRef::Real(number)) => Value::text(number.to_string()),
        (kind, ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => {
            let text = String::from_utf8_lossy(bytes);
            match kind {
                ColumnType::Json => Value::Json(text.into_owned()),
                ColumnType::Ints => serde_json::from_str(&text).map_or_else(|_| Value::text(&*text), Value::Ints),
                ColumnType::Int | ColumnType::Text | ColumnType::Bool | ColumnType::Bytes | ColumnType::Time => {
                    Value::text(&*text)
                }
            }
        }
    }
}
