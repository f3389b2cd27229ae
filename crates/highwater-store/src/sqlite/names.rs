//! Lists of names: the axis of a stream whose keys are named by the rows of another.

use highwater_core::{Key, Position, Span, StreamId};
use rusqlite::{Connection, OptionalExtension, params};

use super::{error::Sql, streams};
use crate::{CollectNames, Collected, NamesIn, rules::key_column};

/// Rows gone through in a transaction.
const ROWS_AT_ONCE: u64 = 10_000;

pub(super) fn names_in(db: &Connection, names: &NamesIn) -> Sql<Vec<String>> {
    distinct(db, names, "ORDER BY 1")
}

/// Each name once; rows without one have none to tell.
fn distinct(db: &Connection, names: &NamesIn, order: &str) -> Sql<Vec<String>> {
    let (table, key, column) = (names.table.name, key_column(names.table).name, names.column);
    let mut select = db.prepare_cached(&format!(
        "SELECT \"{column}\" FROM \"{table}\" WHERE \"{key}\" >= ?1 AND \"{key}\" < ?2 AND \"{column}\" <> ''
         GROUP BY \"{column}\" {order}"
    ))?;
    let rows = select.query_map([names.span.start().0, names.span.end().0], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn collect(db: &Connection, collect: &CollectNames) -> Sql<Option<Collected>> {
    let cursor = match streams::live_cursor(db, &collect.stream)? {
        Some(cursor) => Position(cursor),
        None => streams::read(db, &collect.from)?.span.start(),
    };
    if cursor >= collect.until {
        return Ok(None);
    }
    let upto = cursor.plus(ROWS_AT_ONCE).min(collect.until);
    let found = NamesIn { table: collect.table, column: collect.column, span: Span::new(cursor, upto) };
    let order = format!("ORDER BY min(\"{}\")", key_column(collect.table).name);
    let new_names = note(db, &collect.stream, &distinct(db, &found, &order)?)?;
    streams::set_live_cursor(db, &collect.stream, upto.0)?;
    Ok(Some(Collected { upto, new_names }))
}

/// How many of the names are new.
pub(super) fn note(db: &Connection, stream: &StreamId, names: &[String]) -> Sql<u64> {
    let mut insert = db.prepare_cached(
        "INSERT INTO ingest_names (source, stream, seq, name) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
    )?;
    streams::read(db, stream)?;
    let first = end(db, stream)?.0;
    let mut next = first;
    for name in names {
        let added = insert.execute(params![stream.source.as_str(), stream.stream.as_str(), next, name])?;
        next += i64::from(added == 1);
    }
    Ok(next.abs_diff(first))
}

pub(super) fn listed(db: &Connection, stream: &StreamId, span: Span) -> Sql<Vec<Key>> {
    let mut select = db.prepare_cached(
        "SELECT name FROM ingest_names WHERE source = ?1 AND stream = ?2 AND seq >= ?3 AND seq < ?4 ORDER BY seq",
    )?;
    let span = params![stream.source.as_str(), stream.stream.as_str(), span.start().0, span.end().0];
    let names = select.query_map(span, |row| Ok(Key::from(row.get::<_, String>(0)?.as_str())))?;
    Ok(names.collect::<Result<_, _>>()?)
}

pub(super) fn at(db: &Connection, stream: &StreamId, name: &Key) -> Sql<Option<Position>> {
    let mut select =
        db.prepare_cached("SELECT seq FROM ingest_names WHERE source = ?1 AND stream = ?2 AND name = ?3")?;
    let key = params![stream.source.as_str(), stream.stream.as_str(), name.to_string()];
    Ok(select.query_row(key, |row| row.get(0).map(Position)).optional()?)
}

pub(super) fn end(db: &Connection, stream: &StreamId) -> Sql<Position> {
    let mut select =
        db.prepare_cached("SELECT COALESCE(max(seq), 0) + 1 FROM ingest_names WHERE source = ?1 AND stream = ?2")?;
    Ok(select.query_row([stream.source.as_str(), stream.stream.as_str()], |row| row.get(0).map(Position))?)
}
