//! The record of runs.

use futures_util::future::{try_join, try_join3, try_join4};
use highwater_core::{SourceName, Timestamp};
use tokio_postgres::{Row, types::Type};

use super::{
    cells::{Time, time_at},
    error::Sql,
    ledger,
    link::Db,
};
use crate::{Download, DownloadNote, RunEnd, RunOutcome, RunStart, rules::CLOCKS_DIFFER};

pub(super) async fn begin(db: &Db, run: &RunStart) -> Sql<()> {
    let insert = "INSERT INTO ingest_runs (run_id, source, command, started_at, worker_count, outcome)
                  VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (run_id) DO NOTHING";
    let params = [
        (&run.id as _, Type::TEXT),
        (&run.source.as_str() as _, Type::TEXT),
        (&run.command as _, Type::TEXT),
        (&Time(run.at) as _, Type::TIMESTAMPTZ),
        (&i64::from(run.workers) as _, Type::INT8),
        (&RunOutcome::Running.as_str() as _, Type::TEXT),
    ];
    try_join3(db.begin(), db.execute(insert, &params), wake_the_late(db, run)).await?;
    db.commit().await
}

async fn wake_the_late(db: &Db, run: &RunStart) -> Sql<()> {
    let params = [
        (&run.source.as_str() as _, Type::TEXT),
        (&Time(run.at) as _, Type::TIMESTAMPTZ),
        (&Time(run.at + CLOCKS_DIFFER) as _, Type::TIMESTAMPTZ),
    ];
    let late = "source = $1 AND state = 'retry_wait' AND last_tried_at > $3";
    let segments = format!(
        "UPDATE ingest_segments SET next_retry_at = $2
         WHERE status = 'retry_wait' AND segment_id IN (SELECT segment_id FROM ingest_exceptions WHERE {late})"
    );
    let exceptions = format!("UPDATE ingest_exceptions SET next_retry_at = $2 WHERE {late}");
    db.execute(&segments, &params).await?;
    db.execute(&exceptions, &params).await?;
    Ok(())
}

pub(super) async fn end(db: &Db, run: &RunEnd) -> Sql<()> {
    let update = "
        UPDATE ingest_runs SET ended_at = $2, items = $3, requests = $4, outcome = $5, throughput_items_per_second =
            CASE WHEN $2 > started_at THEN $3::double precision / EXTRACT(EPOCH FROM $2 - started_at)::double precision END,
            errors = $6, items_by_type = $7::text::jsonb, calls = $8::text::jsonb
        WHERE run_id = $1 AND outcome = 'running'";
    let params = [
        (&run.id as _, Type::TEXT),
        (&Time(run.at) as _, Type::TIMESTAMPTZ),
        (&run.items.cast_signed() as _, Type::INT8),
        (&run.requests.cast_signed() as _, Type::INT8),
        (&run.outcome.as_str() as _, Type::TEXT),
        (&run.tallies.errors.cast_signed() as _, Type::INT8),
        (&run.tallies.items_json() as _, Type::TEXT),
        (&run.tallies.calls_json() as _, Type::TEXT),
    ];
    let ((), noted) = try_join(db.begin(), db.execute(update, &params)).await?;
    if noted == 1 {
        ledger::append(db, &[run.entry()]).await?;
    }
    db.commit().await
}

pub(super) async fn note_requests(db: &Db, run: &str, requests: u64) -> Sql<()> {
    let update = "UPDATE ingest_runs SET requests = $2 WHERE run_id = $1 AND outcome = 'running'";
    let params = [(&run as _, Type::TEXT), (&requests.cast_signed() as _, Type::INT8)];
    try_join3(db.begin(), db.execute(update, &params), db.commit()).await?;
    Ok(())
}

pub(super) async fn requests_since(db: &Db, source: &SourceName, since: Timestamp) -> Sql<u64> {
    let select = "SELECT COALESCE(sum(requests), 0)::bigint FROM ingest_runs WHERE source = $1 AND started_at >= $2";
    let params = [(&source.as_str() as _, Type::TEXT), (&Time(since) as _, Type::TIMESTAMPTZ)];
    let ((), rows, ()) = try_join3(db.begin(), db.query(select, &params), db.commit()).await?;
    let sum: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    Ok(sum.cast_unsigned())
}

pub(super) async fn note_downloads(db: &Db, note: &DownloadNote) -> Sql<()> {
    let upsert = "
        INSERT INTO ingest_downloads AS d (source, hour, run_id, bytes)
        SELECT $1, hour, $2, bytes FROM UNNEST($3, $4) AS new (hour, bytes)
        ON CONFLICT (source, hour, run_id) DO UPDATE SET bytes = greatest(d.bytes, excluded.bytes)";
    let (hours, bytes): (Vec<Time>, Vec<i64>) =
        note.downloads.hours().map(|(hour, bytes)| (Time(hour), bytes.cast_signed())).unzip();
    let noted = [
        (&note.source.as_str() as _, Type::TEXT),
        (&note.run as _, Type::TEXT),
        (&hours as _, Type::TIMESTAMPTZ_ARRAY),
        (&bytes as _, Type::INT8_ARRAY),
    ];
    let delete = "DELETE FROM ingest_downloads WHERE source = $1 AND hour < $2";
    let old = [(&note.source.as_str() as _, Type::TEXT), (&Time(note.kept_since()) as _, Type::TIMESTAMPTZ)];
    try_join4(db.begin(), db.execute(upsert, &noted), db.execute(delete, &old), db.commit()).await?;
    Ok(())
}

pub(super) async fn downloads_since(db: &Db, source: &SourceName, since: Timestamp) -> Sql<Vec<Download>> {
    let select = "SELECT run_id, hour, bytes FROM ingest_downloads
                  WHERE source = $1 AND hour >= $2 ORDER BY hour, run_id";
    let params = [(&source.as_str() as _, Type::TEXT), (&Time(since) as _, Type::TIMESTAMPTZ)];
    let ((), rows, ()) = try_join3(db.begin(), db.query(select, &params), db.commit()).await?;
    rows.iter().map(download).collect()
}

fn download(row: &Row) -> Sql<Download> {
    let bytes: i64 = row.try_get(2)?;
    Ok(Download { run: row.try_get(0)?, hour: time_at(row, 1)?, bytes: bytes.cast_unsigned() })
}
