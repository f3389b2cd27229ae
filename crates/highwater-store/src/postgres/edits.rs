//! Changing stored rows by what was told of them.

use std::collections::BTreeMap;

use highwater_core::{Edit, Key, Timestamp, schema::Table};
use tokio_postgres::types::Type;

use super::{
    cells::{Keys, Time},
    columns::{Column, columns_of},
    error::Sql,
    link::Db,
    rows::Rows,
    table::TableSql,
};
use crate::rules::{Grouped, Kept, grouped};

#[derive(Default)]
pub(super) struct Edited {
    pub(super) edited: u64,
    /// Whose derived rows are to be computed anew.
    pub(super) groups: Vec<Grouped>,
}

/// Rows are locked in the order of tables and keys, as everybody does.
pub(super) async fn edit(db: &Db, told: &[(Key, &'static Table, Vec<Edit>)], now: Timestamp) -> Sql<Edited> {
    let mut tables: BTreeMap<&str, (&'static Table, Told<'_>)> = BTreeMap::new();
    for (key, table, edits) in told {
        let (_, rows) = tables.entry(table.name).or_insert_with(|| (table, Told::new()));
        rows.entry(table.row_key(key)).or_default().extend(edits);
    }
    let mut edited = Edited::default();
    for (table, told) in tables.into_values() {
        edit_table(&Rows { db, table, sql: TableSql::of(table) }, told, now, &mut edited).await?;
    }
    Ok(edited)
}

/// By what the rows are called.
type Told<'a> = BTreeMap<Key, Vec<&'a Edit>>;

async fn edit_table(rows: &Rows<'_>, told: Told<'_>, now: Timestamp, edited: &mut Edited) -> Sql<()> {
    let keys = Keys::of(rows.sql.key.kind, told.keys());
    let mut kept = rows.read(&rows.sql.select_locked, &keys).await?;
    let mut met = Vec::with_capacity(kept.len());
    for (row, edits) in told {
        let Some(mut kept) = kept.remove(&row) else { continue };
        if kept.edit(rows.table, edits, now) {
            edited.edited += 1;
            edited.groups.extend(grouped(rows.table, &kept.body));
        }
        met.push(kept);
    }
    write(rows, &met).await
}

async fn write(rows: &Rows<'_>, met: &[Kept]) -> Sql<()> {
    if met.is_empty() {
        return Ok(());
    }
    let bodies: Vec<_> = met.iter().map(|kept| kept.body.values.as_slice()).collect();
    let columns = columns_of(rows.table.columns, &bodies)?;
    let fetched_at: Vec<_> = met.iter().map(|kept| Time(kept.last_fetched_at)).collect();
    let changed_at: Vec<_> = met.iter().map(|kept| Time(kept.last_changed_at)).collect();
    let checks: Vec<_> = met.iter().map(|kept| kept.row_check).collect();
    let marks = [
        (&fetched_at as _, Type::TIMESTAMPTZ_ARRAY),
        (&changed_at as _, Type::TIMESTAMPTZ_ARRAY),
        (&checks as _, Type::INT8_ARRAY),
    ];
    let params: Vec<_> = columns.iter().map(Column::param).chain(marks).collect();
    rows.db.execute(&rows.sql.edit, &params).await?;
    Ok(())
}
