//! The part of the store that keeps mailboxes.

use std::time::Duration;

use futures_util::future::BoxFuture;
use highwater_core::{SourceName, Timestamp};
use rusqlite::{Connection, Row, params};

use super::{
    SqliteStore,
    error::{Fault, Sql},
    segments::{time, word},
};
use crate::{MailboxId, MailboxNote, MailboxRow, MailboxStore, MoveProgress, Result, rules::no_mailbox};

impl MailboxStore for SqliteStore {
    fn open_mailbox<'a>(
        &'a self,
        id: &'a MailboxId,
        source: &'a SourceName,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<MailboxRow>> {
        let (id, source) = (id.clone(), source.clone());
        self.hasty("opening a mailbox", move |session| open(&session.db, &id, &source, now))
    }

    fn mailboxes(&self) -> BoxFuture<'_, Result<Vec<MailboxRow>>> {
        Box::pin(self.read("reading mailboxes", all))
    }

    fn set_credentials<'a>(
        &'a self,
        id: &'a MailboxId,
        sealed: Option<String>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<()>> {
        let id = id.clone();
        self.hasty("keeping credentials", move |session| set_credentials(&session.db, &id, sealed.as_deref(), now))
    }

    fn note_mailbox<'a>(&'a self, id: &'a MailboxId, note: &'a MailboxNote) -> BoxFuture<'a, Result<()>> {
        let (id, note) = (id.clone(), note.clone());
        self.hasty("noting the state of a mailbox", move |session| self::note(&session.db, &id, &note))
    }

    fn lease_refresh<'a>(&'a self, id: &'a MailboxId, now: Timestamp, ttl: Duration) -> BoxFuture<'a, Result<bool>> {
        let id = id.clone();
        self.hasty("taking over a refresh", move |session| lease(&session.db, &id, now, ttl))
    }

    fn end_refresh<'a>(&'a self, id: &'a MailboxId) -> BoxFuture<'a, Result<()>> {
        let id = id.clone();
        self.hasty("ending a refresh", move |session| end(&session.db, &id))
    }

    fn arrange<'a>(&'a self, progress: &'a MoveProgress) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.arrange_mail(progress))
    }

    fn sweep(&self) -> BoxFuture<'_, Result<u64>> {
        Box::pin(self.sweep_mail())
    }
}

fn open(db: &Connection, id: &MailboxId, source: &SourceName, now: Timestamp) -> Sql<MailboxRow> {
    let upsert = "INSERT INTO mailboxes (id, org_id, provider_email, source, status, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, 'connected', ?5, ?5)
         ON CONFLICT (id) DO UPDATE SET source = excluded.source, updated_at = excluded.updated_at
         WHERE source <> excluded.source";
    db.prepare_cached(upsert)?.execute(params![id.key(), id.org(), id.email(), source.as_str(), now.as_millis()])?;
    let mut select = db.prepare_cached(&format!("SELECT {COLUMNS} FROM mailboxes WHERE id = ?1"))?;
    select.query_row([id.key()], |row| Ok(row_of(row)))?
}

fn all(db: &Connection) -> Sql<Vec<MailboxRow>> {
    let mut select = db.prepare_cached(&format!("SELECT {COLUMNS} FROM mailboxes ORDER BY org_id, provider_email"))?;
    let rows = select.query_map([], |row| Ok(row_of(row)))?;
    rows.map(|row| row?).collect()
}

fn set_credentials(db: &Connection, id: &MailboxId, sealed: Option<&str>, now: Timestamp) -> Sql<()> {
    let update = "UPDATE mailboxes SET credentials = ?2, updated_at = ?3 WHERE id = ?1";
    found(db.prepare_cached(update)?.execute(params![id.key(), sealed, now.as_millis()])?)
}

fn note(db: &Connection, id: &MailboxId, note: &MailboxNote) -> Sql<()> {
    let update = "UPDATE mailboxes SET status = ?2, sync_error_message = ?3,
            last_synced_at = COALESCE(?4, last_synced_at), updated_at = ?5 WHERE id = ?1";
    let synced_at = note.synced_at.map(Timestamp::as_millis);
    let params = params![id.key(), note.status.as_str(), note.error, synced_at, note.now.as_millis()];
    found(db.prepare_cached(update)?.execute(params)?)
}

fn lease(db: &Connection, id: &MailboxId, now: Timestamp, ttl: Duration) -> Sql<bool> {
    let update = "UPDATE mailboxes SET refreshing_until = ?2
         WHERE id = ?1 AND (refreshing_until IS NULL OR refreshing_until <= ?3)";
    let taken = db.prepare_cached(update)?.execute(params![id.key(), (now + ttl).as_millis(), now.as_millis()])?;
    Ok(taken == 1)
}

fn end(db: &Connection, id: &MailboxId) -> Sql<()> {
    found(db.prepare_cached("UPDATE mailboxes SET refreshing_until = NULL WHERE id = ?1")?.execute([id.key()])?)
}

/// One process writes a file: whoever was refreshing is dead.
pub(super) fn recover(db: &Connection) -> Sql<()> {
    db.execute("UPDATE mailboxes SET refreshing_until = NULL WHERE refreshing_until IS NOT NULL", [])?;
    Ok(())
}

fn found(rows: usize) -> Sql<()> {
    if rows == 1 { Ok(()) } else { Err(no_mailbox().into()) }
}

const COLUMNS: &str = "org_id, provider_email, source, status, last_history_id, last_synced_at, sync_error_message,
     credentials, created_at, updated_at";

fn row_of(row: &Row<'_>) -> Sql<MailboxRow> {
    let source: String = row.get(2)?;
    let history: Option<String> = row.get(4)?;
    Ok(MailboxRow {
        id: MailboxId::new(&row.get::<_, String>(0)?, &row.get::<_, String>(1)?),
        source: source.parse().map_err(Fault::nonsense)?,
        status: word(row, 3)?,
        last_history_id: history.map(|id| id.parse()).transpose().map_err(Fault::nonsense)?,
        last_synced_at: time(row, 5)?,
        error: row.get(6)?,
        credentials: row.get(7)?,
        created_at: Timestamp::from_millis(row.get(8)?),
        updated_at: Timestamp::from_millis(row.get(9)?),
    })
}
