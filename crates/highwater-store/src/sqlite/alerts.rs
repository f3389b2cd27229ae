//! Alerts that were raised, until they are resolved.

use highwater_core::{SourceName, Timestamp};
use rusqlite::{Connection, params};

use super::{error::Sql, session::Session};
use crate::{AlertNote, AlertRow, rules::alert_entry};

/// An alert that is open already, or resolved already, is no news.
pub(super) fn note(session: &mut Session, note: &AlertNote) -> Sql<()> {
    let is_news = if note.raised { raise(&session.db, note)? } else { resolve(&session.db, note)? };
    if is_news {
        session.append(&alert_entry(note))?;
    }
    Ok(())
}

fn raise(db: &Connection, note: &AlertNote) -> Sql<bool> {
    let added = db
        .prepare_cached(
            "INSERT INTO ingest_alerts (source, condition, severity, message, raised_at) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (source, condition) WHERE resolved_at IS NULL DO NOTHING",
        )?
        .execute(params![note.source.as_str(), note.condition, note.severity, note.message, note.at.as_millis()])?;
    Ok(added == 1)
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
