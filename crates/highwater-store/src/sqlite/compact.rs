//! Joining small segments behind the frontier.

use highwater_core::{Position, SegmentId, Span, StreamId};
use rusqlite::{Connection, params};

use super::{error::Sql, streams};
use crate::{
    StreamRow,
    rules::{JOINED_AT_ONCE, Joined, joined},
};

/// How many rows were saved.
pub(super) fn compact(db: &Connection, stream: &StreamId, segment_size: u64) -> Sql<u64> {
    let row = streams::read(db, stream)?;
    let sealed = last_sealed(db, &row)?;
    let found = joined(row.span.start(), segment_size, &sealed);
    for one in &found {
        join(db, one)?;
    }
    Ok(found.iter().map(|one| one.gone.len() as u64).sum())
}

/// The last segments behind the frontier, lowest first: small ones come into being there.
fn last_sealed(db: &Connection, row: &StreamRow) -> Sql<Vec<(SegmentId, Span)>> {
    let mut select = db.prepare_cached(
        "SELECT segment_id, start_pos, end_pos FROM ingest_segments
         WHERE source = ?1 AND stream = ?2 AND purpose = 'catchup' AND status = 'sealed'
           AND start_pos < ?3 AND end_pos <= ?3 ORDER BY start_pos DESC LIMIT ?4",
    )?;
    let names = params![row.id.source.as_str(), row.id.stream.as_str(), row.frontier.0, JOINED_AT_ONCE];
    let segments = select.query_map(names, |row| {
        Ok((SegmentId(row.get(0)?), Span::new(Position(row.get(1)?), Position(row.get(2)?))))
    })?;
    let mut segments = segments.collect::<Result<Vec<_>, _>>()?;
    segments.reverse();
    Ok(segments)
}

fn join(db: &Connection, one: &Joined) -> Sql<()> {
    let survivor = one.survivor.0;
    for id in &one.gone {
        db.prepare_cached("UPDATE ingest_exceptions SET segment_id = ?1 WHERE segment_id = ?2")?
            .execute([survivor, id.0])?;
        db.prepare_cached(
            "UPDATE ingest_segments AS s SET stored_count = s.stored_count + gone.stored_count,
                unresolved_count = s.unresolved_count + gone.unresolved_count,
                seen_count = s.seen_count + gone.seen_count, changed_count = s.changed_count + gone.changed_count,
                attempts = max(s.attempts, gone.attempts), started_at = min(s.started_at, gone.started_at),
                sealed_at = max(s.sealed_at, gone.sealed_at), last_error = COALESCE(s.last_error, gone.last_error)
             FROM ingest_segments AS gone WHERE s.segment_id = ?1 AND gone.segment_id = ?2",
        )?
        .execute([survivor, id.0])?;
        db.prepare_cached("DELETE FROM ingest_segments WHERE segment_id = ?1")?.execute([id.0])?;
    }
    db.prepare_cached(
        "UPDATE ingest_segments SET start_pos = ?1, end_pos = ?2, scan_cursor = ?2 WHERE segment_id = ?3",
    )?
    .execute([one.span.start().0, one.span.end().0, survivor])?;
    Ok(())
}
