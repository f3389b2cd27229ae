//! What is computed from rows: one row for each group of them, anew whenever one of the group changes.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join;
use highwater_core::{
    Note, StreamId, Timestamp, Value,
    schema::{Column as Described, ColumnType, Derived, Table},
};
use tokio_postgres::{Row, types::Type};

use super::{
    cells::Keys,
    columns::{Column, columns_of, value_of},
    error::{Fault, Sql},
    follow::Within,
    ledger,
    link::Db,
    pool::quoted,
    table::given_value,
};
use crate::{
    Misderived, Page,
    rules::{Grouped, REPAIR, key_column, note_entry},
};

/// What the ledger says of rows that are new, by the table of the group and its name.
pub(super) async fn refresh(db: &Db, groups: &[&Grouped]) -> Sql<News> {
    let mut tables: BTreeMap<&str, (&'static Table, BTreeSet<&str>)> = BTreeMap::new();
    for (table, group) in groups {
        tables.entry(table.name).or_insert_with(|| (table, BTreeSet::new())).1.insert(group);
    }
    let mut news = News::new();
    for (table, groups) in tables.into_values() {
        let groups: Vec<_> = groups.into_iter().collect();
        if let Some(derived) = table.derived {
            let notes = derive(db, table, derived, &groups).await?;
            news.extend(notes.into_iter().map(|(group, note)| ((table.name, group), note)));
        }
    }
    Ok(news)
}

pub(super) type News = BTreeMap<(&'static str, String), Note>;

async fn derive(
    db: &Db,
    table: &'static Table,
    derived: &'static Derived,
    groups: &[&str],
) -> Sql<Vec<(String, Note)>> {
    let fresh = take(db, derived, groups).await?;
    let members = members(db, table, derived, groups).await?;
    let rows: BTreeMap<_, _> = members.into_iter().map(|(group, rows)| (group, (derived.fold)(&rows))).collect();
    let values: Vec<_> = rows.values().map(Vec::as_slice).collect();
    update(db, derived, &values).await?;
    let news = rows.into_iter().filter(|(group, _)| fresh.contains(group));
    Ok(news.map(|(group, row)| (group, (derived.note)(&row))).collect())
}

/// Makes the rows that are not there yet, and holds all of them until the end: who adds to a group meanwhile waits, and
/// then sees what we have added. The new ones.
async fn take(db: &Db, derived: &Derived, groups: &[&str]) -> Sql<BTreeSet<String>> {
    let (name, key) = (quoted(derived.name), quoted(derived.columns[0].name));
    let make = format!(
        "INSERT INTO {name} ({key}) SELECT * FROM UNNEST($1) AS n (key) ORDER BY n.key
         ON CONFLICT ({key}) DO NOTHING RETURNING {key}"
    );
    let lock = format!("SELECT 1 FROM {name} WHERE {key} = ANY($1) ORDER BY {key} FOR NO KEY UPDATE");
    let params = [(&groups as _, Type::TEXT_ARRAY)];
    let (made, _) = try_join(db.query(&make, &params), db.query(&lock, &params)).await?;
    Ok(made.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

fn shown(column: &Described) -> String {
    match column.kind {
        ColumnType::Json => format!("{}::text", quoted(column.name)),
        _ => quoted(column.name),
    }
}

async fn members(
    db: &Db,
    table: &'static Table,
    derived: &Derived,
    groups: &[&str],
) -> Sql<BTreeMap<String, Vec<Vec<Value>>>> {
    let kinds: Vec<_> = derived.reads.iter().filter_map(|name| table.position(name)).collect();
    let (group, key) = (quoted(derived.group), quoted(key_column(table).name));
    let select = format!(
        "SELECT {}, {group} FROM {} WHERE {group} = ANY($1) ORDER BY {group}, {key}",
        kinds.iter().map(|place| shown(&table.columns[*place])).collect::<Vec<_>>().join(", "),
        quoted(table.name)
    );
    let mut members: BTreeMap<String, Vec<Vec<Value>>> = BTreeMap::new();
    for row in db.query(&select, &[(&groups as _, Type::TEXT_ARRAY)]).await? {
        let values = kinds.iter().enumerate().map(|(at, place)| value_of(table.columns[*place].kind, &row, at));
        let values = values.collect::<Sql<Vec<_>>>()?;
        members.entry(row.try_get(kinds.len())?).or_default().push(values);
    }
    Ok(members)
}

pub(super) async fn misderived(db: &Db, table: &'static Table, page: &Page<String>) -> Sql<Misderived> {
    db.begin().await?;
    let Some(derived) = table.derived else { return Ok(Misderived::default()) };
    let groups = groups(db, table, derived, page).await?;
    let names: Vec<_> = groups.iter().map(String::as_str).collect();
    let (mut members, mut there) = try_join(members(db, table, derived, &names), stored(db, derived, &names)).await?;
    db.commit().await?;
    let made = |group: &String| members.remove(group).map(|rows| (derived.fold)(&rows));
    let made: Vec<_> = groups.iter().map(made).collect();
    let wrong = groups.iter().zip(made).filter(|(group, made)| *made != there.remove(*group));
    let wrong = wrong.map(|(group, _)| group.clone()).collect();
    Ok(Misderived { last: groups.into_iter().last(), wrong })
}

/// Groups that rows name, or that have a row: each of both from an index, no further than the page.
async fn groups(db: &Db, table: &'static Table, derived: &Derived, page: &Page<String>) -> Sql<Vec<String>> {
    let within = Within::after(table, page.after.as_deref());
    let some = |table: &str, column: &str| {
        let (table, column) = (quoted(table), quoted(column));
        let condition = within.condition(&column);
        format!(
            "(SELECT DISTINCT {column} AS name FROM {table} WHERE {condition} ORDER BY {column} LIMIT {})",
            page.limit
        )
    };
    let select = format!(
        "SELECT name FROM ({} UNION {}) AS both_of_them WHERE name IS NOT NULL ORDER BY name LIMIT {}",
        some(table.name, derived.group),
        some(derived.name, derived.columns[0].name),
        page.limit
    );
    let params = within.params(ColumnType::Text);
    let params: Vec<_> = params.iter().map(Keys::param).collect();
    let rows = db.query(&select, &params).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

async fn stored(db: &Db, derived: &Derived, groups: &[&str]) -> Sql<BTreeMap<String, Vec<Value>>> {
    let columns = derived.columns.iter().map(shown).collect::<Vec<_>>().join(", ");
    let (name, key) = (quoted(derived.name), quoted(derived.columns[0].name));
    let select = format!("SELECT {columns} FROM {name} WHERE {key} = ANY($1)");
    let rows = db.query(&select, &[(&groups as _, Type::TEXT_ARRAY)]).await?;
    let values = |row: &Row| -> Sql<(String, Vec<Value>)> {
        let values = derived.columns.iter().enumerate().map(|(place, column)| value_of(column.kind, row, place));
        Ok((row.try_get(0)?, values.collect::<Sql<_>>()?))
    };
    rows.iter().map(values).collect()
}

pub(super) async fn rederive(
    db: &Db,
    stream: &StreamId,
    table: &'static Table,
    groups: &[String],
    now: Timestamp,
) -> Sql<()> {
    let groups: Vec<Grouped> = groups.iter().map(|group| (table, group.clone())).collect();
    db.begin().await?;
    let news = refresh(db, &groups.iter().collect::<Vec<_>>()).await?;
    let entries: Vec<_> = news.into_values().map(|note| note_entry(stream, note, now, REPAIR)).collect();
    ledger::append(db, &entries).await?;
    db.commit().await
}

async fn update(db: &Db, derived: &Derived, rows: &[&[Value]]) -> Sql<()> {
    if rows.iter().any(|row| row.len() != derived.columns.len()) {
        return Err(Fault::refused(format!("a row of {} lacks a column", derived.name)));
    }
    let columns = columns_of(derived.columns, rows)?;
    let names: Vec<_> = derived.columns.iter().map(|column| quoted(column.name)).collect();
    let places: Vec<_> = (1..=names.len()).map(|place| format!("${place}")).collect();
    let assigned: Vec<_> = derived.columns[1..]
        .iter()
        .map(|column| format!("{} = {}", quoted(column.name), given_value(column)))
        .collect();
    let update = format!(
        "UPDATE {} AS t SET {} FROM UNNEST({}) AS n ({}) WHERE t.{key} = n.{key}",
        quoted(derived.name),
        assigned.join(", "),
        places.join(", "),
        names.join(", "),
        key = names[0],
    );
    db.execute(&update, &columns.iter().map(Column::param).collect::<Vec<_>>()).await?;
    Ok(())
}
