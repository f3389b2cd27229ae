//! Ending passes whose segments are done, removing those segments, and closing windows that are covered.

use highwater_core::{BlindWindow, Key, Rescan, RescanId, RescanReason, SegmentId, StreamId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::{error::Sql, rescans, session::Session, streams, windows};
use crate::{
    LiveSettled,
    rules::{ENDED_AT_ONCE, rescan_entry},
};

pub(super) fn settle(session: &mut Session, stream: &StreamId, now: Timestamp) -> Sql<LiveSettled> {
    lay_on(&session.db, stream)?;
    let rescans = seal(session, stream, now)?;
    tidy(&session.db, stream)?;
    let windows = close(session, stream, now)?;
    Ok(LiveSettled { rescans, windows })
}

/// Goes on with passes whose laying was broken off.
fn lay_on(db: &Connection, stream: &StreamId) -> Sql<()> {
    let mut select = db.prepare_cached(
        "SELECT rescan_id FROM ingest_rescans
         WHERE source = ?1 AND stream = ?2 AND sealed_at IS NULL AND laid_pos < end_pos ORDER BY rescan_id LIMIT 1",
    )?;
    let names = [stream.source.as_str(), stream.stream.as_str()];
    if let Some(id) = select.query_row(names, |row| row.get(0).map(RescanId)).optional()? {
        rescans::lay(db, stream, id)?;
    }
    Ok(())
}

fn seal(session: &mut Session, stream: &StreamId, now: Timestamp) -> Sql<Vec<Rescan>> {
    let mut sealed = Vec::new();
    for mut rescan in done(&session.db, stream)? {
        (rescan.items, rescan.changed) = sums(&session.db, rescan.id)?;
        rescan.sealed_at = Some(now);
        put_sealed(&session.db, &rescan, now)?;
        if rescan.reason != RescanReason::Key {
            session.append(&rescan_entry(stream, &rescan, now))?;
            sealed.push(rescan);
        }
    }
    Ok(sealed)
}

/// Passes that have nothing left to do.
fn done(db: &Connection, stream: &StreamId) -> Sql<Vec<Rescan>> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {} FROM ingest_rescans AS r
         WHERE source = ?1 AND stream = ?2 AND sealed_at IS NULL AND laid_pos >= end_pos AND NOT EXISTS (
             SELECT 1 FROM ingest_segments AS s
             WHERE s.rescan_id = r.rescan_id AND s.status IN ('pending', 'in_progress', 'retry_wait'))
         ORDER BY rescan_id LIMIT ?3",
        rescans::COLUMNS
    ))?;
    let rows = select.query(params![stream.source.as_str(), stream.stream.as_str(), ENDED_AT_ONCE])?;
    Ok(rescans::collect(rows)?.into_iter().map(|pass| pass.rescan).collect())
}

/// Objects that were looked at, and how many differed. A commit that is brought again counts again in its segment, which
/// has no more objects than positions.
fn sums(db: &Connection, id: RescanId) -> Sql<(u64, u64)> {
    let mut select = db.prepare_cached(
        "SELECT COALESCE(sum(min(seen_count, end_pos - start_pos)), 0), COALESCE(sum(changed_count), 0)
         FROM ingest_segments WHERE rescan_id = ?1",
    )?;
    let sums = select.query_row([id.0], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    Ok((sums.0.cast_unsigned(), sums.1.cast_unsigned()))
}

fn put_sealed(db: &Connection, rescan: &Rescan, now: Timestamp) -> Sql<()> {
    db.prepare_cached("UPDATE ingest_rescans SET sealed_at = ?1, items = ?2, changed = ?3 WHERE rescan_id = ?4")?
        .execute([now.as_millis(), rescan.items.cast_signed(), rescan.changed.cast_signed(), rescan.id.0])?;
    Ok(())
}

/// Removes segments of ended passes, and passes over single keys. The youngest row of a table stays: its number would
/// be given to another, and whoever still holds a lease on the old one would hold the new one, too.
fn tidy(db: &Connection, stream: &StreamId) -> Sql<()> {
    for id in ended(db, stream)? {
        for (key, position) in absences(db, id)? {
            hand_over(db, stream, &key, position)?;
        }
        db.prepare_cached(
            "DELETE FROM ingest_segments WHERE segment_id = ?1
               AND NOT EXISTS (SELECT 1 FROM ingest_exceptions WHERE segment_id = ?1)",
        )?
        .execute([id.0])?;
    }
    db.prepare_cached(
        "DELETE FROM ingest_rescans WHERE source = ?1 AND stream = ?2 AND reason = ?3 AND sealed_at IS NOT NULL
           AND rescan_id < (SELECT max(rescan_id) FROM ingest_rescans)",
    )?
    .execute([stream.source.as_str(), stream.stream.as_str(), RescanReason::Key.as_str()])?;
    Ok(())
}

/// Sealed segments of ended passes that nothing unsettled refers to.
fn ended(db: &Connection, stream: &StreamId) -> Sql<Vec<SegmentId>> {
    let mut select = db.prepare_cached(
        "SELECT segment_id FROM ingest_segments AS s
         WHERE source = ?1 AND stream = ?2 AND rescan_id IS NOT NULL AND status = 'sealed'
           AND segment_id < (SELECT max(segment_id) FROM ingest_segments)
           AND NOT EXISTS (SELECT 1 FROM ingest_rescans AS r WHERE r.rescan_id = s.rescan_id AND r.sealed_at IS NULL)
           AND NOT EXISTS (SELECT 1 FROM ingest_exceptions AS e
                           WHERE e.segment_id = s.segment_id AND e.state IN ('retry_wait', 'dead_letter'))
         ORDER BY segment_id LIMIT ?3",
    )?;
    let names = params![stream.source.as_str(), stream.stream.as_str(), ENDED_AT_ONCE];
    Ok(select.query_map(names, |row| row.get(0).map(SegmentId))?.collect::<Result<_, _>>()?)
}

/// The keys that a segment found absent or left out, and where they lie: by the list of names, if they are names.
fn absences(db: &Connection, id: SegmentId) -> Sql<Vec<(Key, i64)>> {
    let mut select = db.prepare_cached(
        "SELECT item_key, COALESCE(n.seq, e.item_number) FROM ingest_exceptions AS e
         LEFT JOIN ingest_names AS n ON n.source = e.source AND n.stream = e.stream AND n.name = e.item_key
         WHERE segment_id = ?1 AND COALESCE(n.seq, e.item_number) IS NOT NULL",
    )?;
    let rows = select.query_map([id.0], |row| Ok((Key::from(row.get::<_, String>(0)?.as_str()), row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// From now on the key is the business of the catch-up segment that covers it, if there is one.
fn hand_over(db: &Connection, stream: &StreamId, key: &Key, position: i64) -> Sql<()> {
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let mut covering = db.prepare_cached(
        "SELECT segment_id FROM ingest_segments
         WHERE source = ?1 AND stream = ?2 AND purpose = 'catchup' AND start_pos <= ?3 AND end_pos > ?3
         ORDER BY start_pos DESC LIMIT 1",
    )?;
    let owner: Option<i64> = covering.query_row(params![source, name, position], |row| row.get(0)).optional()?;
    if let Some(owner) = owner {
        db.prepare_cached(
            "UPDATE ingest_exceptions SET segment_id = ?4 WHERE source = ?1 AND stream = ?2 AND item_key = ?3",
        )?
        .execute(params![source, name, key.to_string(), owner])?;
    }
    Ok(())
}

fn close(session: &mut Session, stream: &StreamId, now: Timestamp) -> Sql<Vec<BlindWindow>> {
    let frontier = streams::read(&session.db, stream)?.frontier;
    let mut closed = Vec::new();
    for row in windows::unclosed(&session.db, stream)?.into_iter().filter(|row| row.is_covered(frontier)) {
        windows::close(&session.db, row.window.id, now)?;
        session.append(&row.closed_entry(stream, now))?;
        closed.push(row.closed(now));
    }
    Ok(closed)
}
