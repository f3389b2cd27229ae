//! Whether what is computed from rows is still what they make.

use highwater_core::{Value, schema::Table};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    edits,
    error::Sql,
    follow::{bounds, condition},
    table::value_of,
};
use crate::{Misderived, Page};

pub(super) fn misderived(db: &Connection, table: &'static Table, page: &Page<String>) -> Sql<Misderived> {
    let Some(derived) = table.derived else { return Ok(Misderived::default()) };
    let mut wrong = Vec::new();
    let mut last = None;
    for group in groups(db, table, page)? {
        let members = edits::members(db, table, derived, &group)?;
        let made = (!members.is_empty()).then(|| (derived.fold)(&members));
        if made != stored(db, table, &group)? {
            wrong.push(group.clone());
        }
        last = Some(group);
    }
    Ok(Misderived { last, wrong })
}

/// Groups that rows name, or that have a row: each of both from an index, no further than the page.
fn groups(db: &Connection, table: &'static Table, page: &Page<String>) -> Sql<Vec<String>> {
    let Some(derived) = table.derived else { return Ok(Vec::new()) };
    let some = |table_name: &str, column: &str, is_scoped: bool| {
        format!(
            "SELECT DISTINCT \"{column}\" AS name FROM \"{table_name}\" WHERE {} ORDER BY \"{column}\" LIMIT ?4",
            condition(column, page.after.is_some(), is_scoped)
        )
    };
    let is_scoped = table.scope.is_some();
    let [named, there] =
        [some(table.name, derived.group, is_scoped), some(derived.name, derived.columns[0].name, is_scoped)];
    let [first, beyond] = bounds(table);
    let mut select = db.prepare_cached(&format!(
        "SELECT name FROM (SELECT name FROM ({named}) UNION SELECT name FROM ({there}))
         WHERE name IS NOT NULL ORDER BY name LIMIT ?4"
    ))?;
    let rows = select.query_map(params![page.after, first, beyond, page.limit], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn stored(db: &Connection, table: &'static Table, group: &str) -> Sql<Option<Vec<Value>>> {
    let Some(derived) = table.derived else { return Ok(None) };
    let names = derived.columns.iter().map(|column| format!("\"{}\"", column.name)).collect::<Vec<_>>().join(", ");
    let mut select = db.prepare_cached(&format!(
        "SELECT {names} FROM \"{}\" WHERE \"{}\" = ?1",
        derived.name, derived.columns[0].name
    ))?;
    let row = select.query_row([group], |row| {
        let values = derived.columns.iter().enumerate();
        values.map(|(place, column)| Ok(value_of(column.kind, row.get_ref(place)?))).collect()
    });
    Ok(row.optional()?)
}
