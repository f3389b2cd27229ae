//! Changing a stored row by what was told of it, and what is computed from rows.

use std::collections::BTreeSet;

use highwater_core::{
    Edit, Key, Note, StreamId, Timestamp, Value,
    schema::{Derived, SideTable, Table},
};
use rusqlite::{Connection, params_from_iter};

use super::{
    error::Sql,
    places, rows,
    session::Session,
    shards::texts_of,
    table::{KeyParam, TableSql, ValueParam, value_of},
};
use crate::rules::{Grouped, Kept, grouped, key_column, note_entry};

/// What became of rows that were told to be others.
#[derive(Default)]
pub(super) struct Edited {
    pub(super) edited: u64,
    /// Whose derived rows are to be computed anew.
    pub(super) groups: Vec<Grouped>,
}

pub(super) fn edit(
    session: &mut Session,
    table: &'static Table,
    key: &Key,
    edits: &[Edit],
    now: Timestamp,
    edited: &mut Edited,
) -> Sql<()> {
    let Session { db, shards, .. } = session;
    let sql = TableSql::of(table);
    let row_key = table.row_key(key);
    let Some(mut kept) = rows::read(db, shards, table, &sql, &row_key)? else { return Ok(()) };
    if kept.edit(table, edits, now) {
        edited.edited += 1;
        edited.groups.extend(grouped(table, &kept.body));
    }
    if places::of_row(db, table, &row_key)?.is_some() {
        texts_of(table).into_iter().flatten().for_each(|place| kept.body.values[place] = Value::Null);
    }
    write(db, &sql, &row_key, &kept)
}

fn write(db: &Connection, sql: &TableSql, row_key: &Key, kept: &Kept) -> Sql<()> {
    let mut update = db.prepare_cached(&sql.update)?;
    let width = kept.body.values.len();
    for (index, value) in kept.body.values.iter().enumerate() {
        update.raw_bind_parameter(index + 1, ValueParam(value))?;
    }
    update.raw_bind_parameter(width + 1, kept.last_fetched_at.as_millis())?;
    update.raw_bind_parameter(width + 2, kept.last_changed_at.as_millis())?;
    update.raw_bind_parameter(width + 3, kept.row_check)?;
    update.raw_bind_parameter(width + 4, kept.etag.as_deref())?;
    update.raw_bind_parameter(width + 5, KeyParam(row_key))?;
    update.raw_execute()?;
    Ok(())
}

/// Computes anew what is derived from rows that changed, and notes what is new.
pub(super) fn refresh(
    session: &mut Session,
    stream: &StreamId,
    groups: Vec<Grouped>,
    now: Timestamp,
    actor: &str,
) -> Sql<()> {
    let groups: BTreeSet<_> = groups.into_iter().map(|(table, group)| (table.name, group, ByName(table))).collect();
    for (_, group, ByName(table)) in groups {
        if let Some(derived) = table.derived
            && let Some(note) = derive(&session.db, table, derived, &group)?
        {
            session.append(&note_entry(stream, note, now, actor))?;
        }
    }
    Ok(())
}

/// A table in a set, told apart by its name.
struct ByName(&'static Table);

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ByName {}

impl PartialOrd for ByName {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByName {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.name.cmp(other.0.name)
    }
}

/// What the ledger says if the row is new.
fn derive(db: &Connection, table: &'static Table, derived: &'static Derived, group: &str) -> Sql<Option<Note>> {
    let members = members(db, table, derived, group)?;
    if members.is_empty() {
        return Ok(None);
    }
    let values = (derived.fold)(&members);
    let key = derived.columns[0].name;
    let names = derived.columns.iter().map(|column| format!("\"{}\"", column.name)).collect::<Vec<_>>().join(", ");
    let places = (1..=derived.columns.len()).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ");
    let assigned: Vec<_> =
        derived.columns[1..].iter().map(|column| format!("\"{0}\" = excluded.\"{0}\"", column.name)).collect();
    let mut there = db.prepare_cached(&format!("SELECT 1 FROM \"{}\" WHERE \"{key}\" = ?1", derived.name))?;
    let is_new = !there.exists([ValueParam(&values[0])])?;
    let mut put = db.prepare_cached(&format!(
        "INSERT INTO \"{}\" ({names}) VALUES ({places}) ON CONFLICT (\"{key}\") DO UPDATE SET {}",
        derived.name,
        assigned.join(", ")
    ))?;
    put.execute(params_from_iter(values.iter().map(ValueParam)))?;
    Ok(is_new.then(|| (derived.note)(&values)))
}

pub(super) fn members(db: &Connection, table: &'static Table, derived: &Derived, group: &str) -> Sql<Vec<Vec<Value>>> {
    let names = derived.reads.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let mut select = db.prepare_cached(&format!(
        "SELECT {names} FROM \"{}\" WHERE \"{}\" = ?1 ORDER BY \"{}\"",
        table.name,
        derived.group,
        key_column(table).name
    ))?;
    let kinds: Vec<_> = derived.reads.iter().filter_map(|name| table.position(name)).collect();
    let rows = select.query_map([group], |row| {
        kinds.iter().enumerate().map(|(at, place)| Ok(value_of(table.columns[*place].kind, row.get_ref(at)?))).collect()
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Stores a row beside an object's own, if it is not there as it is.
pub(super) fn put_side(db: &Connection, table: &'static SideTable, values: &[Value]) -> Sql<()> {
    let name = table.name;
    let columns = table.columns.iter().map(|column| format!("\"{}\"", column.name)).collect::<Vec<_>>();
    let keys = table.key_columns().map(|column| format!("\"{}\"", column.name)).collect::<Vec<_>>().join(", ");
    let places = (1..=columns.len()).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ");
    let assigned: Vec<_> = columns.iter().map(|column| format!("{column} = excluded.{column}")).collect();
    let differs: Vec<_> =
        columns.iter().map(|column| format!("\"{name}\".{column} IS NOT excluded.{column}")).collect();
    let mut put = db.prepare_cached(&format!(
        "INSERT INTO \"{name}\" ({}) VALUES ({places}) ON CONFLICT ({keys}) DO UPDATE SET {} WHERE {}",
        columns.join(", "),
        assigned.join(", "),
        differs.join(" OR ")
    ))?;
    put.execute(params_from_iter(values.iter().map(ValueParam)))?;
    Ok(())
}
