//! Alerts that were raised, until they are resolved.

use futures_util::future::{try_join, try_join3};
use highwater_core::{AlertState, SourceName, Timestamp};
use tokio_postgres::{Row, types::Type};

use super::{
    cells::{Time, time_at},
    error::Sql,
    ledger,
    link::Db,
};
use crate::{AlertNote, AlertRow, rules::alert_entry};

/// An alert that is open already, or resolved already, is no news.
pub(super) async fn note(db: &Db, note: &AlertNote) -> Sql<()> {
    let written = async {
        match note.state {
            AlertState::Raised => raise(db, note).await,
            AlertState::Lasting => go_on(db, note).await,
            AlertState::Resolved => resolve(db, note).await,
        }
    };
    let ((), written) = try_join(db.begin(), written).await?;
    if let Some(entry) = alert_entry(note).filter(|_| written == 1) {
        ledger::append(db, &[entry]).await?;
    }
    db.commit().await
}

async fn raise(db: &Db, note: &AlertNote) -> Sql<u64> {
    let insert = "
        INSERT INTO ingest_alerts (source, condition, severity, message, raised_at, told_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (source, condition) WHERE resolved_at IS NULL DO NOTHING";
    let params = [
        (&note.source.as_str() as _, Type::TEXT),
        (&note.condition as _, Type::TEXT),
        (&note.severity as _, Type::TEXT),
        (&note.message as _, Type::TEXT),
        (&Time(note.at) as _, Type::TIMESTAMPTZ),
        (&note.told_at.map(Time) as _, Type::TIMESTAMPTZ),
    ];
    db.execute(insert, &params).await
}

async fn go_on(db: &Db, note: &AlertNote) -> Sql<u64> {
    let update = "
        UPDATE ingest_alerts SET message = $3, told_at = COALESCE($4, told_at)
        WHERE source = $1 AND condition = $2 AND resolved_at IS NULL";
    let params = [
        (&note.source.as_str() as _, Type::TEXT),
        (&note.condition as _, Type::TEXT),
        (&note.message as _, Type::TEXT),
        (&note.told_at.map(Time) as _, Type::TIMESTAMPTZ),
    ];
    db.execute(update, &params).await
}

async fn resolve(db: &Db, note: &AlertNote) -> Sql<u64> {
    let update = "
        UPDATE ingest_alerts SET resolved_at = $3 WHERE source = $1 AND condition = $2 AND resolved_at IS NULL";
    let params = [
        (&note.source.as_str() as _, Type::TEXT),
        (&note.condition as _, Type::TEXT),
        (&Time(note.at) as _, Type::TIMESTAMPTZ),
    ];
    db.execute(update, &params).await
}

pub(super) async fn open(db: &Db, source: &SourceName) -> Sql<Vec<AlertRow>> {
    let select = "SELECT condition, severity, message, raised_at FROM ingest_alerts
                  WHERE source = $1 AND resolved_at IS NULL ORDER BY raised_at, alert_id";
    let name = source.as_str();
    let params = [(&name as _, Type::TEXT)];
    let ((), rows, ()) = try_join3(db.begin(), db.query(select, &params), db.commit()).await?;
    let alert = |row: &Row| {
        Ok(AlertRow {
            condition: row.try_get(0)?,
            severity: row.try_get(1)?,
            message: row.try_get(2)?,
            raised_at: time_at(row, 3)?,
        })
    };
    rows.iter().map(alert).collect()
}

pub(super) async fn told(db: &Db, source: &SourceName) -> Sql<Vec<(String, Timestamp)>> {
    let select = "SELECT condition, max(told_at) FROM ingest_alerts
                  WHERE source = $1 AND told_at IS NOT NULL GROUP BY condition ORDER BY condition";
    let name = source.as_str();
    let params = [(&name as _, Type::TEXT)];
    let ((), rows, ()) = try_join3(db.begin(), db.query(select, &params), db.commit()).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, time_at(row, 1)?))).collect()
}
