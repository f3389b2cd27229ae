//! Everything that only reads: what is known of keys, what is left to do, and pages of every table.

use std::collections::{BTreeMap, BTreeSet};

use highwater_core::{ExceptionState, Key, KeySet, Position, Segment, SegmentId, Span, StreamId, schema::Table};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    error::Sql,
    exceptions,
    follow::{bounds, within},
    places,
    rows::{add_texts, kept_of},
    segments::{time, word},
    shards::Shards,
    table::{KeyParam, TableSql},
};
use crate::{
    Counts, ExceptionFilter, Known, Outlook, Page, StoredRow,
    rules::{Kept, key_column, key_of},
};

pub(super) fn known(db: &Connection, stream: &StreamId, table: &'static Table, keys: &KeySet) -> Sql<Known> {
    match keys {
        KeySet::Range(span) => known_in(db, stream, table, *span),
        KeySet::List(keys) => known_of(db, stream, table, keys),
    }
}

fn known_in(db: &Connection, stream: &StreamId, table: &'static Table, span: Span) -> Sql<Known> {
    let (name, key) = (table.name, key_column(table).name);
    let mut rows =
        db.prepare_cached(&format!("SELECT \"{key}\" FROM \"{name}\" WHERE \"{key}\" >= ?1 AND \"{key}\" < ?2"))?;
    let stored = rows.query_map([span.start().0, span.end().0], |row| row.get(0).map(Key::Number))?;
    let mut excepted = db.prepare_cached(&format!(
        "SELECT {} FROM ingest_exceptions
         WHERE source = ?1 AND stream = ?2 AND item_number >= ?3 AND item_number < ?4 ORDER BY item_number",
        exceptions::COLUMNS
    ))?;
    let (source, stream) = (stream.source.as_str(), stream.stream.as_str());
    Ok(Known {
        stored: stored.collect::<Result<_, _>>()?,
        exceptions: exceptions::collect(excepted.query(params![source, stream, span.start().0, span.end().0])?)?,
    })
}

fn known_of(db: &Connection, stream: &StreamId, table: &'static Table, keys: &[Key]) -> Sql<Known> {
    let (name, key) = (table.name, key_column(table).name);
    let mut row = db.prepare_cached(&format!("SELECT 1 FROM \"{name}\" WHERE \"{key}\" = ?1"))?;
    let mut known = Known::default();
    for key in keys.iter().collect::<BTreeSet<_>>() {
        if row.exists([KeyParam(&table.row_key(key))])? {
            known.stored.insert(key.clone());
        }
        known.exceptions.extend(exceptions::find(db, stream, key)?);
    }
    Ok(known)
}

pub(super) fn outlook(db: &Connection, stream: &StreamId) -> Sql<Outlook> {
    let names = [stream.source.as_str(), stream.stream.as_str()];
    let count = |status| -> Sql<u64> {
        let mut count = db.prepare_cached(&format!(
            "SELECT count(*) FROM ingest_segments WHERE source = ?1 AND stream = ?2 AND status = '{status}'"
        ))?;
        Ok(count.query_row(names, |row| row.get::<_, i64>(0))?.cast_unsigned())
    };
    let next = |unpublished| {
        let mut next = db.prepare_cached(
            "SELECT next_retry_at FROM ingest_exceptions AS e
             WHERE source = ?1 AND stream = ?2 AND (reason = 'unpublished') = ?3 AND state = 'retry_wait'
               AND (SELECT status FROM ingest_segments AS s WHERE s.segment_id = e.segment_id) = 'retry_wait'
             ORDER BY next_retry_at LIMIT 1",
        )?;
        let found = next.query_row(params![names[0], names[1], unpublished], |row| time(row, 0)).optional()?;
        Sql::Ok(found.flatten())
    };
    Ok(Outlook {
        open: count("pending")? + count("in_progress")?,
        next_retry_at: next(0)?,
        next_unpublished_at: next(1)?,
    })
}

pub(super) fn counts(db: &Connection, stream: &StreamId) -> Sql<Counts> {
    Ok(Counts {
        segments: tally(db, stream, "SELECT status, count(*) FROM ingest_segments")?,
        exceptions: tally(db, stream, "SELECT state, count(*) FROM ingest_exceptions")?,
    })
}

fn tally<T>(db: &Connection, stream: &StreamId, select: &str) -> Sql<Vec<(T, u64)>>
where
    T: std::str::FromStr<Err = highwater_core::UnknownWord>,
{
    let mut select = db.prepare_cached(&format!("{select} WHERE source = ?1 AND stream = ?2 GROUP BY 1 ORDER BY 1"))?;
    let mut rows = select.query([stream.source.as_str(), stream.stream.as_str()])?;
    let mut counts = Vec::new();
    while let Some(row) = rows.next()? {
        counts.push((word(row, 0)?, row.get::<_, i64>(1)?.cast_unsigned()));
    }
    Ok(counts)
}

pub(super) fn segments(db: &Connection, stream: &StreamId, page: &Page<(Position, SegmentId)>) -> Sql<Vec<Segment>> {
    let mut select = db.prepare_cached(
        "SELECT segment_id, purpose, start_pos, end_pos, status FROM ingest_segments
         WHERE source = ?1 AND stream = ?2 AND (start_pos, segment_id) > (?3, ?4)
         ORDER BY start_pos, segment_id LIMIT ?5",
    )?;
    let (start, id) = page.after.map_or((i64::MIN, i64::MIN), |(start, id)| (start.0, id.0));
    let mut rows = select.query(params![stream.source.as_str(), stream.stream.as_str(), start, id, page.limit])?;
    let mut segments = Vec::new();
    while let Some(row) = rows.next()? {
        segments.push(Segment {
            id: SegmentId(row.get(0)?),
            purpose: word(row, 1)?,
            span: Span::new(Position(row.get(2)?), Position(row.get(3)?)),
            status: word(row, 4)?,
        });
    }
    Ok(segments)
}

pub(super) fn exceptions(
    db: &Connection,
    stream: &StreamId,
    filter: ExceptionFilter,
    page: &Page<Key>,
) -> Sql<Vec<highwater_core::Exception>> {
    let state = if filter.state.is_some() { "state = ?3" } else { "?3 IS NULL" };
    let after = if page.after.is_some() { "item_key > ?4" } else { "?4 IS NULL" };
    let mut select = db.prepare_cached(&format!(
        "SELECT {} FROM ingest_exceptions
         WHERE source = ?1 AND stream = ?2 AND {state} AND {after} ORDER BY item_key LIMIT ?5",
        exceptions::COLUMNS
    ))?;
    exceptions::collect(select.query(params![
        stream.source.as_str(),
        stream.stream.as_str(),
        filter.state.map(ExceptionState::as_str),
        page.after.as_ref().map(Key::to_string),
        page.limit,
    ])?)
}

pub(super) fn rows(
    db: &Connection,
    shards: &mut Shards,
    table: &'static Table,
    page: &Page<Key>,
) -> Sql<Vec<StoredRow>> {
    let sql = TableSql::of(table);
    let [first, beyond] = bounds(table);
    let mut select = db.prepare_cached(&format!(
        "{} WHERE {} ORDER BY \"{}\" LIMIT ?4",
        sql.select_all,
        within(table, page.after.as_ref()),
        sql.key
    ))?;
    let after = page.after.as_ref().map(|key| table.row_key(key));
    let kept = select
        .query_map(params![after.as_ref().map(KeyParam), first, beyond, page.limit], |row| kept_of(table, row))?
        .collect::<Result<Vec<_>, _>>()?;
    let place = table.position(sql.key).expect("the key is a column");
    let mut stored: Vec<_> = kept.into_iter().map(|kept| stored_row(table, place, kept)).collect();
    add_edges(db, &sql, &mut stored)?;
    for row in &mut stored {
        add_texts(db, shards, table, &table.row_key(&row.key), &mut row.body)?;
    }
    Ok(stored)
}

fn stored_row(table: &Table, key_place: usize, kept: Kept) -> StoredRow {
    StoredRow {
        key: table.key_of_row(&key_of(&kept.body.values[key_place])),
        body: kept.body,
        row_check: kept.row_check,
        last_fetched_at: kept.last_fetched_at,
    }
}

/// The edges of a whole page with one query.
fn add_edges(db: &Connection, sql: &TableSql, rows: &mut [StoredRow]) -> Sql<()> {
    let number = |row: &StoredRow| row.key.number();
    let (Some(edges), Some(first), Some(last)) =
        (&sql.edges, rows.first().and_then(number), rows.last().and_then(number))
    else {
        return Ok(());
    };
    let mut lists: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let mut select = db.prepare_cached(&edges.select_range)?;
    let mut found = select.query([first, last])?;
    while let Some(edge) = found.next()? {
        lists.entry(edge.get(0)?).or_default().push(edge.get(1)?);
    }
    for row in rows {
        row.body.edges = row.key.number().and_then(|key| lists.remove(&key)).unwrap_or_default();
    }
    Ok(())
}

pub(super) fn integrity(db: &Connection, shards: &mut Shards) -> Sql<Vec<String>> {
    let mut found = complaints(db)?;
    for (shard, file) in places::files(db)? {
        let own = shards.within(db, shard, complaints)?;
        found.extend(own.into_iter().map(|line| format!("{file}: {line}")));
        let lost = shards.within(db, shard, |parts| places::lost(db, shard, parts))?;
        found.extend((lost > 0).then(|| format!("{file}: {lost} messages that should be there are not")));
    }
    let mut references = db.prepare("PRAGMA foreign_key_check")?;
    let orphans = references.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<BTreeSet<_>, _>>()?;
    found.extend(orphans.into_iter().map(|table| format!("{table} names rows that are not there")));
    Ok(found)
}

/// Capped: one is enough to act on.
fn complaints(file: &Connection) -> Sql<Vec<String>> {
    let mut check = file.prepare("PRAGMA integrity_check(100)")?;
    let mut found = check.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    found.retain(|line| line != "ok");
    Ok(found)
}
