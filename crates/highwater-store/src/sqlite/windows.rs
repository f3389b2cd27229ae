//! Rows of windows in which nobody listened: opened, ended, looked through. Closing them is `ending`'s.

use highwater_core::{BlindWindow, Key, Position, RescanId, Span, StreamId, Timestamp, WindowId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    error::{Fault, Sql},
    rescans, roles,
    segments::time,
    session::Session,
    streams,
};
use crate::{
    EndWindow, Heard, NewWindow,
    rules::{Pass, WindowRow, told_keys, told_text},
};

/// Never back: what was stored stays stored.
pub(super) fn heard(db: &Connection, heard: &Heard) -> Sql<()> {
    roles::check(db, &heard.stream.source, &heard.worker)?;
    streams::read(db, &heard.stream)?;
    let until = heard.until.as_millis();
    if streams::live_cursor(db, &heard.stream)?.is_none_or(|before| before < until) {
        streams::set_live_cursor(db, &heard.stream, until)?;
    }
    for (stream, keys) in &heard.told {
        db.prepare_cached(
            "INSERT INTO ingest_told (source, stream, item_keys) VALUES (?1, ?2, ?3)
             ON CONFLICT (source, stream) DO UPDATE SET item_keys = excluded.item_keys
             WHERE item_keys <> excluded.item_keys",
        )?
        .execute(params![heard.stream.source.as_str(), stream.as_str(), told_text(keys)])?;
    }
    Ok(())
}

pub(super) fn told(db: &Connection, stream: &StreamId) -> Sql<Vec<Key>> {
    let mut select = db.prepare_cached("SELECT item_keys FROM ingest_told WHERE source = ?1 AND stream = ?2")?;
    let names = [stream.source.as_str(), stream.stream.as_str()];
    let text: Option<String> = select.query_row(names, |row| row.get(0)).optional()?;
    text.map_or(Ok(Vec::new()), |text| told_keys(&text).map_err(Fault::nonsense))
}

pub(super) fn open(session: &mut Session, window: &NewWindow) -> Sql<WindowId> {
    roles::check(&session.db, &window.stream.source, &window.worker)?;
    streams::read(&session.db, &window.stream)?;
    let (source, stream) = (window.stream.source.as_str(), window.stream.stream.as_str());
    let mut earlier = session.db.prepare_cached(
        "UPDATE ingest_blind_windows SET opened_at = min(opened_at, ?3)
         WHERE source = ?1 AND stream = ?2 AND ended_at IS NULL RETURNING window_id",
    )?;
    let opened_at = window.opened_at.as_millis();
    let open = earlier.query_row(params![source, stream, opened_at], |row| row.get(0).map(WindowId)).optional()?;
    drop(earlier);
    if let Some(open) = open {
        return Ok(open);
    }
    let insert = "INSERT INTO ingest_blind_windows (source, stream, opened_at, reason) VALUES (?1, ?2, ?3, ?4)
                  RETURNING window_id";
    let id = session.db.query_row(insert, params![source, stream, opened_at, window.reason], |row| row.get(0))?;
    session.append(&window.entry(WindowId(id)))?;
    Ok(WindowId(id))
}

/// The pass that covers the window, as far as it is laid.
pub(super) fn end(session: &mut Session, end: &EndWindow) -> Sql<Pass> {
    roles::check(&session.db, &end.rescan.stream.source, &end.worker)?;
    let window = read(&session.db, end.window)?.window;
    if let Some(rescan) = window.rescan {
        return rescans::read(&session.db, rescan);
    }
    let pass = rescans::begin_blind(&session.db, &end.rescan)?;
    session
        .db
        .prepare_cached(
            "UPDATE ingest_blind_windows SET ended_at = ?1, head = ?2, rescan_id = ?3 WHERE window_id = ?4",
        )?
        .execute([end.ended_at.as_millis(), end.head.0, pass.rescan.id.0, end.window.0])?;
    session.append(&end.entry(window.opened_at, &pass))?;
    Ok(pass)
}

pub(super) fn names_done(db: &Connection, window: WindowId, now: Timestamp) -> Sql<()> {
    db.prepare_cached("UPDATE ingest_blind_windows SET names_at = ?1 WHERE window_id = ?2 AND names_at IS NULL")?
        .execute([now.as_millis(), window.0])?;
    Ok(())
}

const SELECT: &str =
    "SELECT window_id, opened_at, w.reason, ended_at, head, w.rescan_id, start_pos, end_pos, names_at, closed_at,
        sealed_at
     FROM ingest_blind_windows AS w LEFT JOIN ingest_rescans AS r ON r.rescan_id = w.rescan_id";

fn row_of(row: &Row<'_>) -> rusqlite::Result<WindowRow> {
    let window = BlindWindow {
        id: WindowId(row.get(0)?),
        opened_at: Timestamp::from_millis(row.get(1)?),
        reason: row.get(2)?,
        ended_at: time(row, 3)?,
        head: row.get::<_, Option<i64>>(4)?.map(Position),
        rescan: row.get::<_, Option<i64>>(5)?.map(RescanId),
        span: row
            .get::<_, Option<i64>>(6)?
            .zip(row.get(7)?)
            .map(|(start, end)| Span::new(Position(start), Position(end))),
        names_at: time(row, 8)?,
        closed_at: time(row, 9)?,
    };
    Ok(WindowRow { window, rescan_sealed_at: time(row, 10)? })
}

fn read(db: &Connection, id: WindowId) -> Sql<WindowRow> {
    let mut select = db.prepare_cached(&format!("{SELECT} WHERE window_id = ?1"))?;
    let window = select.query_row([id.0], row_of).optional()?;
    window.ok_or_else(|| Fault::refused(format!("there is no window {id}")))
}

/// Those that are not closed, the eldest first.
pub(super) fn unclosed(db: &Connection, stream: &StreamId) -> Sql<Vec<WindowRow>> {
    let mut select = db.prepare_cached(&format!(
        "{SELECT} WHERE w.source = ?1 AND w.stream = ?2 AND closed_at IS NULL ORDER BY window_id"
    ))?;
    let rows = select.query_map([stream.source.as_str(), stream.stream.as_str()], row_of)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn close(db: &Connection, id: WindowId, now: Timestamp) -> Sql<()> {
    db.prepare_cached("UPDATE ingest_blind_windows SET closed_at = ?1 WHERE window_id = ?2")?
        .execute([now.as_millis(), id.0])?;
    Ok(())
}
