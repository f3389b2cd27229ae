//! The row of an account and the processes that share it. One process writes a file, so it is alone but for readers;
//! what it knows outlives it.

use highwater_core::{
    Account, AccountView, Closed, Pause, SourceName, Timestamp, WorkerId,
    throttle::{Learned, PauseReason},
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    error::Sql,
    segments::{time, word},
};
use crate::{SHARE_LASTS, ShareAsk, WorkerRow};

pub(super) fn share(db: &Connection, ask: &ShareAsk) -> Sql<AccountView> {
    let mut account = read(db, &ask.source)?.unwrap_or_default();
    account.hear(&ask.report, ask.now);
    // One process writes a file: whoever else is listed is dead.
    db.prepare_cached("DELETE FROM ingest_workers WHERE source = ?1 AND worker_id <> ?2")?
        .execute([ask.source.as_str(), ask.worker.as_str()])?;
    let view = account.view(&ask.report, &[], ask.now);
    put(db, &ask.source, &account)?;
    put_worker(db, ask, view.share)?;
    Ok(view)
}

pub(super) fn leave(db: &Connection, worker: &WorkerId) -> Sql<()> {
    db.prepare_cached("DELETE FROM ingest_workers WHERE worker_id = ?1")?.execute([worker.as_str()])?;
    Ok(())
}

pub(super) fn workers(db: &Connection, source: &SourceName, now: Timestamp) -> Sql<Vec<WorkerRow>> {
    let mut select = db.prepare_cached(
        "SELECT worker_id, host, pid, started_at, share, rate,
            (SELECT count(*) FROM ingest_segments AS s
             WHERE s.source = w.source AND s.status = 'in_progress' AND s.lease_owner = w.worker_id)
         FROM ingest_workers AS w WHERE source = ?1 AND beat_at > ?2 ORDER BY started_at, worker_id",
    )?;
    let rows = select.query_map(params![source.as_str(), dead_before(now)], |row| {
        Ok(WorkerRow {
            worker: WorkerId::new(&row.get::<_, String>(0)?),
            host: row.get(1)?,
            pid: row.get(2)?,
            started_at: Timestamp::from_millis(row.get(3)?),
            share: row.get(4)?,
            rate: row.get(5)?,
            segments: row.get::<_, i64>(6)?.cast_unsigned(),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn pause(db: &Connection, source: &SourceName, now: Timestamp) -> Sql<Option<Pause>> {
    Ok(read(db, source)?.and_then(|account| account.pause(now)))
}

fn dead_before(now: Timestamp) -> i64 {
    now.as_millis() - SHARE_LASTS.as_millis() as i64
}

fn read(db: &Connection, source: &SourceName) -> Sql<Option<Account>> {
    let mut select = db.prepare_cached(
        "SELECT rate, ceiling, cuts, cut_at, gate_until, gate_reason, updated_at
         FROM ingest_accounts WHERE source = ?1",
    )?;
    select.query_row([source.as_str()], |row| Ok(account_of(row))).optional()?.transpose()
}

fn account_of(row: &Row<'_>) -> Sql<Account> {
    let ceiling = row.get(1)?;
    let closed = match time(row, 4)? {
        Some(until) => Some(Closed { until, reason: word::<PauseReason>(row, 5)? }),
        None => None,
    };
    Ok(Account {
        cuts: row.get::<_, i64>(2)?.cast_unsigned(),
        cut_at: time(row, 3)?,
        closed,
        learned: row.get::<_, Option<f64>>(0)?.map(|rate| Learned { rate, ceiling }),
        heard_at: time(row, 6)?,
    })
}

fn put(db: &Connection, source: &SourceName, account: &Account) -> Sql<()> {
    let Account { cuts, cut_at, closed, learned, heard_at } = account;
    db.prepare_cached(
        "INSERT INTO ingest_accounts (source, rate, ceiling, cuts, cut_at, gate_until, gate_reason, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (source) DO UPDATE SET rate = ?2, ceiling = ?3, cuts = ?4, cut_at = ?5, gate_until = ?6,
            gate_reason = ?7, updated_at = ?8",
    )?
    .execute(params![
        source.as_str(),
        learned.map(|learned| learned.rate),
        learned.and_then(|learned| learned.ceiling),
        cuts.cast_signed(),
        cut_at.map(Timestamp::as_millis),
        closed.map(|closed| closed.until.as_millis()),
        closed.map(|closed| closed.reason.as_str()),
        heard_at.map(Timestamp::as_millis),
    ])?;
    Ok(())
}

fn put_worker(db: &Connection, ask: &ShareAsk, share: f64) -> Sql<()> {
    db.prepare_cached(
        "INSERT INTO ingest_workers (worker_id, source, host, pid, started_at, beat_at, share, demand, rate)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT (worker_id) DO UPDATE SET beat_at = ?6, share = ?7, demand = ?8, rate = ?9",
    )?
    .execute(params![
        ask.worker.as_str(),
        ask.source.as_str(),
        ask.host,
        ask.pid,
        ask.started_at.as_millis(),
        ask.now.as_millis(),
        share,
        ask.report.demand,
        ask.report.rate,
    ])?;
    Ok(())
}
