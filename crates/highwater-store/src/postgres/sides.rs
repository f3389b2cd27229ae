//! Rows that belong to objects and are stored together with them, a table at a time.

use std::collections::BTreeMap;

use highwater_core::{SideRow, Value, schema::SideTable};

use super::{
    columns::{Column, columns_of},
    error::Sql,
    link::Db,
    pool::quoted,
    rows::Item,
    table::given_value,
};

/// A row that is there as it is stays untouched.
pub(super) async fn store<'a>(db: &Db, items: impl Iterator<Item = &'a Item<'a>>) -> Sql<()> {
    let mut tables: BTreeMap<&str, Vec<&SideRow>> = BTreeMap::new();
    for side in items.flat_map(|item| &item.record.sides) {
        tables.entry(side.table.name).or_default().push(side);
    }
    for rows in tables.into_values() {
        put(db, rows[0].table, &one_of_each(rows)).await?;
    }
    Ok(())
}

/// A statement may touch a row once; the same object may come twice in a group.
fn one_of_each(mut rows: Vec<&SideRow>) -> Vec<&[Value]> {
    let key = |row: &SideRow| -> Vec<String> {
        let keys = row.table.columns.iter().zip(&row.values);
        keys.filter(|(column, _)| column.role == highwater_core::schema::Role::Key)
            .map(|(_, value)| format!("{value:?}"))
            .collect()
    };
    rows.sort_by_cached_key(|row| key(row));
    rows.dedup_by_key(|row| key(row));
    rows.into_iter().map(|row| row.values.as_slice()).collect()
}

async fn put(db: &Db, table: &'static SideTable, rows: &[&[Value]]) -> Sql<()> {
    let columns = columns_of(table.columns, rows)?;
    let names: Vec<_> = table.columns.iter().map(|column| quoted(column.name)).collect();
    let keys: Vec<_> = table.key_columns().map(|column| quoted(column.name)).collect();
    let places: Vec<_> = (1..=names.len()).map(|place| format!("${place}")).collect();
    let given: Vec<_> = table.columns.iter().map(given_value).collect();
    let assigned: Vec<_> = names.iter().map(|name| format!("{name} = excluded.{name}")).collect();
    let (old, new) = (each(&names, "t."), each(&names, "excluded."));
    let insert = format!(
        "INSERT INTO {table} AS t ({names}) SELECT {given} FROM UNNEST({places}) AS n ({names})
         ON CONFLICT ({keys}) DO UPDATE SET {assigned} WHERE ({old}) IS DISTINCT FROM ({new})",
        table = quoted(table.name),
        names = names.join(", "),
        given = given.join(", "),
        places = places.join(", "),
        keys = keys.join(", "),
        assigned = assigned.join(", "),
    );
    db.execute(&insert, &columns.iter().map(Column::param).collect::<Vec<_>>()).await?;
    Ok(())
}

fn each(names: &[String], prefix: &str) -> String {
    names.iter().map(|name| format!("{prefix}{name}")).collect::<Vec<_>>().join(", ")
}
