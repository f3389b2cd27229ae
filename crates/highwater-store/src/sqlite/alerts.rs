//! Alerts that were raised, until they are resolved.

use highwater_core::{AlertState, SourceName, Timestamp};
use rusqlite::{Connection, params};

use super::{error::Sql, session::Session};
use crate::{AlertNote, AlertRow, rules::alert_entry};

/// An alert that is open already, or resolved already, is no news.
pub(super) fn note(session: &mut Session, note: &AlertNote) -> Sql<()> {
    let is_news = match note.state {
        AlertState::Raised => raise(&session.db, note)?,
        AlertState::Lasting => go_on(&session.db, note)?,
        AlertState::Resolved => resolve(&session.db, note)?,
    };
    if let Some(entry) = alert_entry(note).filter(|_| is_news) {
        session.append(&entry)?;
    }
    Ok(())
}

fn raise(db: &Connection, note: &AlertNote) -> Sql<bool> {
    let added = db
        .prepare_cached(
            "INSERT INTO ingest_alerts (source, condition, severity, message, raised_at, told_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (source, condition) WHERE resolved_at IS NULL DO NOTHING",
        )?
        .execute(params![
            note.source.as_str(),
            note.condition,
            note.severity,
            note.message,
            note.at.as_millis(),
            note.told_at.map(Timestamp::as_millis)
        ])?;
    Ok(added == 1)
}

fn go_on(db: &Connection, note: &AlertNote) -> Sql<bool> {
    let told_at = note.told_at.map(Timestamp::as_millis);
    let changed = db
        .prepare_cached(
            "UPDATE ingest_alerts SET message = ?3, told_at = COALESCE(?4, told_at)
             WHERE source = ?1 AND condition = ?2 AND resolved_at IS NULL",
        )?
        .execute(params![note.source.as_str(), note.condition, note.message, told_at])?;
    Ok(changed == 1)
}

fn resolve(db: &Connection, note: &AlertNote) -> Sql<bool> {
    let resolved = db
        .prepare_cached(
            "UPDATE ingest_alerts SET resolved_at = ?3 WHERE source = ?1 AND condition = ?2 AND resolved_at IS NULL",
        )?
        .execute(params![note.source.as_str(), note.condition, note.at.as_millis()])?;
    Ok(resolved == 1)
}

pub(super) fn open(db: &Connection, source: &SourceName) -> Sql<Vec<AlertRow>> {
    let mut select = db.prepare_cached(
        "SELECT condition, severity, message, raised_at FROM ingest_alerts
         WHERE source = ?1 AND resolved_at IS NULL ORDER BY raised_at, alert_id",
    )?;
    let rows = select.query_map([source.as_str()], |row| {
        Ok(AlertRow {
            condition: row.get(0)?,
            severity: row.get(1)?,
            message: row.get(2)?,
            raised_at: Timestamp::from_millis(row.get(3)?),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn told(db: &Connection, source: &SourceName) -> Sql<Vec<(String, Timestamp)>> {
    let mut select = db.prepare_cached(
        "SELECT condition, max(told_at) FROM ingest_alerts
         WHERE source = ?1 AND told_at IS NOT NULL GROUP BY condition ORDER BY condition",
    )?;
    let rows = select.query_map([source.as_str()], |row| Ok((row.get(0)?, Timestamp::from_millis(row.get(1)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
