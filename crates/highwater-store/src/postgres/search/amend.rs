//! What an index has, and how it changes.

use std::fmt::Write;

use futures_util::future::{try_join, try_join3};
use highwater_core::{
    Key,
    search::{Field, Words},
};
use tokio_postgres::{Row, types::Type};

use super::tables::lock;
use crate::{
    Collection, Indexing, Page,
    postgres::{
        error::Sql,
        link::{Db, Param},
    },
};

/// A key as its collection orders it: by number, or by name.
fn place(of: &Collection, key: &Key) -> (i64, String) {
    match key.number() {
        Some(number) if of.is_numbered => (number, String::new()),
        _ => (0, key.to_string()),
    }
}

pub(super) fn key_at(of: &Collection, row: &Row, index: usize) -> Sql<Key> {
    Ok(if of.is_numbered { Key::Number(row.try_get(index)?) } else { Key::from(row.try_get::<_, &str>(index + 1)?) })
}

pub(super) async fn known(db: &Db, of: &Collection, page: &Page<Key>) -> Sql<Vec<(Key, i64)>> {
    let after = if page.after.is_some() { "AND (number, name) > ($2, $3)" } else { "AND $2 = 0 AND $3 = ''" };
    let select = format!(
        "SELECT number, name, row_check FROM search_documents
         WHERE collection = (SELECT id FROM search_collections WHERE name = $1) {after}
         ORDER BY number, name LIMIT $4"
    );
    let (number, name) = page.after.as_ref().map_or((0, String::new()), |key| place(of, key));
    let limit = i64::from(page.limit);
    let params: [Param<'_>; 4] =
        [(&of.name, Type::TEXT), (&number, Type::INT8), (&name, Type::TEXT), (&limit, Type::INT8)];
    let ((), rows, ()) = try_join3(db.begin(), db.query(&select, &params), db.commit()).await?;
    rows.iter().map(|row| Ok((key_at(of, row, 0)?, row.try_get(2)?))).collect()
}

pub(super) async fn amend(db: &Db, of: &Collection, amendment: &Indexing) -> Sql<()> {
    try_join(db.begin(), lock(db)).await?;
    let enter =
        "INSERT INTO search_collections (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = excluded.name
         RETURNING id";
    let collection: i64 = db.query(enter, &[(&of.name, Type::TEXT)]).await?[0].try_get(0)?;
    remove(db, of, collection, &amendment.gone).await?;
    put(db, of, collection, amendment).await?;
    db.commit().await
}

async fn remove(db: &Db, of: &Collection, collection: i64, gone: &[Key]) -> Sql<()> {
    let (numbers, names): (Vec<_>, Vec<_>) = gone.iter().map(|key| place(of, key)).unzip();
    let delete = "DELETE FROM search_documents AS d USING unnest($2::int8[], $3::text[]) AS gone (number, name)
         WHERE d.collection = $1 AND d.number = gone.number AND d.name = gone.name";
    let params: [Param<'_>; 3] = [(&collection, Type::INT8), (&numbers, Type::INT8_ARRAY), (&names, Type::TEXT_ARRAY)];
    db.execute(delete, &params).await?;
    Ok(())
}

/// Another search may have been quicker.
async fn put(db: &Db, of: &Collection, collection: i64, amendment: &Indexing) -> Sql<()> {
    let (numbers, names): (Vec<_>, Vec<_>) = amendment.put.iter().map(|document| place(of, &document.key)).unzip();
    let checks: Vec<_> = amendment.put.iter().map(|document| document.row_check).collect();
    let times: Vec<_> = amendment.put.iter().map(|document| document.at.map(|at| at.as_millis())).collect();
    let words: Vec<_> = amendment.put.iter().map(|document| spelled(&document.words)).collect();
    let insert = "INSERT INTO search_documents AS d (collection, number, name, row_check, at, words)
         SELECT $1, number, name, row_check, at, words::tsvector
         FROM unnest($2::int8[], $3::text[], $4::int8[], $5::int8[], $6::text[])
             AS new (number, name, row_check, at, words)
         ON CONFLICT (collection, number, name) DO UPDATE
         SET row_check = excluded.row_check, at = excluded.at, words = excluded.words
         WHERE d.row_check <> excluded.row_check";
    let params: [Param<'_>; 6] = [
        (&collection, Type::INT8),
        (&numbers, Type::INT8_ARRAY),
        (&names, Type::TEXT_ARRAY),
        (&checks, Type::INT8_ARRAY),
        (&times, Type::INT8_ARRAY),
        (&words, Type::TEXT_ARRAY),
    ];
    db.execute(insert, &params).await?;
    Ok(())
}

/// As the server reads a vector of words: `'word':1A,7D`. Words are letters and digits, and need no escape.
fn spelled(words: &Words) -> String {
    let mut text = String::new();
    for (word, places) in words.places() {
        write!(text, "'{word}':").expect("a text takes everything");
        for (index, (place, field)) in places.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(text, "{comma}{place}{}", weight(*field)).expect("a text takes everything");
        }
        text.push(' ');
    }
    text
}

/// A class of words, which the server weighs 1.0, 0.4, 0.2 and 0.1.
pub(super) fn weight(field: Field) -> char {
    match field {
        Field::Title => 'A',
        Field::Author => 'B',
        Field::Addressee => 'C',
        Field::Text => 'D',
    }
}
