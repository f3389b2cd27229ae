//! Everything that only reads: what is known of keys, what is left to do, and pages of every table.

use std::collections::BTreeSet;

use futures_util::future::{try_join, try_join3, try_join4, try_join5};
use highwater_core::{
    Exception, ExceptionState, Key, KeySet, Position, Segment, SegmentId, Span, StreamId, schema::Table,
};
use tokio_postgres::types::Type;

use super::{
    cells::{Keys, count, time, word},
    columns::kept_of,
    edges,
    error::Sql,
    exceptions,
    follow::Within,
    link::{Db, Param},
    pool::quoted,
    table::TableSql,
};
use crate::{
    Counts, ExceptionFilter, Known, Outlook, Page, StoredRow,
    rules::{key_column, key_of},
};

pub(super) async fn known(db: &Db, stream: &StreamId, table: &'static Table, keys: &KeySet) -> Sql<Known> {
    match keys {
        KeySet::Range(span) => known_in(db, stream, table, *span).await,
        KeySet::List(keys) => known_of(db, stream, table, keys).await,
    }
}

async fn known_in(db: &Db, stream: &StreamId, table: &'static Table, span: Span) -> Sql<Known> {
    let (name, key) = (quoted(table.name), quoted(key_column(table).name));
    let rows = format!("SELECT {key} FROM {name} WHERE {key} >= $1 AND {key} < $2");
    let excepted = format!(
        "SELECT {} FROM ingest_exceptions
         WHERE source = $1 AND stream = $2 AND item_number >= $3 AND item_number < $4 ORDER BY item_number",
        exceptions::COLUMNS
    );
    let (source, stream) = (stream.source.as_str(), stream.stream.as_str());
    let (start, end) = (span.start().0, span.end().0);
    let range: [Param<'_>; 2] = [(&start, Type::INT8), (&end, Type::INT8)];
    let params: [Param<'_>; 4] =
        [(&source, Type::TEXT), (&stream, Type::TEXT), (&start, Type::INT8), (&end, Type::INT8)];
    let ((), stored, excepted, ()) =
        try_join4(db.begin(), db.query(&rows, &range), db.query(&excepted, &params), db.commit()).await?;
    Ok(Known {
        stored: stored.iter().map(|row| row.try_get(0).map(Key::Number)).collect::<Result<_, _>>()?,
        exceptions: exceptions::all_of(&excepted)?,
    })
}

async fn known_of(db: &Db, stream: &StreamId, table: &'static Table, keys: &[Key]) -> Sql<Known> {
    let column = key_column(table);
    let (name, key) = (quoted(table.name), quoted(column.name));
    let asked: BTreeSet<_> = keys.iter().cloned().collect();
    let places: Vec<_> = asked.iter().map(|key| (stream.clone(), key.clone())).collect();
    let rows_asked: Vec<_> = asked.iter().map(|key| table.row_key(key)).collect();
    let typed = Keys::of(column.kind, rows_asked.iter());
    let rows = format!("SELECT {key}::text FROM {name} WHERE {key} = ANY($1)");
    let params = [typed.param()];
    let ((), stored, found, ()) =
        try_join4(db.begin(), db.query(&rows, &params), exceptions::find(db, &places), db.commit()).await?;
    let mut found: Vec<_> = found.into_iter().map(|(_, exception)| exception).collect();
    found.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(Known {
        stored: stored
            .iter()
            .map(|row| row.try_get(0).map(|key: &str| table.key_of_row(&Key::from(key))))
            .collect::<Result<_, _>>()?,
        exceptions: found,
    })
}

pub(super) async fn outlook(db: &Db, stream: &StreamId) -> Sql<Outlook> {
    // One status a query: each has an index of its own.
    let open = "SELECT (SELECT count(*) FROM ingest_segments WHERE source = $1 AND stream = $2 AND status = 'pending')
        + (SELECT count(*) FROM ingest_segments WHERE source = $1 AND stream = $2 AND status = 'in_progress')";
    let next = |unpublished| {
        format!(
            "SELECT next_retry_at FROM ingest_exceptions AS e
             WHERE source = $1 AND stream = $2 AND (reason = 'unpublished') = {unpublished} AND state = 'retry_wait'
               AND (SELECT status FROM ingest_segments AS s WHERE s.segment_id = e.segment_id) = 'retry_wait'
             ORDER BY next_retry_at LIMIT 1"
        )
    };
    let next = format!("SELECT ({}), ({})", next(false), next(true));
    let (source, stream) = (stream.source.as_str(), stream.stream.as_str());
    let names: [Param<'_>; 2] = [(&source, Type::TEXT), (&stream, Type::TEXT)];
    let ((), open, next, ()) =
        try_join4(db.begin(), db.query(open, &names), db.query(&next, &names), db.commit()).await?;
    Ok(Outlook {
        open: count(&open[0], 0)?,
        next_retry_at: time(&next[0], 0)?,
        next_unpublished_at: time(&next[0], 1)?,
    })
}

pub(super) async fn counts(db: &Db, stream: &StreamId) -> Sql<Counts> {
    let (source, stream) = (stream.source.as_str(), stream.stream.as_str());
    let names: [Param<'_>; 2] = [(&source, Type::TEXT), (&stream, Type::TEXT)];
    let of = |column: &str, table: &str| {
        format!("SELECT {column}, count(*) FROM {table} WHERE source = $1 AND stream = $2 GROUP BY 1 ORDER BY 1")
    };
    let (segments, exceptions) = (of("status", "ingest_segments"), of("state", "ingest_exceptions"));
    let ((), segments, exceptions, ()) =
        try_join4(db.begin(), db.query(&segments, &names), db.query(&exceptions, &names), db.commit()).await?;
    Ok(Counts { segments: tally(&segments)?, exceptions: tally(&exceptions)? })
}

fn tally<T>(rows: &[tokio_postgres::Row]) -> Sql<Vec<(T, u64)>>
where
    T: std::str::FromStr<Err = highwater_core::UnknownWord>,
{
    rows.iter().map(|row| Ok((word(row, 0)?, count(row, 1)?))).collect()
}

pub(super) async fn segments(db: &Db, stream: &StreamId, page: &Page<(Position, SegmentId)>) -> Sql<Vec<Segment>> {
    let select = "SELECT segment_id, purpose, start_pos, end_pos, status FROM ingest_segments
                  WHERE source = $1 AND stream = $2 AND (start_pos, segment_id) > ($3, $4)
                  ORDER BY start_pos, segment_id LIMIT $5";
    let (start, id) = page.after.map_or((i64::MIN, i64::MIN), |(start, id)| (start.0, id.0));
    let (source, stream, limit) = (stream.source.as_str(), stream.stream.as_str(), i64::from(page.limit));
    let params: [Param<'_>; 5] =
        [(&source, Type::TEXT), (&stream, Type::TEXT), (&start, Type::INT8), (&id, Type::INT8), (&limit, Type::INT8)];
    let ((), rows, ()) = try_join3(db.begin(), db.query(select, &params), db.commit()).await?;
    let segment = |row: &tokio_postgres::Row| {
        Ok(Segment {
            id: SegmentId(row.try_get(0)?),
            purpose: word(row, 1)?,
            span: Span::new(Position(row.try_get(2)?), Position(row.try_get(3)?)),
            status: word(row, 4)?,
        })
    };
    rows.iter().map(segment).collect()
}

pub(super) async fn exceptions(
    db: &Db,
    stream: &StreamId,
    filter: ExceptionFilter,
    page: &Page<Key>,
) -> Sql<Vec<Exception>> {
    let select = format!(
        "SELECT {} FROM ingest_exceptions
         WHERE source = $1 AND stream = $2 AND ($3::text IS NULL OR state = $3) AND ($4::text IS NULL OR item_key > $4)
         ORDER BY item_key LIMIT $5",
        exceptions::COLUMNS
    );
    let (source, stream, limit) = (stream.source.as_str(), stream.stream.as_str(), i64::from(page.limit));
    let (state, after) = (filter.state.map(ExceptionState::as_str), page.after.as_ref().map(Key::to_string));
    let params: [Param<'_>; 5] = [
        (&source, Type::TEXT),
        (&stream, Type::TEXT),
        (&state, Type::TEXT),
        (&after, Type::TEXT),
        (&limit, Type::INT8),
    ];
    let ((), rows, ()) = try_join3(db.begin(), db.query(&select, &params), db.commit()).await?;
    exceptions::all_of(&rows)
}

pub(super) async fn rows(db: &Db, table: &'static Table, page: &Page<Key>) -> Sql<Vec<StoredRow>> {
    let sql = TableSql::of(table);
    let key = quoted(sql.key.name);
    let limit = i64::from(page.limit);
    let within = Within::of(table, page.after.as_ref());
    let select = format!("{} WHERE {} ORDER BY {key} LIMIT $4", sql.select_all, within.condition(&key));
    let bounds = within.params(sql.key.kind);
    let params: Vec<Param<'_>> = bounds.iter().map(Keys::param).chain([(&limit as _, Type::INT8)]).collect();
    let ((), found) = try_join(db.begin(), db.query(&select, &params)).await?;
    let place = table.position(sql.key.name).expect("the key is a column");
    let stored = |row: &tokio_postgres::Row| -> Sql<StoredRow> {
        let kept = kept_of(table, row)?;
        Ok(StoredRow {
            key: table.key_of_row(&key_of(&kept.body.values[place])),
            body: kept.body,
            row_check: kept.row_check,
            last_fetched_at: kept.last_fetched_at,
        })
    };
    let mut stored = found.iter().map(stored).collect::<Sql<Vec<_>>>()?;
    let keys = Keys::of(sql.key.kind, stored.iter().map(|row| &row.key));
    let (mut lists, ()) = try_join(edges::read(db, sql.edges.as_ref(), &keys), db.commit()).await?;
    for row in &mut stored {
        row.body.edges = row.key.number().and_then(|key| lists.remove(&key)).unwrap_or_default();
    }
    Ok(stored)
}

/// What our own rows say about each other that cannot be.
pub(super) async fn integrity(db: &Db) -> Sql<Vec<String>> {
    let orphans = "SELECT count(*) FROM ingest_exceptions AS e
        WHERE NOT EXISTS (SELECT 1 FROM ingest_segments AS s WHERE s.segment_id = e.segment_id)";
    let strays = "SELECT count(*) FROM ingest_segments AS s
        WHERE NOT EXISTS (SELECT 1 FROM ingest_streams AS t WHERE t.source = s.source AND t.stream = s.stream)";
    let invalid = "SELECT c.relname::text FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
        WHERE NOT i.indisvalid AND c.relnamespace = to_regnamespace(quote_ident(current_schema())) ORDER BY 1";
    let ((), (), orphans, strays, invalid) = try_join5(
        db.begin(),
        db.run("SET LOCAL statement_timeout = 0"),
        db.query(orphans, &[]),
        db.query(strays, &[]),
        db.query(invalid, &[]),
    )
    .await?;
    db.commit().await?;
    let mut found = Vec::new();
    for (table, rows) in [("ingest_exceptions", orphans), ("ingest_segments", strays)] {
        if count(&rows[0], 0)? > 0 {
            found.push(format!("{table} names rows that are not there"));
        }
    }
    for row in &invalid {
        found.push(format!("index {} is not valid", row.try_get::<_, &str>(0)?));
    }
    Ok(found)
}
