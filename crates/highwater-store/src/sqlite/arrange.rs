//! Moves mail to where the setting says that it lies: a batch in a transaction, resumed by looking at what lies wrong.
//! At any moment the store names one place in which a message is whole.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, params};
use tokio::task::yield_now;

use super::{
    SqliteStore,
    error::Sql,
    places,
    session::Session,
    shards::{Parts, Shard, Sharding},
};
use crate::{ErrorKind, MoveProgress, Result, StoreError};

/// Messages looked at in a transaction, and bytes moved in one.
const BATCH_ROWS: u32 = 500;
const BATCH_BYTES: usize = 16 << 20;

/// Which messages are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// All there are.
    All,
    /// Those that were changed since they were moved.
    Recalled,
}

struct Lying {
    id: String,
    /// In milliseconds.
    date: Option<i64>,
    lies: Option<Shard>,
}

struct Moved {
    looked_at: u64,
    /// Where to go on; none at the end.
    next: Option<String>,
}

impl SqliteStore {
    pub(super) async fn arrange_mail(&self, progress: &MoveProgress) -> Result<()> {
        let (which, total) = self.hasty("looking where mail lies", plan).await?;
        progress.expect(total);
        let mut after = String::new();
        loop {
            let moved = self.hasty("moving mail", move |session| step(session, which, &after)).await?;
            progress.add(moved.looked_at);
            let Some(next) = moved.next else { break };
            after = next;
            yield_now().await;
        }
        if which == Which::All {
            self.sweep_mail().await?;
            self.hasty("ending the move", |session| places::settle(&session.db, session.shards.sharding())).await?;
        }
        Ok(())
    }

    /// Removes parts that no message names, and files that are empty; how many parts.
    pub(super) async fn sweep_mail(&self) -> Result<u64> {
        for path in self.hasty("looking for empty files", empty).await? {
            remove(&path)?;
        }
        let mut swept = 0;
        for (shard, _) in self.read("reading shards", places::files).await? {
            let mut after = Some(String::new());
            while let Some(from) = after {
                let (removed, next) = self.hasty("sweeping", move |session| sweep(session, shard, &from)).await?;
                swept += removed;
                after = next;
                yield_now().await;
            }
        }
        Ok(swept)
    }
}

fn plan(session: &mut Session) -> Sql<(Which, u64)> {
    let sharding = session.shards.sharding();
    let (which, count) = if places::is_settled(&session.db, sharding)? {
        (Which::Recalled, "SELECT count(*) FROM mail_places WHERE shard = 0")
    } else if sharding == Sharding::None {
        (Which::All, "SELECT count(*) FROM mail_places")
    } else {
        (Which::All, "SELECT count(*) FROM mail_messages")
    };
    Ok((which, session.db.query_row(count, [], |row| row.get::<_, i64>(0))?.cast_unsigned()))
}

fn step(session: &mut Session, which: Which, after: &str) -> Sql<Moved> {
    let mut moved = Moved { looked_at: 0, next: None };
    let mut bytes = 0;
    for lying in lying(&session.db, which, session.shards.sharding(), after)? {
        if bytes >= BATCH_BYTES {
            break;
        }
        bytes += relocate(session, &lying)?;
        moved.looked_at += 1;
        moved.next = Some(lying.id);
    }
    Ok(moved)
}

#[cfg(test)]
pub(super) fn first_step(session: &mut Session) -> Sql<()> {
    let (which, _) = plan(session)?;
    step(session, which, "").map(drop)
}

fn lying(db: &Connection, which: Which, sharding: Sharding, after: &str) -> Sql<Vec<Lying>> {
    let from = match (which, sharding) {
        (Which::Recalled, _) => "mail_places p LEFT JOIN mail_messages m ON m.id = p.message_id WHERE p.shard = 0 AND",
        (Which::All, Sharding::None) => "mail_places p LEFT JOIN mail_messages m ON m.id = p.message_id WHERE",
        (Which::All, _) => "mail_messages m LEFT JOIN mail_places p ON p.message_id = m.id WHERE",
    };
    let id = if from.starts_with("mail_places") { "p.message_id" } else { "m.id" };
    let mut select = db.prepare_cached(&format!(
        "SELECT {id}, m.internal_date, p.shard FROM {from} {id} > ?1 ORDER BY {id} LIMIT ?2"
    ))?;
    let rows = select.query_map(params![after, BATCH_ROWS], |row| {
        let shard: Option<i64> = row.get(2)?;
        Ok(Lying { id: row.get(0)?, date: row.get(1)?, lies: shard.and_then(places::away) })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// How many bytes had to be moved.
fn relocate(session: &mut Session, Lying { id, date, lies }: &Lying) -> Sql<usize> {
    let Session { db, shards, .. } = session;
    if shards.sharding().keeps(*date, *lies) {
        return if lies.is_none() { places::remove(db, id).map(|()| 0) } else { Ok(0) };
    }
    let parts = match lies {
        Some(shard) => shards.within(db, *shard, |file| Parts::in_shard(file, id))?,
        None => Parts::at_home(db, id)?,
    };
    match shards.target_of(db, *date)? {
        Some(shard) => {
            shards.write(db, shard, |file| parts.put_in_shard(file, id))?;
            Parts::take_from_home(db, id)?;
            places::put(db, id, shard)?;
        }
        None => {
            parts.put_home(db, id)?;
            places::remove(db, id)?;
        }
    }
    Ok(parts.size())
}

/// The files in which nothing lies any more, closed.
fn empty(session: &mut Session) -> Sql<Vec<PathBuf>> {
    let empty = places::forget_empty(&session.db)?;
    empty.iter().for_each(|(shard, _)| session.shards.close(*shard));
    Ok(empty.iter().map(|(_, file)| session.shards.path_of(file)).collect())
}

fn remove(path: &Path) -> Result<()> {
    for ending in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(ending);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let cannot = format!("cannot remove {}, which is empty", path.display());
                return Err(StoreError::new(ErrorKind::CannotOpen, cannot).caused_by(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// How many parts were removed, and where to go on.
fn sweep(session: &mut Session, shard: Shard, after: &str) -> Sql<(u64, Option<String>)> {
    let Session { db, shards, .. } = session;
    let page = shards.within(db, shard, |file| ids(file, after))?;
    let mut removed = 0;
    for id in &page {
        if !places::is_in(db, id, shard)? {
            shards.write(db, shard, |file| {
                file.prepare_cached("DELETE FROM mail_raw WHERE message_id = ?1")?.execute([id])?;
                file.prepare_cached("DELETE FROM mail_bodies WHERE message_id = ?1")?.execute([id])?;
                Ok(())
            })?;
            removed += 1;
        }
    }
    Ok((removed, page.into_iter().next_back()))
}

fn ids(file: &Connection, after: &str) -> Sql<Vec<String>> {
    let mut select = file.prepare_cached(
        "SELECT message_id FROM mail_raw WHERE message_id > ?1
         UNION SELECT message_id FROM mail_bodies WHERE message_id > ?1 ORDER BY 1 LIMIT ?2",
    )?;
    let ids = select.query_map(params![after, BATCH_ROWS], |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}
