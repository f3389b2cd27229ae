//! The part of the store that keeps mailboxes.

use std::time::Duration;

use futures_util::future::{BoxFuture, try_join, try_join3};
use highwater_core::{SourceName, Timestamp};
use tokio_postgres::{Row, types::Type};

use super::{
    PostgresStore,
    cells::{Time, time, time_at, word},
    error::{Fault, Sql},
    link::{Db, Param},
};
use crate::{MailboxId, MailboxNote, MailboxRow, MailboxStore, MoveProgress, Result, rules::no_mailbox};

impl MailboxStore for PostgresStore {
    fn open_mailbox<'a>(
        &'a self,
        id: &'a MailboxId,
        source: &'a SourceName,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<MailboxRow>> {
        transact!(self, to_write, "opening a mailbox", |db| open(db, id, source, now))
    }

    fn mailboxes(&self) -> BoxFuture<'_, Result<Vec<MailboxRow>>> {
        transact!(self, to_read, "reading mailboxes", |db| all(db))
    }

    fn set_credentials<'a>(
        &'a self,
        id: &'a MailboxId,
        sealed: Option<String>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "keeping credentials", |db| set_credentials(db, id, sealed.as_deref(), now))
    }

    fn note_mailbox<'a>(&'a self, id: &'a MailboxId, note: &'a MailboxNote) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "noting the state of a mailbox", |db| self::note(db, id, note))
    }

    fn lease_refresh<'a>(&'a self, id: &'a MailboxId, now: Timestamp, ttl: Duration) -> BoxFuture<'a, Result<bool>> {
        let now = self.lease_time(now);
        transact!(self, to_write, "taking over a refresh", |db| lease(db, id, now, ttl))
    }

    fn end_refresh<'a>(&'a self, id: &'a MailboxId) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "ending a refresh", |db| end(db, id))
    }

    /// All mail lies in the one database.
    fn arrange<'a>(&'a self, _: &'a MoveProgress) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async { Ok(0) })
    }
}

async fn open(db: &Db, id: &MailboxId, source: &SourceName, now: Timestamp) -> Sql<MailboxRow> {
    let upsert = "
        INSERT INTO mailboxes AS m (id, org_id, provider_email, source, status, created_at, updated_at)
        VALUES ($1, $2, $3, $4, 'connected', $5, $5)
        ON CONFLICT (id) DO UPDATE SET source = EXCLUDED.source, updated_at = EXCLUDED.updated_at
        WHERE m.source <> EXCLUDED.source";
    let key = id.key();
    let params = [
        (&key as _, Type::TEXT),
        (&id.org() as _, Type::TEXT),
        (&id.email() as _, Type::TEXT),
        (&source.as_str() as _, Type::TEXT),
        (&Time(now) as _, Type::TIMESTAMPTZ),
    ];
    let select = format!("SELECT {COLUMNS} FROM mailboxes WHERE id = $1");
    try_join(db.begin(), db.execute(upsert, &params)).await?;
    let (rows, ()) = try_join(db.query(&select, &params[..1]), db.commit()).await?;
    rows.first().map(row_of).unwrap_or_else(|| Err(no_mailbox().into()))
}

async fn all(db: &Db) -> Sql<Vec<MailboxRow>> {
    let select = format!("SELECT {COLUMNS} FROM mailboxes ORDER BY org_id COLLATE \"C\", provider_email COLLATE \"C\"");
    let ((), rows, ()) = try_join3(db.begin(), db.query(&select, &[]), db.commit()).await?;
    rows.iter().map(row_of).collect()
}

async fn set_credentials(db: &Db, id: &MailboxId, sealed: Option<&str>, now: Timestamp) -> Sql<()> {
    let update = "UPDATE mailboxes SET credentials = $2, updated_at = $3 WHERE id = $1";
    let key = id.key();
    let params = [(&key as _, Type::TEXT), (&sealed as _, Type::TEXT), (&Time(now) as _, Type::TIMESTAMPTZ)];
    found(written(db, update, &params).await?)
}

async fn note(db: &Db, id: &MailboxId, note: &MailboxNote) -> Sql<()> {
    let update = "
        UPDATE mailboxes SET status = $2, sync_error_message = $3, last_synced_at = COALESCE($4, last_synced_at),
            updated_at = $5 WHERE id = $1";
    let key = id.key();
    let params = [
        (&key as _, Type::TEXT),
        (&note.status.as_str() as _, Type::TEXT),
        (&note.error as _, Type::TEXT),
        (&note.synced_at.map(Time) as _, Type::TIMESTAMPTZ),
        (&Time(note.now) as _, Type::TIMESTAMPTZ),
    ];
    found(written(db, update, &params).await?)
}

/// `now` is none for the server's clock.
async fn lease(db: &Db, id: &MailboxId, now: Option<Timestamp>, ttl: Duration) -> Sql<bool> {
    let update = "
        UPDATE mailboxes SET refreshing_until = COALESCE($2, clock_timestamp()) + $3 * interval '1 millisecond'
        WHERE id = $1 AND (refreshing_until IS NULL OR refreshing_until <= COALESCE($2, clock_timestamp()))";
    let key = id.key();
    let params = [
        (&key as _, Type::TEXT),
        (&now.map(Time) as _, Type::TIMESTAMPTZ),
        (&(ttl.as_secs_f64() * 1e3) as _, Type::FLOAT8),
    ];
    Ok(written(db, update, &params).await? == 1)
}

async fn end(db: &Db, id: &MailboxId) -> Sql<()> {
    let update = "UPDATE mailboxes SET refreshing_until = NULL WHERE id = $1";
    let key = id.key();
    found(written(db, update, &[(&key as _, Type::TEXT)]).await?)
}

async fn written(db: &Db, sql: &str, params: &[Param<'_>]) -> Sql<u64> {
    let ((), rows, ()) = try_join3(db.begin(), db.execute(sql, params), db.commit()).await?;
    Ok(rows)
}

fn found(rows: u64) -> Sql<()> {
    if rows == 1 { Ok(()) } else { Err(no_mailbox().into()) }
}

const COLUMNS: &str = "org_id, provider_email, source, status, last_history_id, last_synced_at, sync_error_message,
     credentials, created_at, updated_at";

fn row_of(row: &Row) -> Sql<MailboxRow> {
    let history: Option<&str> = row.try_get(4)?;
    Ok(MailboxRow {
        id: MailboxId::new(row.try_get(0)?, row.try_get(1)?),
        source: row.try_get::<_, &str>(2)?.parse().map_err(Fault::nonsense)?,
        status: word(row, 3)?,
        last_history_id: history.map(str::parse).transpose().map_err(Fault::nonsense)?,
        last_synced_at: time(row, 5)?,
        error: row.try_get(6)?,
        credentials: row.try_get(7)?,
        created_at: time_at(row, 8)?,
        updated_at: time_at(row, 9)?,
    })
}
