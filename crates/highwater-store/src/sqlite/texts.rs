//! Texts of rows, wherever they lie, for an index of words.

use highwater_core::{Key, Value, schema::Table, search::Searchable};
use rusqlite::{Connection, params};

use super::{
    error::Sql,
    follow::{add_texts, bounds, within},
    shards::{Lying, Shards, TEXTS, is_mail},
    table::{KeyParam, value_of},
};
use crate::{
    Page, TextRow, Texts,
    rules::{key_column, key_of, kinds_of},
    search::{TEXTS_AT_ONCE, shortened},
};

pub(super) fn checks(db: &Connection, table: &'static Table, page: &Page<Key>) -> Sql<Vec<(Key, i64)>> {
    let key = key_column(table);
    let [first, beyond] = bounds(table);
    let mut select = db.prepare_cached(&format!(
        "SELECT \"{0}\", row_check FROM \"{1}\" WHERE {2} ORDER BY \"{0}\" LIMIT ?4",
        key.name,
        table.name,
        within(table, page.after.as_ref()),
    ))?;
    let after = page.after.as_ref().map(|key| table.row_key(key));
    let rows = select.query_map(params![after.as_ref().map(KeyParam), first, beyond, page.limit], |row| {
        Ok((table.key_of_row(&key_of(&value_of(key.kind, row.get_ref(0)?))), row.get(1)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn texts(
    db: &Connection,
    shards: &mut Shards,
    table: &'static Table,
    searchable: &'static Searchable,
    keys: &[Key],
) -> Sql<Texts> {
    let mut texts = Texts::default();
    let mut bytes = 0;
    for key in keys {
        let row = text_row(db, shards, table, searchable, key)?;
        bytes += row.as_ref().map_or(0, |row| row.values.iter().map(size).sum());
        texts.rows.extend(row);
        texts.looked_at += 1;
        if bytes >= TEXTS_AT_ONCE {
            break;
        }
    }
    Ok(texts)
}

fn text_row(
    db: &Connection,
    shards: &mut Shards,
    table: &'static Table,
    searchable: &Searchable,
    key: &Key,
) -> Sql<Option<TextRow>> {
    let kinds = kinds_of(table, searchable.columns)?;
    let named = searchable.columns.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let select = format!("SELECT {named} FROM \"{}\" WHERE \"{}\" = ?1", table.name, key_column(table).name);
    let row_key = table.row_key(key);
    let mut select = db.prepare_cached(&select)?;
    let mut rows = select.query([KeyParam(&row_key)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let values = kinds.iter().enumerate().map(|(place, kind)| Ok(value_of(*kind, row.get_ref(place)?)));
    let mut values = values.collect::<rusqlite::Result<Vec<_>>>()?;
    if is_mail(table) && searchable.columns.iter().any(|name| TEXTS.contains(name)) {
        match shards.find_texts(db, &row_key.to_string())? {
            Lying::InRow => {}
            Lying::InShard(texts) => add_texts(searchable.columns, &mut values, Some(texts)),
            // Indexed without its text, it would be taken for done when that is back.
            Lying::Lost => return Ok(None),
        }
    }
    let values = values.into_iter().map(shortened).collect();
    Ok(Some(TextRow { key: key.clone(), values, beside: beside(db, searchable, &row_key)? }))
}

fn beside(db: &Connection, searchable: &Searchable, owner: &Key) -> Sql<Vec<String>> {
    let Some(beside) = searchable.beside else { return Ok(Vec::new()) };
    let mut select = db.prepare_cached(&format!(
        "SELECT \"{0}\" FROM \"{1}\" WHERE \"{2}\" = ?1 AND \"{0}\" IS NOT NULL ORDER BY \"{3}\"",
        beside.text, beside.table, beside.owner, beside.key
    ))?;
    let texts = select.query_map([KeyParam(owner)], |row| row.get(0))?;
    Ok(texts.collect::<Result<_, _>>()?)
}

fn size(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Json(text) => text.len(),
        _ => 8,
    }
}
