//! Ending passes whose segments are done, removing those segments, and closing windows that are covered.
//!
//! Locks are taken in this order: passes, segments from the lowest up, windows, the chain of the ledger. Passes that
//! another process is just ending are left to it.

use std::collections::BTreeSet;

use futures_util::future::try_join;
use highwater_core::{BlindWindow, Rescan, RescanReason, SegmentId, SegmentStatus, StreamId, Timestamp};
use tokio_postgres::{Row, types::Type};

use super::{
    cells::{Time, count},
    error::Sql,
    ledger,
    link::{Db, Param},
    rescans,
    segments::{self, Locked},
    streams, windows,
};
use crate::{
    LedgerEntry, LiveSettled,
    rules::{ENDED_AT_ONCE, rescan_entry},
};

pub(super) async fn settle(db: &Db, stream: &StreamId, now: Timestamp) -> Sql<LiveSettled> {
    db.begin().await?;
    lay_on(db, stream).await?;
    let mut entries = Vec::new();
    let rescans = seal(db, stream, now, &mut entries).await?;
    tidy(db, stream).await?;
    let windows = close(db, stream, now, &mut entries).await?;
    ledger::append(db, &entries).await?;
    db.commit().await?;
    Ok(LiveSettled { rescans, windows })
}

/// Goes on with a pass whose laying was broken off.
async fn lay_on(db: &Db, stream: &StreamId) -> Sql<()> {
    let select = format!(
        "SELECT {} FROM ingest_rescans
         WHERE source = $1 AND stream = $2 AND sealed_at IS NULL AND laid_pos < end_pos
         ORDER BY rescan_id LIMIT 1 FOR UPDATE SKIP LOCKED",
        rescans::COLUMNS
    );
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    if let Some(row) = db.query(&select, &[(&source, Type::TEXT), (&name, Type::TEXT)]).await?.first() {
        rescans::lay_chunk(db, stream, rescans::row_of(row)?).await?;
    }
    Ok(())
}

async fn seal(db: &Db, stream: &StreamId, now: Timestamp, entries: &mut Vec<LedgerEntry>) -> Sql<Vec<Rescan>> {
    let mut sealed = done(db, stream).await?;
    if sealed.is_empty() {
        return Ok(sealed);
    }
    // A commit that is brought again counts again in its segment, which has no more objects than positions.
    let update = "
        UPDATE ingest_rescans AS r SET sealed_at = $2,
            items = (SELECT COALESCE(sum(LEAST(seen_count, end_pos - start_pos)), 0)
                     FROM ingest_segments AS s WHERE s.rescan_id = r.rescan_id),
            changed = (SELECT COALESCE(sum(changed_count), 0) FROM ingest_segments AS s WHERE s.rescan_id = r.rescan_id)
        WHERE rescan_id = ANY($1) RETURNING rescan_id, items, changed";
    let ids: Vec<_> = sealed.iter().map(|rescan| rescan.id.0).collect();
    for row in &db.query(update, &[(&ids, Type::INT8_ARRAY), (&Time(now), Type::TIMESTAMPTZ)]).await? {
        let id: i64 = row.try_get(0)?;
        if let Some(rescan) = sealed.iter_mut().find(|rescan| rescan.id.0 == id) {
            (rescan.items, rescan.changed, rescan.sealed_at) = (count(row, 1)?, count(row, 2)?, Some(now));
        }
    }
    sealed.retain(|rescan| rescan.reason != RescanReason::Key);
    entries.extend(sealed.iter().map(|rescan| rescan_entry(stream, rescan, now)));
    Ok(sealed)
}

/// Passes that have nothing left to do.
async fn done(db: &Db, stream: &StreamId) -> Sql<Vec<Rescan>> {
    let select = format!(
        "SELECT {} FROM ingest_rescans AS r
         WHERE source = $1 AND stream = $2 AND sealed_at IS NULL AND laid_pos >= end_pos AND NOT EXISTS (
             SELECT 1 FROM ingest_segments AS s
             WHERE s.rescan_id = r.rescan_id AND s.status IN ('pending', 'in_progress', 'retry_wait'))
         ORDER BY rescan_id LIMIT $3 FOR UPDATE SKIP LOCKED",
        rescans::COLUMNS
    );
    let (source, name, limit) = (stream.source.as_str(), stream.stream.as_str(), i64::from(ENDED_AT_ONCE));
    let params: [Param<'_>; 3] = [(&source, Type::TEXT), (&name, Type::TEXT), (&limit, Type::INT8)];
    let rows = db.query(&select, &params).await?;
    rows.iter().map(|row| Ok(rescans::row_of(row)?.rescan)).collect()
}

/// Removes segments of ended passes, and passes over single keys. The youngest row of a table stays: a database may give
/// its number to another, and whoever still holds a lease on the old one would hold the new one, too.
async fn tidy(db: &Db, stream: &StreamId) -> Sql<()> {
    let ended = ended(db, stream).await?;
    if !ended.is_empty() {
        let absences = absences(db, &ended).await?;
        let ids: BTreeSet<_> = ended.into_iter().chain(absences.iter().map(|absence| absence.owner)).collect();
        let locked = segments::lock(db, &ids).await?;
        hand_over(db, stream, &absences, &locked).await?;
        remove(db, &absences, &locked).await?;
    }
    let delete = "
        DELETE FROM ingest_rescans WHERE source = $1 AND stream = $2 AND reason = $3 AND sealed_at IS NOT NULL
          AND rescan_id < (SELECT max(rescan_id) FROM ingest_rescans)";
    let (source, name, key) = (stream.source.as_str(), stream.stream.as_str(), RescanReason::Key.as_str());
    db.execute(delete, &[(&source, Type::TEXT), (&name, Type::TEXT), (&key, Type::TEXT)]).await?;
    Ok(())
}

/// Sealed segments of ended passes that nothing unsettled refers to.
async fn ended(db: &Db, stream: &StreamId) -> Sql<Vec<SegmentId>> {
    let select = "
        SELECT segment_id FROM ingest_segments AS s
        WHERE source = $1 AND stream = $2 AND rescan_id IS NOT NULL AND status = 'sealed'
          AND segment_id < (SELECT max(segment_id) FROM ingest_segments)
          AND NOT EXISTS (SELECT 1 FROM ingest_rescans AS r WHERE r.rescan_id = s.rescan_id AND r.sealed_at IS NULL)
          AND NOT EXISTS (SELECT 1 FROM ingest_exceptions AS e
                          WHERE e.segment_id = s.segment_id AND e.state IN ('retry_wait', 'dead_letter'))
        ORDER BY segment_id LIMIT $3";
    let (source, name, limit) = (stream.source.as_str(), stream.stream.as_str(), i64::from(ENDED_AT_ONCE));
    let params: [Param<'_>; 3] = [(&source, Type::TEXT), (&name, Type::TEXT), (&limit, Type::INT8)];
    let rows = db.query(select, &params).await?;
    Ok(rows.iter().map(|row| row.try_get(0).map(SegmentId)).collect::<Result<_, _>>()?)
}

/// A key that a pass found absent or left out, and the catch-up segment that covers it.
struct Absence {
    segment: SegmentId,
    key: String,
    owner: SegmentId,
}

/// Where a key lies is told by the list of names, if it is a name.
async fn absences(db: &Db, ended: &[SegmentId]) -> Sql<Vec<Absence>> {
    let select = "
        SELECT e.segment_id, e.item_key, covering.segment_id FROM ingest_exceptions AS e
        LEFT JOIN ingest_names AS n ON n.source = e.source AND n.stream = e.stream AND n.name = e.item_key
        CROSS JOIN LATERAL (
            SELECT c.segment_id FROM ingest_segments AS c
            WHERE c.source = e.source AND c.stream = e.stream AND c.purpose = 'catchup'
              AND c.start_pos <= COALESCE(n.seq, e.item_number) AND c.end_pos > COALESCE(n.seq, e.item_number)
            ORDER BY c.start_pos DESC LIMIT 1
        ) AS covering WHERE e.segment_id = ANY($1)";
    let ids: Vec<_> = ended.iter().map(|id| id.0).collect();
    let absence = |row: &Row| {
        let (segment, owner) = (SegmentId(row.try_get(0)?), SegmentId(row.try_get(2)?));
        Ok(Absence { segment, key: row.try_get(1)?, owner })
    };
    db.query(select, &[(&ids, Type::INT8_ARRAY)]).await?.iter().map(absence).collect()
}

/// From now on these keys are the business of the catch-up segments that cover them, as far as those are still there.
async fn hand_over(db: &Db, stream: &StreamId, absences: &[Absence], locked: &Locked) -> Sql<()> {
    let update = "
        UPDATE ingest_exceptions AS e SET segment_id = n.owner
        FROM UNNEST($3, $4, $5) AS n (segment_id, item_key, owner)
        WHERE e.source = $1 AND e.stream = $2 AND e.item_key = n.item_key AND e.segment_id = n.segment_id
          AND e.state IN ('missing', 'excluded')";
    let moved: Vec<_> = absences.iter().filter(|absence| locked.contains_key(&absence.owner)).collect();
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let segments: Vec<_> = moved.iter().map(|absence| absence.segment.0).collect();
    let keys: Vec<_> = moved.iter().map(|absence| absence.key.as_str()).collect();
    let owners: Vec<_> = moved.iter().map(|absence| absence.owner.0).collect();
    let params: [Param<'_>; 5] = [
        (&source, Type::TEXT),
        (&name, Type::TEXT),
        (&segments, Type::INT8_ARRAY),
        (&keys, Type::TEXT_ARRAY),
        (&owners, Type::INT8_ARRAY),
    ];
    db.execute(update, &params).await?;
    Ok(())
}

async fn remove(db: &Db, absences: &[Absence], locked: &Locked) -> Sql<()> {
    let owners: BTreeSet<_> = absences.iter().map(|absence| absence.owner).collect();
    let sealed = locked.values().filter(|row| row.lease.status == SegmentStatus::Sealed);
    let ids: Vec<_> = sealed.map(|row| row.id).filter(|id| !owners.contains(id)).map(|id| id.0).collect();
    let delete = "
        DELETE FROM ingest_segments AS s WHERE segment_id = ANY($1)
          AND NOT EXISTS (SELECT 1 FROM ingest_exceptions AS e WHERE e.segment_id = s.segment_id)";
    db.execute(delete, &[(&ids, Type::INT8_ARRAY)]).await?;
    Ok(())
}

async fn close(db: &Db, stream: &StreamId, now: Timestamp, entries: &mut Vec<LedgerEntry>) -> Sql<Vec<BlindWindow>> {
    let (row, windows) =
        try_join(streams::read(db, stream, ""), windows::unclosed(db, stream, "FOR UPDATE OF w SKIP LOCKED")).await?;
    let covered: Vec<_> = windows.into_iter().filter(|window| window.is_covered(row.frontier)).collect();
    let ids: Vec<_> = covered.iter().map(|row| row.window.id.0).collect();
    if !ids.is_empty() {
        windows::close(db, &ids, now).await?;
    }
    entries.extend(covered.iter().map(|row| row.closed_entry(stream, now)));
    Ok(covered.into_iter().map(|row| row.closed(now)).collect())
}
