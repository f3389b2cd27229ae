//! Who does what for all processes of a source, and the check before whatever only that one may write.

use highwater_core::{SourceName, WorkerId};
use rusqlite::{Connection, params};

use super::error::Sql;
use crate::{LISTENER, RoleAsk, rules::not_listening};

pub(super) fn take(db: &Connection, ask: &RoleAsk) -> Sql<bool> {
    let ttl = i64::try_from(ask.ttl.as_millis()).unwrap_or(i64::MAX);
    let taken = db
        .prepare_cached(
            "INSERT INTO ingest_roles (source, role, owner, beat_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (source, role) DO UPDATE SET owner = excluded.owner, beat_at = excluded.beat_at
             WHERE owner = excluded.owner OR beat_at <= excluded.beat_at - ?5",
        )?
        .execute(params![ask.source.as_str(), ask.role, ask.worker.as_str(), ask.now.as_millis(), ttl])?;
    Ok(taken == 1)
}

pub(super) fn give_up(db: &Connection, ask: &RoleAsk) -> Sql<()> {
    db.prepare_cached("DELETE FROM ingest_roles WHERE source = ?1 AND role = ?2 AND owner = ?3")?.execute([
        ask.source.as_str(),
        ask.role,
        ask.worker.as_str(),
    ])?;
    Ok(())
}

/// Whoever listens may write about the feed, and nobody else.
pub(super) fn check(db: &Connection, source: &SourceName, worker: &WorkerId) -> Sql<()> {
    let mut select = db.prepare_cached("SELECT 1 FROM ingest_roles WHERE source = ?1 AND role = ?2 AND owner = ?3")?;
    if select.exists([source.as_str(), LISTENER, worker.as_str()])? {
        return Ok(());
    }
    Err(not_listening(source, worker).into())
}

/// One process writes a file: whoever had a role is dead.
pub(super) fn recover(db: &Connection) -> Sql<()> {
    db.execute("DELETE FROM ingest_roles", [])?;
    Ok(())
}
