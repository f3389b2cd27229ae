//! Rows of windows in which nobody listened: opened, ended, looked through. Closing them is `ending`'s.

use futures_util::future::{try_join, try_join3};
use highwater_core::{BlindWindow, Key, Position, RescanId, Span, StreamId, Timestamp, WindowId};
use tokio_postgres::{Row, types::Type};

use super::{
    cells::{Time, time, time_at},
    error::{Fault, Sql},
    ledger,
    link::Db,
    rescans, roles, streams,
};
use crate::{
    EndWindow, Heard, NewWindow,
    rules::{Pass, WindowRow, told_keys, told_text},
};

/// Never back: what was stored stays stored.
pub(super) async fn heard(db: &Db, heard: &Heard) -> Sql<()> {
    try_join(db.begin(), roles::check(db, &heard.stream.source, &heard.worker)).await?;
    let (_, before) = try_join(streams::lock(db, &heard.stream), streams::live_cursor(db, &heard.stream)).await?;
    let until = heard.until.as_millis();
    if before.is_none_or(|before| before < until) {
        streams::set_live_cursor(db, &heard.stream, until).await?;
    }
    let (names, texts): (Vec<&str>, Vec<String>) =
        heard.told.iter().map(|(stream, keys)| (stream.as_str(), told_text(keys))).unzip();
    let upsert = "
        INSERT INTO ingest_told AS t (source, stream, item_keys)
        SELECT $1, stream, item_keys FROM UNNEST($2, $3) AS new (stream, item_keys)
        ON CONFLICT (source, stream) DO UPDATE SET item_keys = excluded.item_keys
        WHERE t.item_keys <> excluded.item_keys";
    let params = [
        (&heard.stream.source.as_str() as _, Type::TEXT),
        (&names as _, Type::TEXT_ARRAY),
        (&texts as _, Type::TEXT_ARRAY),
    ];
    try_join(db.execute(upsert, &params), db.commit()).await?;
    Ok(())
}

pub(super) async fn told(db: &Db, stream: &StreamId) -> Sql<Vec<Key>> {
    let select = "SELECT item_keys FROM ingest_told WHERE source = $1 AND stream = $2";
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let params = [(&source as _, Type::TEXT), (&name as _, Type::TEXT)];
    let ((), rows, ()) = try_join3(db.begin(), db.query(select, &params), db.commit()).await?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    told_keys(row.try_get(0)?).map_err(Fault::nonsense)
}

pub(super) async fn open(db: &Db, window: &NewWindow) -> Sql<WindowId> {
    try_join(db.begin(), roles::check(db, &window.stream.source, &window.worker)).await?;
    // Whoever opens one holds the stream's row.
    let (_, open) = try_join(streams::lock(db, &window.stream), find_open(db, window)).await?;
    let id = match open {
        Some(id) => id,
        None => {
            let id = insert(db, window).await?;
            ledger::append(db, &[window.entry(id)]).await?;
            id
        }
    };
    db.commit().await?;
    Ok(id)
}

async fn find_open(db: &Db, window: &NewWindow) -> Sql<Option<WindowId>> {
    let update = "
        UPDATE ingest_blind_windows SET opened_at = LEAST(opened_at, $3)
        WHERE source = $1 AND stream = $2 AND ended_at IS NULL RETURNING window_id";
    let params = [
        (&window.stream.source.as_str() as _, Type::TEXT),
        (&window.stream.stream.as_str() as _, Type::TEXT),
        (&Time(window.opened_at) as _, Type::TIMESTAMPTZ),
    ];
    Ok(db.query(update, &params).await?.first().map(|row| row.try_get(0)).transpose()?.map(WindowId))
}

async fn insert(db: &Db, window: &NewWindow) -> Sql<WindowId> {
    let insert = "INSERT INTO ingest_blind_windows (source, stream, opened_at, reason) VALUES ($1, $2, $3, $4)
                  RETURNING window_id";
    let params = [
        (&window.stream.source.as_str() as _, Type::TEXT),
        (&window.stream.stream.as_str() as _, Type::TEXT),
        (&Time(window.opened_at) as _, Type::TIMESTAMPTZ),
        (&window.reason as _, Type::TEXT),
    ];
    Ok(WindowId(db.query(insert, &params).await?[0].try_get(0)?))
}

/// The pass that covers the window, as far as it is laid.
pub(super) async fn end(db: &Db, end: &EndWindow) -> Sql<Pass> {
    try_join(db.begin(), roles::check(db, &end.rescan.stream.source, &end.worker)).await?;
    let window = lock(db, end.window).await?.window;
    if let Some(rescan) = window.rescan {
        let (pass, ()) = try_join(rescans::lock(db, rescan), db.commit()).await?;
        return Ok(pass);
    }
    let span = streams::read(db, &end.rescan.stream, "").await?.span;
    let pass = rescans::begin_blind(db, &end.rescan, span).await?;
    let update = "UPDATE ingest_blind_windows SET ended_at = $1, head = $2, rescan_id = $3 WHERE window_id = $4";
    let params = [
        (&Time(end.ended_at) as _, Type::TIMESTAMPTZ),
        (&end.head.0 as _, Type::INT8),
        (&pass.rescan.id.0 as _, Type::INT8),
        (&end.window.0 as _, Type::INT8),
    ];
    db.execute(update, &params).await?;
    ledger::append(db, &[end.entry(window.opened_at, &pass)]).await?;
    db.commit().await?;
    Ok(pass)
}

pub(super) async fn names_done(db: &Db, window: WindowId, now: Timestamp) -> Sql<()> {
    let update = "UPDATE ingest_blind_windows SET names_at = $1 WHERE window_id = $2 AND names_at IS NULL";
    let params = [(&Time(now) as _, Type::TIMESTAMPTZ), (&window.0 as _, Type::INT8)];
    try_join3(db.begin(), db.execute(update, &params), db.commit()).await?;
    Ok(())
}

const SELECT: &str =
    "SELECT window_id, opened_at, w.reason, ended_at, head, w.rescan_id, start_pos, end_pos, names_at, closed_at,
        sealed_at
     FROM ingest_blind_windows AS w LEFT JOIN ingest_rescans AS r ON r.rescan_id = w.rescan_id";

fn row_of(row: &Row) -> Sql<WindowRow> {
    let window = BlindWindow {
        id: WindowId(row.try_get(0)?),
        opened_at: time_at(row, 1)?,
        reason: row.try_get(2)?,
        ended_at: time(row, 3)?,
        head: row.try_get::<_, Option<i64>>(4)?.map(Position),
        rescan: row.try_get::<_, Option<i64>>(5)?.map(RescanId),
        span: row
            .try_get::<_, Option<i64>>(6)?
            .zip(row.try_get(7)?)
            .map(|(start, end)| Span::new(Position(start), Position(end))),
        names_at: time(row, 8)?,
        closed_at: time(row, 9)?,
    };
    Ok(WindowRow { window, rescan_sealed_at: time(row, 10)? })
}

async fn lock(db: &Db, id: WindowId) -> Sql<WindowRow> {
    let select = format!("{SELECT} WHERE window_id = $1 FOR UPDATE OF w");
    match db.query(&select, &[(&id.0, Type::INT8)]).await?.first() {
        Some(row) => row_of(row),
        None => Err(Fault::refused(format!("there is no window {id}"))),
    }
}

/// Those that are not closed, the eldest first. `lock` is a clause that locks the rows, or empty.
pub(super) async fn unclosed(db: &Db, stream: &StreamId, lock: &str) -> Sql<Vec<WindowRow>> {
    let select =
        format!("{SELECT} WHERE w.source = $1 AND w.stream = $2 AND closed_at IS NULL ORDER BY window_id {lock}");
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let rows = db.query(&select, &[(&source, Type::TEXT), (&name, Type::TEXT)]).await?;
    rows.iter().map(row_of).collect()
}

pub(super) async fn close(db: &Db, ids: &[i64], now: Timestamp) -> Sql<()> {
    let update = "UPDATE ingest_blind_windows SET closed_at = $1 WHERE window_id = ANY($2)";
    db.execute(update, &[(&Time(now), Type::TIMESTAMPTZ), (&ids, Type::INT8_ARRAY)]).await?;
    Ok(())
}
