//! Lists of names: the axis of a stream whose keys are named by the rows of another. Whoever enters names holds the row
//! of the list's stream.

use futures_util::future::{try_join, try_join3};
use highwater_core::{Key, Position, Span, StreamId};
use tokio_postgres::types::Type;

use super::{
    error::Sql,
    link::{Db, Param},
    pool::quoted,
    streams,
};
use crate::{CollectNames, Collected, NamesIn, rules::key_column};

/// Rows gone through in a transaction.
const ROWS_AT_ONCE: u64 = 10_000;

pub(super) async fn names_in(db: &Db, names: &NamesIn) -> Sql<Vec<String>> {
    let order = format!("ORDER BY {} COLLATE \"C\"", quoted(names.column));
    let ((), found) = try_join(db.begin(), distinct(db, names, &order)).await?;
    db.commit().await?;
    Ok(found)
}

/// Each name once; rows without one have none to tell.
async fn distinct(db: &Db, names: &NamesIn, order: &str) -> Sql<Vec<String>> {
    let (table, column) = (quoted(names.table.name), quoted(names.column));
    let key = quoted(key_column(names.table).name);
    let select = format!(
        "SELECT {column} FROM {table} WHERE {key} >= $1 AND {key} < $2 AND {column} <> '' GROUP BY {column} {order}"
    );
    let (start, end) = (names.span.start().0, names.span.end().0);
    let rows = db.query(&select, &[(&start, Type::INT8), (&end, Type::INT8)]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

pub(super) async fn collect(db: &Db, collect: &CollectNames) -> Sql<Option<Collected>> {
    let ((), _, cursor) =
        try_join3(db.begin(), streams::lock(db, &collect.stream), streams::live_cursor(db, &collect.stream)).await?;
    let cursor = match cursor {
        Some(cursor) => Position(cursor),
        None => streams::read(db, &collect.from, "").await?.span.start(),
    };
    if cursor >= collect.until {
        db.commit().await?;
        return Ok(None);
    }
    let upto = cursor.plus(ROWS_AT_ONCE).min(collect.until);
    let found = NamesIn { table: collect.table, column: collect.column, span: Span::new(cursor, upto) };
    let order = format!("ORDER BY min({})", quoted(key_column(collect.table).name));
    let found = distinct(db, &found, &order).await?;
    let new_names = enter(db, &collect.stream, &found).await?;
    try_join(streams::set_live_cursor(db, &collect.stream, upto.0), db.commit()).await?;
    Ok(Some(Collected { upto, new_names }))
}

pub(super) async fn note(db: &Db, stream: &StreamId, names: &[String]) -> Sql<()> {
    try_join(db.begin(), streams::lock(db, stream)).await?;
    try_join(enter(db, stream, names), db.commit()).await?;
    Ok(())
}

/// How many of the names are new.
async fn enter(db: &Db, stream: &StreamId, names: &[String]) -> Sql<u64> {
    let insert = "
        INSERT INTO ingest_names (source, stream, seq, name)
        SELECT $1, $2, known.last + row_number() OVER (ORDER BY n.place), n.name
        FROM (SELECT name, min(place) AS place FROM UNNEST($3) WITH ORDINALITY AS given (name, place) GROUP BY name) AS n,
             (SELECT COALESCE(max(seq), 0) AS last FROM ingest_names WHERE source = $1 AND stream = $2) AS known
        WHERE NOT EXISTS (
            SELECT 1 FROM ingest_names AS k WHERE k.source = $1 AND k.stream = $2 AND k.name = n.name)";
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    db.execute(insert, &[(&source, Type::TEXT), (&name, Type::TEXT), (&names, Type::TEXT_ARRAY)]).await
}

pub(super) async fn listed(db: &Db, stream: &StreamId, span: Span) -> Sql<Vec<Key>> {
    let select = "SELECT name FROM ingest_names WHERE source = $1 AND stream = $2 AND seq >= $3 AND seq < $4
                  ORDER BY seq";
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let (start, end) = (span.start().0, span.end().0);
    let params: [Param<'_>; 4] = [(&source, Type::TEXT), (&name, Type::TEXT), (&start, Type::INT8), (&end, Type::INT8)];
    let ((), rows, ()) = try_join3(db.begin(), db.query(select, &params), db.commit()).await?;
    rows.iter().map(|row| Ok(Key::from(row.try_get::<_, &str>(0)?))).collect()
}

pub(super) async fn at(db: &Db, stream: &StreamId, key: &Key) -> Sql<Option<Position>> {
    let select = "SELECT seq FROM ingest_names WHERE source = $1 AND stream = $2 AND name = $3";
    let (source, name, key) = (stream.source.as_str(), stream.stream.as_str(), key.to_string());
    let params: [Param<'_>; 3] = [(&source, Type::TEXT), (&name, Type::TEXT), (&key, Type::TEXT)];
    let ((), rows, ()) = try_join3(db.begin(), db.query(select, &params), db.commit()).await?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?.map(Position))
}

pub(super) async fn end(db: &Db, stream: &StreamId) -> Sql<Position> {
    let select = "SELECT COALESCE(max(seq), 0) + 1 FROM ingest_names WHERE source = $1 AND stream = $2";
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let params: [Param<'_>; 2] = [(&source, Type::TEXT), (&name, Type::TEXT)];
    let ((), rows, ()) = try_join3(db.begin(), db.query(select, &params), db.commit()).await?;
    Ok(Position(rows[0].try_get(0)?))
}
