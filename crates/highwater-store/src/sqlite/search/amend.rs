//! What an index has, and how it changes.

use highwater_core::{Key, search::Field};
use rusqlite::{
    Connection, OptionalExtension, ToSql, TransactionBehavior, params,
    types::{ToSqlOutput, Value, ValueRef},
};

use super::number_of;
use crate::{Collection, Document, Indexing, Page, sqlite::error::Sql};

/// A key as its collection orders it.
pub(super) struct DocumentKey<'a>(pub(super) &'a Collection, pub(super) &'a Key);

impl ToSql for DocumentKey<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match (self.1, self.0.is_numbered) {
            (Key::Number(number), true) => ToSqlOutput::from(*number),
            (Key::Text(text), _) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            (Key::Number(number), false) => ToSqlOutput::Owned(Value::Text(number.to_string())),
        })
    }
}

pub(super) fn key_of(cell: ValueRef<'_>) -> Key {
    match cell {
        ValueRef::Integer(number) => Key::Number(number),
        ValueRef::Text(text) | ValueRef::Blob(text) => Key::from(String::from_utf8_lossy(text).as_ref()),
        ValueRef::Null | ValueRef::Real(_) => Key::from(""),
    }
}

pub(super) fn known(db: &Connection, of: &Collection, page: &Page<Key>) -> Sql<Vec<(Key, i64)>> {
    let Some(collection) = number_of(db, of)? else { return Ok(Vec::new()) };
    let after = if page.after.is_some() { "key > ?2" } else { "?2 IS NULL" };
    let mut select = db.prepare_cached(&format!(
        "SELECT key, row_check FROM search_documents WHERE collection = ?1 AND {after} ORDER BY key LIMIT ?3"
    ))?;
    let after = page.after.as_ref().map(|key| DocumentKey(of, key));
    let rows =
        select.query_map(params![collection, after, page.limit], |row| Ok((key_of(row.get_ref(0)?), row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn amend(db: &mut Connection, of: &Collection, amendment: &Indexing) -> Sql<()> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let collection = match number_of(&transaction, of)? {
        Some(collection) => collection,
        None => {
            transaction.execute("INSERT INTO search_collections (name) VALUES (?1)", [&of.name])?;
            transaction.last_insert_rowid()
        }
    };
    for key in &amendment.gone {
        remove(&transaction, collection, &DocumentKey(of, key))?;
    }
    for document in &amendment.put {
        put(&transaction, collection, &DocumentKey(of, &document.key), document)?;
    }
    Ok(transaction.commit()?)
}

fn remove(db: &Connection, collection: i64, key: &DocumentKey<'_>) -> Sql<()> {
    let mut delete =
        db.prepare_cached("DELETE FROM search_documents WHERE collection = ?1 AND key = ?2 RETURNING id")?;
    if let Some(id) = delete.query_row(params![collection, key], |row| row.get::<_, i64>(0)).optional()? {
        db.prepare_cached("DELETE FROM search_words WHERE rowid = ?1")?.execute([id])?;
    }
    Ok(())
}

/// Another search may have been quicker.
fn put(db: &Connection, collection: i64, key: &DocumentKey<'_>, document: &Document) -> Sql<()> {
    let mut same =
        db.prepare_cached("SELECT 1 FROM search_documents WHERE collection = ?1 AND key = ?2 AND row_check = ?3")?;
    if same.exists(params![collection, key, document.row_check])? {
        return Ok(());
    }
    remove(db, collection, key)?;
    let at = document.at.map(|at| at.as_millis());
    let mut insert = db.prepare_cached(
        "INSERT INTO search_documents (collection, key, row_check, at) VALUES (?1, ?2, ?3, ?4) RETURNING id",
    )?;
    let id: i64 = insert.query_row(params![collection, key, document.row_check, at], |row| row.get(0))?;
    let [title, author, addressee, text] =
        [Field::Title, Field::Author, Field::Addressee, Field::Text].map(|field| document.words.field(field));
    db.prepare_cached("INSERT INTO search_words (rowid, title, author, addressee, text) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![id, title, author, addressee, text])?;
    Ok(())
}
