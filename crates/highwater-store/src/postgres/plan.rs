//! Laying segments, a chunk a transaction.

use futures_util::future::{try_join, try_join3};
use highwater_core::Span;
use tokio_postgres::types::Type;

use super::{error::Sql, link::Db, streams};
use crate::rules::{Laid, Rest};

/// Lays the next chunk; what is left after it. Whoever plans holds the stream's row.
pub(super) async fn lay(db: &Db, rest: Rest) -> Sql<Option<Rest>> {
    let ((), row) = try_join(db.begin(), streams::lock(db, &rest.stream)).await?;
    let Some(laid) = rest.next(&row)? else {
        db.commit().await?;
        return Ok(None);
    };
    try_join3(lay_chunk(db, &rest, laid.chunk), place(db, &rest, &laid), db.commit()).await?;
    Ok(rest.after(&laid))
}

async fn place(db: &Db, rest: &Rest, laid: &Laid) -> Sql<()> {
    match laid.place {
        Some((span, frontier)) => streams::place(db, &rest.stream, span, frontier).await,
        None => Ok(()),
    }
}

async fn lay_chunk(db: &Db, rest: &Rest, chunk: Span) -> Sql<()> {
    // A rescan that is still to be done need not be done twice.
    let insert = "
        INSERT INTO ingest_segments (source, stream, purpose, start_pos, end_pos)
        SELECT $1, $2, $3, piece.start_pos, piece.end_pos FROM UNNEST($4, $5) AS piece (start_pos, end_pos)
        WHERE $3 <> 'rescan' OR NOT EXISTS (
            SELECT 1 FROM ingest_segments AS s
            WHERE s.source = $1 AND s.stream = $2 AND s.start_pos = piece.start_pos AND s.end_pos = piece.end_pos
              AND s.purpose = 'rescan' AND s.status IN ('pending', 'in_progress'))";
    let (source, stream) = (rest.stream.source.as_str(), rest.stream.stream.as_str());
    let (starts, ends): (Vec<_>, Vec<_>) = rest.pieces(chunk).map(|piece| (piece.start().0, piece.end().0)).unzip();
    let params = [
        (&source as _, Type::TEXT),
        (&stream as _, Type::TEXT),
        (&rest.purpose.as_str() as _, Type::TEXT),
        (&starts as _, Type::INT8_ARRAY),
        (&ends as _, Type::INT8_ARRAY),
    ];
    db.execute(insert, &params).await?;
    Ok(())
}
