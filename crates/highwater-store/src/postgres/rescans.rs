//! Rows of passes over what is stored already, and the segments they are made of.

use futures_util::future::try_join;
use highwater_core::{Position, Purpose, Rescan, RescanId, RescanReason, Span, StreamId};
use tokio_postgres::{Row, types::Type};

use super::{
    cells::{Time, count, time, time_at, word},
    error::{Fault, Sql},
    link::{Db, Param},
    streams,
};
use crate::{
    RescanPlan,
    rules::{Pass, clipped},
};

/// What `row_of` expects.
pub(super) const COLUMNS: &str =
    "rescan_id, reason, start_pos, end_pos, began_at, sealed_at, items, changed, segment_size, laid_pos";

pub(super) fn row_of(row: &Row) -> Sql<Pass> {
    let rescan = Rescan {
        id: RescanId(row.try_get(0)?),
        reason: word(row, 1)?,
        span: Span::new(Position(row.try_get(2)?), Position(row.try_get(3)?)),
        began_at: time_at(row, 4)?,
        sealed_at: time(row, 5)?,
        items: count(row, 6)?,
        changed: count(row, 7)?,
    };
    Ok(Pass { rescan, segment_size: count(row, 8)?, laid: Position(row.try_get(9)?) })
}

/// The row, which nobody else changes until the end of the transaction.
pub(super) async fn lock(db: &Db, id: RescanId) -> Sql<Pass> {
    let select = format!("SELECT {COLUMNS} FROM ingest_rescans WHERE rescan_id = $1 FOR UPDATE");
    match db.query(&select, &[(&id.0, Type::INT8)]).await?.first() {
        Some(row) => row_of(row),
        None => Err(Fault::refused(format!("there is no rescan {id}"))),
    }
}

/// Begins the pass, unless the same call did so before. Whoever begins one holds the stream's row.
pub(super) async fn begin(db: &Db, plan: &RescanPlan) -> Sql<Pass> {
    let ((), row) = try_join(db.begin(), streams::lock(db, &plan.stream)).await?;
    let span = clipped(plan, row.span)?;
    let pass = match begun(db, plan, span).await? {
        Some(id) => lock(db, id).await?,
        None => begin_anew(db, plan, row.span).await?,
    };
    db.commit().await?;
    Ok(pass)
}

async fn begun(db: &Db, plan: &RescanPlan, span: Span) -> Sql<Option<RescanId>> {
    let (source, stream) = (plan.stream.source.as_str(), plan.stream.stream.as_str());
    let (start, end) = (span.start().0, span.end().0);
    let (reason, now) = (plan.reason.as_str(), Time(plan.now));
    let place: [Param<'_>; 4] =
        [(&source, Type::TEXT), (&stream, Type::TEXT), (&start, Type::INT8), (&end, Type::INT8)];
    let same = "
        SELECT rescan_id FROM ingest_rescans WHERE source = $1 AND stream = $2 AND start_pos = $3 AND end_pos = $4
            AND reason = $5 AND began_at = $6 ORDER BY rescan_id LIMIT 1";
    let call: [Param<'_>; 2] = [(&reason, Type::TEXT), (&now, Type::TIMESTAMPTZ)];
    let same = db.query(same, &place.iter().cloned().chain(call).collect::<Vec<_>>()).await?;
    if !same.is_empty() || plan.reason != RescanReason::Key {
        return Ok(same.first().map(|row| row.try_get(0)).transpose()?.map(RescanId));
    }
    // One that somebody works on may have been asked for already, before this one was called for.
    let waiting = "
        SELECT s.rescan_id FROM ingest_segments AS s JOIN ingest_rescans AS r ON r.rescan_id = s.rescan_id
        WHERE s.source = $1 AND s.stream = $2 AND s.start_pos = $3 AND s.end_pos = $4
          AND s.status IN ('pending', 'retry_wait') AND r.sealed_at IS NULL LIMIT 1";
    Ok(db.query(waiting, &place).await?.first().map(|row| row.try_get(0)).transpose()?.map(RescanId))
}

/// Inside a transaction, for a stream that has this span.
pub(super) async fn begin_anew(db: &Db, plan: &RescanPlan, stream: Span) -> Sql<Pass> {
    let span = clipped(plan, stream)?;
    let insert = format!(
        "INSERT INTO ingest_rescans (source, stream, reason, start_pos, end_pos, segment_size, laid_pos, began_at,
             sealed_at) VALUES ($1, $2, $3, $4, $5, $6, $4, $7, CASE WHEN $4 = $5 THEN $7 END) RETURNING {COLUMNS}"
    );
    let params = [
        (&plan.stream.source.as_str() as _, Type::TEXT),
        (&plan.stream.stream.as_str() as _, Type::TEXT),
        (&plan.reason.as_str() as _, Type::TEXT),
        (&span.start().0 as _, Type::INT8),
        (&span.end().0 as _, Type::INT8),
        (&plan.segment_size.cast_signed() as _, Type::INT8),
        (&Time(plan.now) as _, Type::TIMESTAMPTZ),
    ];
    let row = db.query(&insert, &params).await?.remove(0);
    lay_chunk(db, &plan.stream, row_of(&row)?).await
}

/// The pass of a window, inside a transaction, for a stream that has this span: the last one, if nobody has begun it and
/// it begins no later; else one of its own. What was not asked for when the window had ended is asked for afterwards.
pub(super) async fn begin_blind(db: &Db, plan: &RescanPlan, stream: Span) -> Sql<Pass> {
    let span = clipped(plan, stream)?;
    match unbegun(db, plan).await?.and_then(|pass| pass.stretched_over(span)) {
        Some(pass) => {
            let stretch = "UPDATE ingest_rescans SET end_pos = $1 WHERE rescan_id = $2";
            let params = [(&pass.rescan.span.end().0 as _, Type::INT8), (&pass.rescan.id.0 as _, Type::INT8)];
            db.execute(stretch, &params).await?;
            lay_chunk(db, &plan.stream, pass).await
        }
        None => begin_anew(db, plan, stream).await,
    }
}

async fn unbegun(db: &Db, plan: &RescanPlan) -> Sql<Option<Pass>> {
    let select = format!(
        "SELECT {COLUMNS} FROM ingest_rescans AS r
         WHERE source = $1 AND stream = $2 AND reason = $3 AND segment_size = $4 AND sealed_at IS NULL AND NOT EXISTS (
             SELECT 1 FROM ingest_segments AS s WHERE s.rescan_id = r.rescan_id AND s.started_at IS NOT NULL)
         ORDER BY rescan_id DESC LIMIT 1 FOR UPDATE OF r"
    );
    let params = [
        (&plan.stream.source.as_str() as _, Type::TEXT),
        (&plan.stream.stream.as_str() as _, Type::TEXT),
        (&plan.reason.as_str() as _, Type::TEXT),
        (&plan.segment_size.cast_signed() as _, Type::INT8),
    ];
    db.query(&select, &params).await?.first().map(row_of).transpose()
}

/// Lays the next chunk of a pass.
pub(super) async fn lay(db: &Db, stream: &StreamId, id: RescanId) -> Sql<Pass> {
    let ((), pass) = try_join(db.begin(), lock(db, id)).await?;
    let (pass, ()) = try_join(lay_chunk(db, stream, pass), db.commit()).await?;
    Ok(pass)
}

/// Inside a transaction that holds the row of the pass.
pub(super) async fn lay_chunk(db: &Db, stream: &StreamId, pass: Pass) -> Sql<Pass> {
    let chunk = pass.next_chunk();
    let insert = "
        WITH laid AS (UPDATE ingest_rescans SET laid_pos = $7 WHERE rescan_id = $6)
        INSERT INTO ingest_segments (source, stream, purpose, start_pos, end_pos, rescan_id)
        SELECT $1, $2, $3, piece.start_pos, piece.end_pos, $6 FROM UNNEST($4, $5) AS piece (start_pos, end_pos)";
    let (starts, ends): (Vec<_>, Vec<_>) =
        chunk.cut(pass.segment_size).map(|piece| (piece.start().0, piece.end().0)).unzip();
    let params = [
        (&stream.source.as_str() as _, Type::TEXT),
        (&stream.stream.as_str() as _, Type::TEXT),
        (&Purpose::Rescan.as_str() as _, Type::TEXT),
        (&starts as _, Type::INT8_ARRAY),
        (&ends as _, Type::INT8_ARRAY),
        (&pass.rescan.id.0 as _, Type::INT8),
        (&chunk.end().0 as _, Type::INT8),
    ];
    db.execute(insert, &params).await?;
    Ok(Pass { laid: chunk.end(), ..pass })
}
