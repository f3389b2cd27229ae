//! The record of runs.

use highwater_core::{SourceName, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::{error::Sql, session::Session};
use crate::{Download, DownloadNote, RunEnd, RunOutcome, RunStart, rules::CLOCKS_DIFFER};

pub(super) fn begin(db: &Connection, run: &RunStart) -> Sql<()> {
    db.execute(
        "INSERT INTO ingest_runs (run_id, source, command, started_at, worker_count, outcome)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (run_id) DO NOTHING",
        params![
            run.id,
            run.source.as_str(),
            run.command,
            run.at.as_millis(),
            run.workers,
            RunOutcome::Running.as_str()
        ],
    )?;
    wake_the_late(db, run)
}

fn wake_the_late(db: &Connection, run: &RunStart) -> Sql<()> {
    let future = (run.at + CLOCKS_DIFFER).as_millis();
    let params = params![run.source.as_str(), run.at.as_millis(), future];
    let late = "source = ?1 AND state = 'retry_wait' AND last_tried_at > ?3";
    db.execute(
        &format!(
            "UPDATE ingest_segments SET next_retry_at = ?2
             WHERE status = 'retry_wait' AND segment_id IN (SELECT segment_id FROM ingest_exceptions WHERE {late})"
        ),
        params,
    )?;
    db.execute(&format!("UPDATE ingest_exceptions SET next_retry_at = ?2 WHERE {late}"), params)?;
    Ok(())
}

pub(super) fn end(session: &mut Session, run: &RunEnd) -> Sql<()> {
    if note_end(&session.db, run)? {
        session.append(&run.entry())?;
    }
    Ok(())
}

/// Whether this is the first time that it is noted.
fn note_end(db: &Connection, run: &RunEnd) -> Sql<bool> {
    let started = db
        .query_row("SELECT started_at FROM ingest_runs WHERE run_id = ?1", [&run.id], |row| row.get(0))
        .optional()?
        .map(Timestamp::from_millis);
    let seconds = started.map(|started| run.at.since(started).as_secs_f64()).filter(|seconds| *seconds > 0.0);
    let noted = db.execute(
        "UPDATE ingest_runs SET ended_at = ?2, items = ?3, requests = ?4, outcome = ?5,
            throughput_items_per_second = ?6, errors = ?7, items_by_type = ?8, calls = ?9
         WHERE run_id = ?1 AND outcome = 'running'",
        params![
            run.id,
            run.at.as_millis(),
            run.items.cast_signed(),
            run.requests.cast_signed(),
            run.outcome.as_str(),
            seconds.map(|seconds| run.items as f64 / seconds),
            run.tallies.errors.cast_signed(),
            run.tallies.items_json(),
            run.tallies.calls_json(),
        ],
    )?;
    Ok(noted == 1)
}

pub(super) fn note_requests(db: &Connection, run: &str, requests: u64) -> Sql<()> {
    db.execute(
        "UPDATE ingest_runs SET requests = ?2 WHERE run_id = ?1 AND outcome = 'running'",
        params![run, requests.cast_signed()],
    )?;
    Ok(())
}

pub(super) fn requests_since(db: &Connection, source: &SourceName, since: Timestamp) -> Sql<u64> {
    let sum: i64 = db.query_row(
        "SELECT COALESCE(sum(requests), 0) FROM ingest_runs WHERE source = ?1 AND started_at >= ?2",
        params![source.as_str(), since.as_millis()],
        |row| row.get(0),
    )?;
    Ok(sum.cast_unsigned())
}

pub(super) fn note_downloads(db: &Connection, note: &DownloadNote) -> Sql<()> {
    let source = note.source.as_str();
    let mut insert = db.prepare_cached(
        "INSERT INTO ingest_downloads (source, hour, run_id, bytes) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (source, hour, run_id) DO UPDATE SET bytes = max(bytes, excluded.bytes)",
    )?;
    for (hour, bytes) in note.downloads.hours() {
        insert.execute(params![source, hour.as_millis(), note.run, bytes.cast_signed()])?;
    }
    db.prepare_cached("DELETE FROM ingest_downloads WHERE source = ?1 AND hour < ?2")?
        .execute(params![source, note.kept_since().as_millis()])?;
    Ok(())
}

pub(super) fn downloads_since(db: &Connection, source: &SourceName, since: Timestamp) -> Sql<Vec<Download>> {
    let mut select = db.prepare_cached(
        "SELECT run_id, hour, bytes FROM ingest_downloads WHERE source = ?1 AND hour >= ?2 ORDER BY hour, run_id",
    )?;
    let rows = select.query_map(params![source.as_str(), since.as_millis()], |row| {
        let (hour, bytes): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok(Download { run: row.get(0)?, hour: Timestamp::from_millis(hour), bytes: bytes.cast_unsigned() })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Runs that never came to their end.
pub(super) fn recover(db: &Connection) -> Sql<()> {
    db.execute(
        "UPDATE ingest_runs SET outcome = ?1 WHERE outcome = ?2",
        [RunOutcome::Failed.as_str(), RunOutcome::Running.as_str()],
    )?;
    Ok(())
}
