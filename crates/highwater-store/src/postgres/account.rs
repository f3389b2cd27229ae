//! The row of an account and the processes that share it, by the server's clock. The row is locked first, so that
//! shares are given one after the other.

use futures_util::future::{try_join, try_join3};
use highwater_core::{
    Account, AccountView, Closed, Pause, Sharer, SourceName, Timestamp, WorkerId,
    throttle::{Learned, PauseReason},
};
use tokio_postgres::{Row, types::Type};

use super::{
    cells::{Time, count, time, time_at, word},
    error::Sql,
    link::Db,
};
use crate::{SHARE_LASTS, ShareAsk, WorkerRow};

/// `now` is none for the server's clock.
pub(super) async fn share(db: &Db, ask: &ShareAsk, now: Option<Timestamp>) -> Sql<AccountView> {
    try_join(db.begin(), make(db, &ask.source)).await?;
    let (before, now) = lock(db, &ask.source, now).await?;
    let mut account = before.clone();
    account.hear(&ask.report, now);
    let others = others(db, ask, now).await?;
    let view = account.view(&ask.report, &others, now);
    if account != before {
        put(db, &ask.source, &account).await?;
    }
    try_join(put_worker(db, ask, view.share, now), db.commit()).await?;
    Ok(view)
}

pub(super) async fn leave(db: &Db, worker: &WorkerId) -> Sql<()> {
    let delete = "DELETE FROM ingest_workers WHERE worker_id = $1";
    let name = worker.as_str();
    try_join3(db.begin(), db.execute(delete, &[(&name, Type::TEXT)]), db.commit()).await?;
    Ok(())
}

pub(super) async fn workers(db: &Db, source: &SourceName, now: Option<Timestamp>) -> Sql<Vec<WorkerRow>> {
    let select = "
        SELECT worker_id, host, pid, started_at, share, rate,
            (SELECT count(*) FROM ingest_segments AS s
             WHERE s.source = w.source AND s.status = 'in_progress' AND s.lease_owner = w.worker_id)
        FROM ingest_workers AS w
        WHERE source = $1 AND beat_at > COALESCE($2, clock_timestamp()) - $3 * interval '1 millisecond'
        ORDER BY started_at, worker_id";
    let name = source.as_str();
    let params = [
        (&name as _, Type::TEXT),
        (&now.map(Time) as _, Type::TIMESTAMPTZ),
        (&(SHARE_LASTS.as_secs_f64() * 1e3) as _, Type::FLOAT8),
    ];
    let ((), rows) = try_join(db.begin(), db.query(select, &params)).await?;
    db.commit().await?;
    rows.iter().map(worker_of).collect()
}

pub(super) async fn pause(db: &Db, source: &SourceName, now: Option<Timestamp>) -> Sql<Option<Pause>> {
    let ((), found) = try_join(db.begin(), read(db, source, now, "")).await?;
    db.commit().await?;
    Ok(found.and_then(|(account, now)| account.pause(now)))
}

fn worker_of(row: &Row) -> Sql<WorkerRow> {
    Ok(WorkerRow {
        worker: WorkerId::new(row.try_get(0)?),
        host: row.try_get(1)?,
        pid: u32::try_from(row.try_get::<_, i64>(2)?).unwrap_or_default(),
        started_at: time_at(row, 3)?,
        share: row.try_get(4)?,
        rate: row.try_get(5)?,
        segments: count(row, 6)?,
    })
}

async fn make(db: &Db, source: &SourceName) -> Sql<u64> {
    let insert = "INSERT INTO ingest_accounts (source) VALUES ($1) ON CONFLICT (source) DO NOTHING";
    let name = source.as_str();
    db.execute(insert, &[(&name, Type::TEXT)]).await
}

/// The account, which nobody else changes until the end of the transaction, and the time after that wait.
async fn lock(db: &Db, source: &SourceName, now: Option<Timestamp>) -> Sql<(Account, Timestamp)> {
    let found = read(db, source, now, "FOR NO KEY UPDATE").await?;
    Ok(found.expect("its row was made before it is locked"))
}

async fn read(db: &Db, source: &SourceName, now: Option<Timestamp>, lock: &str) -> Sql<Option<(Account, Timestamp)>> {
    let select = format!(
        "SELECT rate, ceiling, cuts, cut_at, gate_until, gate_reason, updated_at
         FROM ingest_accounts WHERE source = $1 {lock}"
    );
    let name = source.as_str();
    let params = [(&name as _, Type::TEXT)];
    let clock = [(&now.map(Time) as _, Type::TIMESTAMPTZ)];
    let (rows, times) =
        try_join(db.query(&select, &params), db.query("SELECT COALESCE($1, clock_timestamp())", &clock)).await?;
    rows.first().map(|row| Ok((account_of(row)?, time_at(&times[0], 0)?))).transpose()
}

fn account_of(row: &Row) -> Sql<Account> {
    let ceiling = row.try_get(1)?;
    let closed = match time(row, 4)? {
        Some(until) => Some(Closed { until, reason: word::<PauseReason>(row, 5)? }),
        None => None,
    };
    Ok(Account {
        cuts: count(row, 2)?,
        cut_at: time(row, 3)?,
        closed,
        learned: row.try_get::<_, Option<f64>>(0)?.map(|rate| Learned { rate, ceiling }),
        heard_at: time(row, 6)?,
    })
}

async fn put(db: &Db, source: &SourceName, account: &Account) -> Sql<()> {
    let update = "UPDATE ingest_accounts SET rate = $2, ceiling = $3, cuts = $4, cut_at = $5, gate_until = $6,
                      gate_reason = $7, updated_at = $8 WHERE source = $1";
    let Account { cuts, cut_at, closed, learned, heard_at } = account;
    let params = [
        (&source.as_str() as _, Type::TEXT),
        (&learned.map(|learned| learned.rate) as _, Type::FLOAT8),
        (&learned.and_then(|learned| learned.ceiling) as _, Type::FLOAT8),
        (&cuts.cast_signed() as _, Type::INT8),
        (&cut_at.map(Time) as _, Type::TIMESTAMPTZ),
        (&closed.map(|closed| Time(closed.until)) as _, Type::TIMESTAMPTZ),
        (&closed.map(|closed| closed.reason.as_str()) as _, Type::TEXT),
        (&heard_at.map(Time) as _, Type::TIMESTAMPTZ),
    ];
    db.execute(update, &params).await?;
    Ok(())
}

/// Also forgets the dead.
async fn others(db: &Db, ask: &ShareAsk, now: Timestamp) -> Sql<Vec<Sharer>> {
    let delete = "DELETE FROM ingest_workers WHERE source = $1 AND beat_at <= $2";
    let select = "SELECT demand, share FROM ingest_workers WHERE source = $1 AND worker_id <> $2";
    let (source, worker) = (ask.source.as_str(), ask.worker.as_str());
    let dead = [
        (&source as _, Type::TEXT),
        (&Time(Timestamp::from_millis(now.as_millis() - SHARE_LASTS.as_millis() as i64)) as _, Type::TIMESTAMPTZ),
    ];
    let alive = [(&source as _, Type::TEXT), (&worker as _, Type::TEXT)];
    let (_, rows) = try_join(db.execute(delete, &dead), db.query(select, &alive)).await?;
    rows.iter().map(|row| Ok(Sharer { demand: row.try_get(0)?, share: row.try_get(1)? })).collect()
}

async fn put_worker(db: &Db, ask: &ShareAsk, share: f64, now: Timestamp) -> Sql<()> {
    let upsert = "
        INSERT INTO ingest_workers (worker_id, source, host, pid, started_at, beat_at, share, demand, rate)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (worker_id) DO UPDATE SET beat_at = $6, share = $7, demand = $8, rate = $9";
    let params = [
        (&ask.worker.as_str() as _, Type::TEXT),
        (&ask.source.as_str() as _, Type::TEXT),
        (&ask.host as _, Type::TEXT),
        (&i64::from(ask.pid) as _, Type::INT8),
        (&Time(ask.started_at) as _, Type::TIMESTAMPTZ),
        (&Time(now) as _, Type::TIMESTAMPTZ),
        (&share as _, Type::FLOAT8),
        (&ask.report.demand as _, Type::FLOAT8),
        (&ask.report.rate as _, Type::FLOAT8),
    ];
    db.execute(upsert, &params).await?;
    Ok(())
}
