//! The row of a stream: its span, its frontier, and how many rows it has stored.

use highwater_core::{Position, SegmentId, Span, StreamId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::error::{Fault, Sql};
use crate::StreamRow;

/// What segments at work have stored since they were claimed is counted with them.
const COLUMNS: &str = "source, stream, axis, origin, target, frontier, stored + COALESCE((
     SELECT sum(g.uncounted) FROM ingest_segments AS g
     WHERE g.source = s.source AND g.stream = s.stream AND g.status = 'in_progress'), 0)";

pub(super) fn open(db: &Connection, stream: &StreamId, axis: &str) -> Sql<StreamRow> {
    db.execute(
        "INSERT INTO ingest_streams (source, stream, axis, origin, frontier, target) VALUES (?1, ?2, ?3, 0, 0, 0)
         ON CONFLICT (source, stream) DO NOTHING",
        params![stream.source.as_str(), stream.stream.as_str(), axis],
    )?;
    read(db, stream)
}

pub(super) fn read(db: &Connection, stream: &StreamId) -> Sql<StreamRow> {
    let mut select =
        db.prepare_cached(&format!("SELECT {COLUMNS} FROM ingest_streams AS s WHERE source = ?1 AND stream = ?2"))?;
    let mut rows = select.query([stream.source.as_str(), stream.stream.as_str()])?;
    match rows.next()? {
        Some(row) => row_of(row),
        None => Err(Fault::refused(format!("stream {stream} was never opened"))),
    }
}

pub(super) fn all(db: &Connection) -> Sql<Vec<StreamRow>> {
    let mut select =
        db.prepare_cached(&format!("SELECT {COLUMNS} FROM ingest_streams AS s ORDER BY source, stream"))?;
    let mut rows = select.query([])?;
    let mut streams = Vec::new();
    while let Some(row) = rows.next()? {
        streams.push(row_of(row)?);
    }
    Ok(streams)
}

fn row_of(row: &Row<'_>) -> Sql<StreamRow> {
    let name = |index| row.get_ref(index)?.as_str().map_err(rusqlite::Error::from);
    let id = StreamId {
        source: name(0)?.parse().map_err(Fault::nonsense)?,
        stream: name(1)?.parse().map_err(Fault::nonsense)?,
    };
    Ok(StreamRow {
        id,
        axis: row.get(2)?,
        span: Span::new(Position(row.get(3)?), Position(row.get(4)?)),
        frontier: Position(row.get(5)?),
        stored: row.get::<_, i64>(6)?.cast_unsigned(),
    })
}

/// What is older than all before was never compared.
pub(super) fn place(db: &Connection, stream: &StreamId, span: Span, frontier: Position) -> Sql<()> {
    db.prepare_cached(
        "UPDATE ingest_streams SET origin = ?3, target = ?4, frontier = ?5,
             reconciled_at = CASE WHEN ?3 < origin THEN NULL ELSE reconciled_at END
         WHERE source = ?1 AND stream = ?2",
    )?
    .execute(params![stream.source.as_str(), stream.stream.as_str(), span.start().0, span.end().0, frontier.0])?;
    Ok(())
}

pub(super) fn count_stored(db: &Connection, stream: &StreamId, new: u64, now: Timestamp) -> Sql<()> {
    db.prepare_cached(
        "UPDATE ingest_streams SET stored = stored + ?3, updated_at = ?4 WHERE source = ?1 AND stream = ?2",
    )?
    .execute(params![stream.source.as_str(), stream.stream.as_str(), new.cast_signed(), now.as_millis()])?;
    Ok(())
}

/// Counts what a segment has stored since it was claimed. `now` is none where nothing tells the time.
pub(super) fn count_up(db: &Connection, segment: SegmentId, now: Option<Timestamp>) -> Sql<()> {
    db.prepare_cached(
        "UPDATE ingest_streams AS s SET stored = s.stored + g.uncounted, updated_at = COALESCE(?2, s.updated_at)
         FROM ingest_segments AS g WHERE g.segment_id = ?1 AND s.source = g.source AND s.stream = g.stream",
    )?
    .execute(params![segment.0, now.map(Timestamp::as_millis)])?;
    db.prepare_cached("UPDATE ingest_segments SET uncounted = 0 WHERE segment_id = ?1")?.execute([segment.0])?;
    Ok(())
}

/// Where the feed stands, in digits: a time where one is listened to, a position where rows are gone through.
pub(super) fn live_cursor(db: &Connection, stream: &StreamId) -> Sql<Option<i64>> {
    let mut select = db.prepare_cached("SELECT live_cursor FROM ingest_streams WHERE source = ?1 AND stream = ?2")?;
    let names = [stream.source.as_str(), stream.stream.as_str()];
    let cursor: Option<String> = select.query_row(names, |row| row.get(0)).optional()?.flatten();
    cursor.map(|digits| digits.parse().map_err(Fault::nonsense)).transpose()
}

pub(super) fn set_live_cursor(db: &Connection, stream: &StreamId, cursor: i64) -> Sql<()> {
    db.prepare_cached("UPDATE ingest_streams SET live_cursor = ?3 WHERE source = ?1 AND stream = ?2")?
        .execute(params![stream.source.as_str(), stream.stream.as_str(), cursor.to_string()])?;
    Ok(())
}

/// Moves the frontier to the lowest segment that is not sealed. Never back: a segment that was passed and is at work
/// again does not undo what was promised.
pub(super) fn advance(db: &Connection, stream: &StreamId, now: Timestamp) -> Sql<Position> {
    let mut lowest = db.prepare_cached(
        "SELECT start_pos FROM ingest_segments
         WHERE source = ?1 AND stream = ?2 AND purpose = 'catchup' AND status <> 'sealed'
         ORDER BY start_pos LIMIT 1",
    )?;
    let names = [stream.source.as_str(), stream.stream.as_str()];
    let unsealed = lowest.query_row(names, |row| row.get(0).map(Position)).optional()?;
    let row = read(db, stream)?;
    let frontier = unsealed.unwrap_or(row.span.end()).max(row.frontier);
    move_to(db, stream, frontier, now)?;
    Ok(frontier)
}

pub(super) fn move_to(db: &Connection, stream: &StreamId, frontier: Position, now: Timestamp) -> Sql<()> {
    db.prepare_cached(
        "UPDATE ingest_streams SET frontier = ?3, updated_at = ?4 WHERE source = ?1 AND stream = ?2 AND frontier <> ?3",
    )?
    .execute(params![stream.source.as_str(), stream.stream.as_str(), frontier.0, now.as_millis()])?;
    Ok(())
}
