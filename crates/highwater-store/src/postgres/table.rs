//! The SQL of a described table: statements that take a whole batch as arrays, one array a column.

use highwater_core::schema::{Column, ColumnType, Edges, Table};

use super::pool::quoted;
use crate::rules::key_column;

pub(super) struct TableSql {
    /// The columns in order, then `first_seen_at`, `last_fetched_at`, `last_changed_at`, `row_check`, `etag`.
    pub(super) copy: String,
    /// Those of the keys that have a row.
    pub(super) select_keys: String,
    /// The keys within runs, by first and last ones: a run of a thousand costs as much as two of its keys. `OFFSET 0` has
    /// each run looked up by the index, whatever the server thinks of their number.
    pub(super) select_runs: String,
    /// By keys: the columns in order, then `last_fetched_at`, `last_changed_at`, `row_check`, `etag`.
    pub(super) select: String,
    /// As `select`, and nobody else changes the rows until the end.
    pub(super) select_locked: String,
    /// As `select`, of all rows: a page adds its condition and order.
    pub(super) select_all: String,
    /// The columns, times, checks, tags.
    pub(super) update: String,
    /// The columns, times, times of change, checks.
    pub(super) edit: String,
    /// Keys, times, checks, tags, and the checks that were found: whose body has become another meanwhile is left alone.
    pub(super) touch: String,
    /// Keys, times.
    pub(super) confirm: String,
    /// By keys.
    pub(super) changed_at: String,
    /// Keys, times, bodies.
    pub(super) keep_versions: Option<String>,
    pub(super) edges: Option<EdgeSql>,
    pub(super) key: &'static Column,
}

pub(super) struct EdgeSql {
    /// Parents, members, places; knows no conflicts.
    pub(super) copy: String,
    /// Parents, members, places.
    pub(super) insert: String,
    /// Of these parents.
    pub(super) delete: String,
    pub(super) select: String,
}

impl TableSql {
    pub(super) fn of(table: &'static Table) -> Self {
        let name = quoted(table.name);
        let key = key_column(table);
        let key_name = quoted(key.name);
        let columns = joined(table, |column| quoted(column.name));
        let shown = joined(table, |column| match column.kind {
            ColumnType::Json => format!("{}::text", quoted(column.name)),
            _ => quoted(column.name),
        });
        let width = table.columns.len();
        let given = format!("{} AS n ({columns}, at, row_check, etag)", arrays(1, width + 3));
        let told = format!("{} AS n ({columns}, at, changed_at, row_check)", arrays(1, width + 3));
        let assigned = joined(table, |column| format!("{} = {}", quoted(column.name), given_value(column)));
        let select_all = format!("SELECT {shown}, last_fetched_at, last_changed_at, row_check, etag FROM {name}");
        let select = format!("{select_all} WHERE {key_name} = ANY($1) ORDER BY {key_name}");
        TableSql {
            copy: format!(
                "COPY {name} ({columns}, first_seen_at, last_fetched_at, last_changed_at, row_check, etag)
                 FROM STDIN BINARY"
            ),
            select_keys: format!("SELECT {key_name} FROM {name} WHERE {key_name} = ANY($1)"),
            select_runs: format!(
                "SELECT t.key FROM UNNEST($1, $2) AS run (first, last), LATERAL (
                    SELECT {key_name} AS key FROM {name} WHERE {key_name} BETWEEN run.first AND run.last OFFSET 0
                 ) AS t"
            ),
            select_locked: format!("{select} FOR NO KEY UPDATE"),
            select,
            select_all,
            update: format!(
                "UPDATE {name} AS t SET {assigned}, last_fetched_at = n.at, last_changed_at = n.at,
                    row_check = n.row_check, etag = n.etag
                 FROM {given} WHERE t.{key_name} = n.{key_name}"
            ),
            edit: format!(
                "UPDATE {name} AS t SET {assigned}, last_fetched_at = n.at, last_changed_at = n.changed_at,
                    row_check = n.row_check
                 FROM {told} WHERE t.{key_name} = n.{key_name}"
            ),
            touch: format!(
                "UPDATE {name} AS t SET last_fetched_at = GREATEST(t.last_fetched_at, n.at), row_check = n.row_check,
                    etag = COALESCE(n.etag, t.etag)
                 FROM UNNEST($1, $2, $3, $4, $5) AS n (key, at, row_check, etag, found)
                 WHERE t.{key_name} = n.key AND t.row_check = n.found"
            ),
            changed_at: format!("SELECT {key_name}, last_changed_at FROM {name} WHERE {key_name} = ANY($1)"),
            confirm: format!(
                "UPDATE {name} AS t SET last_fetched_at = n.at FROM UNNEST($1, $2) AS n (key, at)
                 WHERE t.{key_name} = n.key AND t.last_fetched_at < n.at"
            ),
            keep_versions: table.versions.map(|versions| {
                format!(
                    "INSERT INTO {} ({key_name}, seen_at, body)
                     SELECT n.key, n.at, n.body::jsonb FROM UNNEST($1, $2, $3) AS n (key, at, body)",
                    quoted(versions)
                )
            }),
            edges: table.edges.as_ref().map(EdgeSql::of),
            key,
        }
    }
}

impl EdgeSql {
    fn of(edges: &Edges) -> Self {
        let (table, parent, member, order) =
            (quoted(edges.table), quoted(edges.parent), quoted(edges.member), quoted(edges.order));
        EdgeSql {
            copy: format!("COPY {table} ({parent}, {member}, {order}) FROM STDIN BINARY"),
            insert: format!(
                "INSERT INTO {table} ({parent}, {member}, {order}) SELECT * FROM UNNEST($1, $2, $3)
                 ON CONFLICT DO NOTHING"
            ),
            delete: format!("DELETE FROM {table} WHERE {parent} = ANY($1)"),
            select: format!(
                "SELECT {parent}, {member} FROM {table} WHERE {parent} = ANY($1) ORDER BY {parent}, {order}"
            ),
        }
    }
}

fn arrays(first: usize, count: usize) -> String {
    let places: Vec<_> = (first..first + count).map(|place| format!("${place}")).collect();
    format!("UNNEST({})", places.join(", "))
}

/// Lists of lists would be taken apart, and JSON is checked by the server: both travel as text.
pub(super) fn given_value(column: &Column) -> String {
    let name = quoted(column.name);
    match column.kind {
        ColumnType::Json => format!("n.{name}::jsonb"),
        ColumnType::Ints => format!("n.{name}::bigint[]"),
        ColumnType::Int | ColumnType::Text | ColumnType::Bool | ColumnType::Bytes | ColumnType::Time => {
            format!("n.{name}")
        }
    }
}

fn joined(table: &Table, spell: impl Fn(&Column) -> String) -> String {
    table.columns.iter().map(spell).collect::<Vec<_>>().join(", ")
}
