//! Rows of passes over what is stored already, and the segments they are made of.

use highwater_core::{Position, Purpose, Rescan, RescanId, RescanReason, Span, StreamId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, Rows, params};

use super::{
    error::{Fault, Sql},
    segments::{time, word},
    streams,
};
use crate::{
    RescanPlan,
    rules::{Pass, clipped},
};

/// What `row_of` expects.
pub(super) const COLUMNS: &str =
    "rescan_id, reason, start_pos, end_pos, began_at, sealed_at, items, changed, segment_size, laid_pos";

fn row_of(row: &Row<'_>) -> Sql<Pass> {
    let rescan = Rescan {
        id: RescanId(row.get(0)?),
        reason: word(row, 1)?,
        span: Span::new(Position(row.get(2)?), Position(row.get(3)?)),
        began_at: Timestamp::from_millis(row.get(4)?),
        sealed_at: time(row, 5)?,
        items: row.get::<_, i64>(6)?.cast_unsigned(),
        changed: row.get::<_, i64>(7)?.cast_unsigned(),
    };
    Ok(Pass { rescan, segment_size: row.get::<_, i64>(8)?.cast_unsigned(), laid: Position(row.get(9)?) })
}

pub(super) fn collect(mut rows: Rows<'_>) -> Sql<Vec<Pass>> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(row_of(row)?);
    }
    Ok(found)
}

pub(super) fn read(db: &Connection, id: RescanId) -> Sql<Pass> {
    let mut select = db.prepare_cached(&format!("SELECT {COLUMNS} FROM ingest_rescans WHERE rescan_id = ?1"))?;
    let mut rows = select.query([id.0])?;
    match rows.next()? {
        Some(row) => row_of(row),
        None => Err(Fault::refused(format!("there is no rescan {id}"))),
    }
}

/// Begins the pass, unless the same call did so before.
pub(super) fn begin(db: &Connection, plan: &RescanPlan) -> Sql<Pass> {
    let span = clipped(plan, streams::read(db, &plan.stream)?.span)?;
    match begun(db, plan, span)? {
        Some(id) => read(db, id),
        None => begin_anew(db, plan),
    }
}

fn begun(db: &Connection, plan: &RescanPlan, span: Span) -> Sql<Option<RescanId>> {
    let (source, stream) = (plan.stream.source.as_str(), plan.stream.stream.as_str());
    let (start, end) = (span.start().0, span.end().0);
    let mut same = db.prepare_cached(
        "SELECT rescan_id FROM ingest_rescans WHERE source = ?1 AND stream = ?2 AND start_pos = ?3 AND end_pos = ?4
            AND reason = ?5 AND began_at = ?6 ORDER BY rescan_id LIMIT 1",
    )?;
    let (reason, now) = (plan.reason.as_str(), plan.now.as_millis());
    let same = same.query_row(params![source, stream, start, end, reason, now], |row| row.get(0)).optional()?;
    if same.is_some() || plan.reason != RescanReason::Key {
        return Ok(same.map(RescanId));
    }
    // One that somebody works on may have been asked for already, before this one was called for.
    let mut waiting = db.prepare_cached(
        "SELECT s.rescan_id FROM ingest_segments AS s JOIN ingest_rescans AS r ON r.rescan_id = s.rescan_id
         WHERE s.source = ?1 AND s.stream = ?2 AND s.start_pos = ?3 AND s.end_pos = ?4
           AND s.status IN ('pending', 'retry_wait') AND r.sealed_at IS NULL LIMIT 1",
    )?;
    Ok(waiting.query_row(params![source, stream, start, end], |row| row.get(0)).optional()?.map(RescanId))
}

pub(super) fn begin_anew(db: &Connection, plan: &RescanPlan) -> Sql<Pass> {
    let span = clipped(plan, streams::read(db, &plan.stream)?.span)?;
    let mut insert = db.prepare_cached(
        "INSERT INTO ingest_rescans (source, stream, reason, start_pos, end_pos, segment_size, laid_pos, began_at,
            sealed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?4, ?7, ?8) RETURNING rescan_id",
    )?;
    let id = insert.query_row(
        params![
            plan.stream.source.as_str(),
            plan.stream.stream.as_str(),
            plan.reason.as_str(),
            span.start().0,
            span.end().0,
            plan.segment_size.cast_signed(),
            plan.now.as_millis(),
            span.is_empty().then_some(plan.now.as_millis()),
        ],
        |row| row.get(0),
    )?;
    lay(db, &plan.stream, RescanId(id))
}

/// The pass of a window: the last one, if nobody has begun it and it begins no later; else one of its own. What was not
/// asked for when the window had ended is asked for afterwards.
pub(super) fn begin_blind(db: &Connection, plan: &RescanPlan) -> Sql<Pass> {
    let span = clipped(plan, streams::read(db, &plan.stream)?.span)?;
    match unbegun(db, plan)?.and_then(|pass| pass.stretched_over(span)) {
        Some(pass) => {
            db.prepare_cached("UPDATE ingest_rescans SET end_pos = ?1 WHERE rescan_id = ?2")?
                .execute([pass.rescan.span.end().0, pass.rescan.id.0])?;
            lay(db, &plan.stream, pass.rescan.id)
        }
        None => begin_anew(db, plan),
    }
}

fn unbegun(db: &Connection, plan: &RescanPlan) -> Sql<Option<Pass>> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM ingest_rescans AS r
         WHERE source = ?1 AND stream = ?2 AND reason = ?3 AND segment_size = ?4 AND sealed_at IS NULL AND NOT EXISTS (
             SELECT 1 FROM ingest_segments AS s WHERE s.rescan_id = r.rescan_id AND s.started_at IS NOT NULL)
         ORDER BY rescan_id DESC LIMIT 1"
    ))?;
    let (source, stream) = (plan.stream.source.as_str(), plan.stream.stream.as_str());
    let size = plan.segment_size.cast_signed();
    Ok(collect(select.query(params![source, stream, plan.reason.as_str(), size])?)?.pop())
}

/// Lays the next chunk of a pass.
pub(super) fn lay(db: &Connection, stream: &StreamId, id: RescanId) -> Sql<Pass> {
    let pass = read(db, id)?;
    let chunk = pass.next_chunk();
    let mut insert = db.prepare_cached(
        "INSERT INTO ingest_segments (source, stream, purpose, start_pos, end_pos, rescan_id)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let (source, name, purpose) = (stream.source.as_str(), stream.stream.as_str(), Purpose::Rescan.as_str());
    for piece in chunk.cut(pass.segment_size) {
        insert.execute(params![source, name, purpose, piece.start().0, piece.end().0, id.0])?;
    }
    db.prepare_cached("UPDATE ingest_rescans SET laid_pos = ?1 WHERE rescan_id = ?2")?
        .execute([chunk.end().0, id.0])?;
    Ok(Pass { laid: chunk.end(), ..pass })
}
