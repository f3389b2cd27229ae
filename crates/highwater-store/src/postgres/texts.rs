//! Texts of rows for an index of words. What is large is measured before it is read.

use std::collections::HashMap;

use futures_util::future::try_join;
use highwater_core::{
    Key,
    schema::{ColumnType, Table},
    search::{Searchable, TEXT_MAX},
};
use tokio_postgres::Row;

use super::{
    cells::Keys,
    columns::value_of,
    error::Sql,
    follow::page_of,
    link::{Db, Param},
    pool::quoted,
};
use crate::{
    Page, TextRow, Texts,
    rules::{key_column, key_of, kinds_of},
    search::{TEXTS_AT_ONCE, shortened},
};

pub(super) async fn checks(db: &Db, table: &'static Table, page: &Page<Key>) -> Sql<Vec<(Key, i64)>> {
    let key = key_column(table);
    let rows = page_of(db, table, "row_check", page).await?;
    let found = |row: &Row| -> Sql<(Key, i64)> {
        Ok((table.key_of_row(&key_of(&value_of(key.kind, row, 1)?)), row.try_get(0)?))
    };
    rows.iter().map(found).collect()
}

pub(super) async fn texts(db: &Db, table: &'static Table, searchable: &'static Searchable, keys: &[Key]) -> Sql<Texts> {
    let kinds = kinds_of(table, searchable.columns)?;
    let mut rows_asked: Vec<_> = keys.iter().map(|key| table.row_key(key)).collect();
    let ((), looked_at) = try_join(db.begin(), fitting(db, table, searchable, &kinds, &rows_asked)).await?;
    rows_asked.truncate(looked_at);
    let (rows, mut beside) =
        try_join(read(db, table, searchable, &kinds, &rows_asked), beside(db, searchable, &rows_asked)).await?;
    db.commit().await?;
    let key = key_column(table);
    let row = |row: &Row| -> Sql<TextRow> {
        let values = kinds.iter().enumerate().map(|(at, kind)| Ok(shortened(value_of(*kind, row, at)?)));
        let values = values.collect::<Sql<_>>()?;
        let name = key_of(&value_of(key.kind, row, kinds.len())?);
        let beside = beside.remove(&name.to_string()).unwrap_or_default();
        Ok(TextRow { key: table.key_of_row(&name), values, beside })
    };
    Ok(Texts { rows: rows.iter().map(row).collect::<Sql<_>>()?, looked_at })
}

/// How many of the rows, from the first on, are read at once.
async fn fitting(
    db: &Db,
    table: &'static Table,
    searchable: &Searchable,
    kinds: &[ColumnType],
    rows: &[Key],
) -> Sql<usize> {
    let key = key_column(table);
    // Neither unpacks what it measures.
    let size = |(name, kind): (&&str, &ColumnType)| match kind {
        ColumnType::Text => format!("COALESCE(octet_length({}), 0)", quoted(name)),
        _ => format!("COALESCE(pg_column_size({}), 0)", quoted(name)),
    };
    let sizes = searchable.columns.iter().zip(kinds).map(size).collect::<Vec<_>>().join(" + ");
    let select = format!(
        "SELECT {key}::text, ({sizes})::int8 FROM {} WHERE {key} = ANY($1)",
        quoted(table.name),
        key = quoted(key.name),
    );
    let asked = Keys::of(key.kind, rows.iter());
    let found = db.query(&select, &[asked.param()]).await?;
    let sizes = found.iter().map(|row| Ok((row.try_get::<_, String>(0)?, row.try_get::<_, i64>(1)?)));
    let sizes: HashMap<String, i64> = sizes.collect::<Sql<_>>()?;
    let mut sum = 0;
    let is_enough = |row: &Key| {
        sum += sizes.get(&row.to_string()).copied().unwrap_or(0);
        sum >= TEXTS_AT_ONCE as i64
    };
    Ok(rows.iter().position(is_enough).map_or(rows.len(), |last| last + 1))
}

async fn read(
    db: &Db,
    table: &'static Table,
    searchable: &Searchable,
    kinds: &[ColumnType],
    rows: &[Key],
) -> Sql<Vec<Row>> {
    let key = key_column(table);
    let shown = |(name, kind): (&&str, &ColumnType)| match kind {
        ColumnType::Json => format!("{}::text", quoted(name)),
        ColumnType::Text => format!("left({}, {TEXT_MAX})", quoted(name)),
        _ => quoted(name),
    };
    let named = searchable.columns.iter().zip(kinds).map(shown).collect::<Vec<_>>().join(", ");
    let select =
        format!("SELECT {named}, {key} FROM {} WHERE {key} = ANY($1)", quoted(table.name), key = quoted(key.name));
    let asked = Keys::of(key.kind, rows.iter());
    db.query(&select, &[asked.param()]).await
}

/// By what the row is called that they belong to.
async fn beside(db: &Db, searchable: &Searchable, rows: &[Key]) -> Sql<HashMap<String, Vec<String>>> {
    let Some(beside) = searchable.beside else { return Ok(HashMap::new()) };
    let [text, table, owner, key] = [beside.text, beside.table, beside.owner, beside.key].map(quoted);
    let select =
        format!("SELECT {owner}, {text} FROM {table} WHERE {owner} = ANY($1) AND {text} IS NOT NULL ORDER BY {key}");
    let asked = Keys::of(ColumnType::Text, rows.iter());
    let params: [Param<'_>; 1] = [asked.param()];
    let mut texts: HashMap<String, Vec<String>> = HashMap::new();
    for row in db.query(&select, &params).await? {
        texts.entry(row.try_get(0)?).or_default().push(row.try_get(1)?);
    }
    Ok(texts)
}
