//! The row of a stream: its span, its frontier, and how many rows it has stored.

use futures_util::future::try_join;
use highwater_core::{Position, Span, StreamId, Timestamp};
use tokio_postgres::{Row, types::Type};

use super::{
    cells::{Time, count},
    error::{Fault, Sql},
    link::Db,
};
use crate::StreamRow;

/// What segments at work have stored since they were claimed is counted with them.
const COLUMNS: &str = "source, stream, axis, origin, target, frontier, stored + COALESCE((
     SELECT sum(g.uncounted) FROM ingest_segments AS g
     WHERE g.source = s.source AND g.stream = s.stream AND g.status = 'in_progress'), 0)::bigint";

pub(super) async fn open(db: &Db, stream: &StreamId, axis: &str) -> Sql<StreamRow> {
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let insert = "INSERT INTO ingest_streams (source, stream, axis, origin, frontier, target)
                  VALUES ($1, $2, $3, 0, 0, 0) ON CONFLICT (source, stream) DO NOTHING";
    let params = [(&source as _, Type::TEXT), (&name as _, Type::TEXT), (&axis as _, Type::TEXT)];
    try_join(db.begin(), db.execute(insert, &params)).await?;
    let (row, ()) = try_join(read(db, stream, ""), db.commit()).await?;
    Ok(row)
}

/// `lock` is a clause that locks the row, or empty.
pub(super) async fn read(db: &Db, stream: &StreamId, lock: &str) -> Sql<StreamRow> {
    let select = format!("SELECT {COLUMNS} FROM ingest_streams AS s WHERE source = $1 AND stream = $2 {lock}");
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    match db.query(&select, &[(&source, Type::TEXT), (&name, Type::TEXT)]).await?.first() {
        Some(row) => row_of(row),
        None => Err(Fault::refused(format!("stream {stream} was never opened"))),
    }
}

/// The row, which nobody else changes until the end of the transaction.
pub(super) async fn lock(db: &Db, stream: &StreamId) -> Sql<StreamRow> {
    read(db, stream, "FOR NO KEY UPDATE").await
}

pub(super) async fn all(db: &Db) -> Sql<Vec<StreamRow>> {
    let select = format!("SELECT {COLUMNS} FROM ingest_streams AS s ORDER BY source, stream");
    let ((), rows) = try_join(db.begin(), db.query(&select, &[])).await?;
    db.commit().await?;
    rows.iter().map(row_of).collect()
}

fn row_of(row: &Row) -> Sql<StreamRow> {
    let id = StreamId {
        source: row.try_get::<_, &str>(0)?.parse().map_err(Fault::nonsense)?,
        stream: row.try_get::<_, &str>(1)?.parse().map_err(Fault::nonsense)?,
    };
    Ok(StreamRow {
        id,
        axis: row.try_get(2)?,
        span: Span::new(Position(row.try_get(3)?), Position(row.try_get(4)?)),
        frontier: Position(row.try_get(5)?),
        stored: count(row, 6)?,
    })
}

/// What is older than all before was never compared.
pub(super) async fn place(db: &Db, stream: &StreamId, span: Span, frontier: Position) -> Sql<()> {
    let update = "
        UPDATE ingest_streams SET origin = $3, target = $4, frontier = $5,
            reconciled_at = CASE WHEN $3 < origin THEN NULL ELSE reconciled_at END
        WHERE source = $1 AND stream = $2";
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let params = [
        (&source as _, Type::TEXT),
        (&name as _, Type::TEXT),
        (&span.start().0 as _, Type::INT8),
        (&span.end().0 as _, Type::INT8),
        (&frontier.0 as _, Type::INT8),
    ];
    db.execute(update, &params).await?;
    Ok(())
}

/// Rows that were new, stream by stream. Locks in order, so that two groups cannot wait for each other.
pub(super) async fn count_stored(db: &Db, new: &[(&StreamId, u64, Timestamp)]) -> Sql<()> {
    if new.is_empty() {
        return Ok(());
    }
    let update = "
        WITH mine AS (
            SELECT s.source, s.stream, new.count, new.at
            FROM UNNEST($1, $2, $3, $4) AS new (source, stream, count, at)
            JOIN ingest_streams AS s USING (source, stream)
            ORDER BY s.source, s.stream FOR NO KEY UPDATE OF s
        )
        UPDATE ingest_streams AS s SET stored = s.stored + mine.count, updated_at = mine.at
        FROM mine WHERE s.source = mine.source AND s.stream = mine.stream";
    let sources: Vec<_> = new.iter().map(|(id, ..)| id.source.as_str()).collect();
    let streams: Vec<_> = new.iter().map(|(id, ..)| id.stream.as_str()).collect();
    let counts: Vec<_> = new.iter().map(|(_, count, _)| count.cast_signed()).collect();
    let times: Vec<_> = new.iter().map(|(.., at)| Time(*at)).collect();
    let params = [
        (&sources as _, Type::TEXT_ARRAY),
        (&streams as _, Type::TEXT_ARRAY),
        (&counts as _, Type::INT8_ARRAY),
        (&times as _, Type::TIMESTAMPTZ_ARRAY),
    ];
    db.execute(update, &params).await?;
    Ok(())
}

/// Counts what these segments have stored since they were claimed; whoever puts them down has locked them, and from here
/// on the rows of their streams. `now` is none where nothing tells the time.
pub(super) async fn count_up(db: &Db, segments: &[i64], now: Option<Timestamp>) -> Sql<()> {
    let update = "
        WITH new AS MATERIALIZED (
            SELECT source, stream, sum(uncounted)::bigint AS count FROM ingest_segments
            WHERE segment_id = ANY($1) GROUP BY source, stream
        ), mine AS (
            SELECT s.source, s.stream, new.count FROM new JOIN ingest_streams AS s USING (source, stream)
            ORDER BY s.source, s.stream FOR NO KEY UPDATE OF s
        )
        UPDATE ingest_streams AS s SET stored = s.stored + mine.count, updated_at = COALESCE($2, s.updated_at)
        FROM mine WHERE s.source = mine.source AND s.stream = mine.stream";
    db.execute(update, &[(&segments, Type::INT8_ARRAY), (&now.map(Time), Type::TIMESTAMPTZ)]).await?;
    Ok(())
}

/// Where the feed stands, in digits: a time where one is listened to, a position where rows are gone through.
pub(super) async fn live_cursor(db: &Db, stream: &StreamId) -> Sql<Option<i64>> {
    let select = "SELECT live_cursor FROM ingest_streams WHERE source = $1 AND stream = $2";
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let rows = db.query(select, &[(&source, Type::TEXT), (&name, Type::TEXT)]).await?;
    let cursor: Option<&str> = rows.first().map(|row| row.try_get(0)).transpose()?.flatten();
    cursor.map(|digits| digits.parse().map_err(Fault::nonsense)).transpose()
}

pub(super) async fn set_live_cursor(db: &Db, stream: &StreamId, cursor: i64) -> Sql<()> {
    let update = "UPDATE ingest_streams SET live_cursor = $3 WHERE source = $1 AND stream = $2";
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let params = [(&source as _, Type::TEXT), (&name as _, Type::TEXT), (&cursor.to_string() as _, Type::TEXT)];
    db.execute(update, &params).await?;
    Ok(())
}

/// Where the frontier may stand: at the lowest segment that is not sealed. To be read while the stream's row is locked,
/// or two neighbours that are sealed together would each miss the other.
pub(super) async fn lowest_unsealed(db: &Db, stream: &StreamId) -> Sql<Option<Position>> {
    let lowest = "SELECT start_pos FROM ingest_segments
                  WHERE source = $1 AND stream = $2 AND purpose = 'catchup' AND status <> 'sealed'
                  ORDER BY start_pos LIMIT 1";
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let rows = db.query(lowest, &[(&source, Type::TEXT), (&name, Type::TEXT)]).await?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?.map(Position))
}

pub(super) async fn move_to(db: &Db, stream: &StreamId, frontier: Position, now: Timestamp) -> Sql<()> {
    let update = "UPDATE ingest_streams SET frontier = $3, updated_at = $4
                  WHERE source = $1 AND stream = $2 AND frontier <> $3";
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let params = [
        (&source as _, Type::TEXT),
        (&name as _, Type::TEXT),
        (&frontier.0 as _, Type::INT8),
        (&Time(now) as _, Type::TIMESTAMPTZ),
    ];
    db.execute(update, &params).await?;
    Ok(())
}
