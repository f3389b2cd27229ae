//! Laying segments, a chunk a transaction.

use highwater_core::Span;
use rusqlite::{Connection, params};

use super::{error::Sql, streams};
use crate::rules::Rest;

/// Lays the next chunk; what is left after it.
pub(super) fn lay(db: &Connection, rest: Rest) -> Sql<Option<Rest>> {
    let Some(laid) = rest.next(&streams::read(db, &rest.stream)?)? else {
        return Ok(None);
    };
    lay_chunk(db, &rest, laid.chunk)?;
    if let Some((span, frontier)) = laid.place {
        streams::place(db, &rest.stream, span, frontier)?;
    }
    Ok(rest.after(&laid))
}

fn lay_chunk(db: &Connection, rest: &Rest, chunk: Span) -> Sql<()> {
    // A rescan that is still to be done need not be done twice.
    let mut insert = db.prepare_cached(
        "INSERT INTO ingest_segments (source, stream, purpose, start_pos, end_pos)
         SELECT ?1, ?2, ?3, ?4, ?5 WHERE ?3 <> 'rescan' OR NOT EXISTS (
             SELECT 1 FROM ingest_segments
             WHERE source = ?1 AND stream = ?2 AND start_pos = ?4 AND end_pos = ?5
               AND purpose = 'rescan' AND status IN ('pending', 'in_progress'))",
    )?;
    let (source, stream) = (rest.stream.source.as_str(), rest.stream.stream.as_str());
    for piece in rest.pieces(chunk) {
        insert.execute(params![source, stream, rest.purpose.as_str(), piece.start().0, piece.end().0])?;
    }
    Ok(())
}
