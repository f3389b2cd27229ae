//! What the store knows of its shards: which files there are, and in which of them the parts of a message lie.

use highwater_core::{Key, schema::Table};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    error::Sql,
    shards::{Shard, Sharding, is_mail},
};

/// None if they lie in the store itself.
pub(super) fn of(db: &Connection, id: &str) -> Sql<Option<Shard>> {
    let mut select = db.prepare_cached("SELECT shard FROM mail_places WHERE message_id = ?1")?;
    let shard: Option<i64> = select.query_row([id], |row| row.get(0)).optional()?;
    Ok(shard.and_then(away))
}

pub(super) fn of_row(db: &Connection, table: &Table, row: &Key) -> Sql<Option<Shard>> {
    if is_mail(table) { of(db, &row.to_string()) } else { Ok(None) }
}

/// 0 is the store itself.
pub(super) fn away(shard: i64) -> Option<Shard> {
    (shard > 0).then_some(Shard(shard))
}

pub(super) fn put(db: &Connection, id: &str, shard: Shard) -> Sql<()> {
    let put = "INSERT INTO mail_places (message_id, shard) VALUES (?1, ?2)
         ON CONFLICT (message_id) DO UPDATE SET shard = excluded.shard";
    db.prepare_cached(put)?.execute(params![id, shard.0])?;
    Ok(())
}

/// The parts have come home, until they are moved again.
pub(super) fn recall(db: &Connection, id: &str) -> Sql<()> {
    put(db, id, Shard(0))
}

/// The parts are at home for good.
pub(super) fn remove(db: &Connection, id: &str) -> Sql<()> {
    db.prepare_cached("DELETE FROM mail_places WHERE message_id = ?1")?.execute([id])?;
    Ok(())
}

pub(super) fn is_in(db: &Connection, id: &str, shard: Shard) -> Sql<bool> {
    Ok(of(db, id)? == Some(shard))
}

/// Selects message and shard of all rows of bytes that meet a condition, in the order of their messages.
pub(super) fn raws(condition: &str) -> String {
    format!(
        "SELECT message_id, 0 FROM mail_raw WHERE {condition}
         UNION ALL SELECT message_id, shard FROM mail_places WHERE shard > 0 AND {condition} ORDER BY 1"
    )
}

/// How many messages are said to lie in a shard and do not.
pub(super) fn lost(db: &Connection, shard: Shard, parts: &Connection) -> Sql<u64> {
    let mut said = db.prepare_cached("SELECT message_id FROM mail_places WHERE shard = ?1 ORDER BY message_id")?;
    let mut said = said.query([shard.0])?;
    let mut there = parts.prepare_cached("SELECT 1 FROM mail_bodies WHERE message_id = ?1")?;
    let mut lost = 0;
    while let Some(row) = said.next()? {
        lost += u64::from(!there.exists([row.get_ref(0)?.as_str().unwrap_or_default()])?);
    }
    Ok(lost)
}

/// Whether the shard was unknown.
pub(super) fn enter(db: &Connection, shard: Shard, file: &str) -> Sql<bool> {
    let mut enter =
        db.prepare_cached("INSERT INTO mail_shards (shard, file) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
    Ok(enter.execute(params![shard.0, file])? == 1)
}

pub(super) fn file(db: &Connection, shard: Shard) -> Sql<Option<String>> {
    let mut select = db.prepare_cached("SELECT file FROM mail_shards WHERE shard = ?1")?;
    Ok(select.query_row([shard.0], |row| row.get(0)).optional()?)
}

pub(super) fn files(db: &Connection) -> Sql<Vec<(Shard, String)>> {
    let mut select = db.prepare_cached("SELECT shard, file FROM mail_shards ORDER BY shard")?;
    let files = select.query_map([], |row| Ok((Shard(row.get(0)?), row.get(1)?)))?;
    Ok(files.collect::<Result<_, _>>()?)
}

pub(super) fn last_upto(db: &Connection, most: Shard) -> Sql<Option<Shard>> {
    let mut last = db.prepare_cached("SELECT max(shard) FROM mail_shards WHERE shard <= ?1")?;
    let shard: Option<i64> = last.query_row([most.0], |row| row.get(0))?;
    Ok(shard.map(Shard))
}

/// Forgets the shards in which nothing lies, and tells their files.
pub(super) fn forget_empty(db: &Connection) -> Sql<Vec<(Shard, String)>> {
    let mut forget = db.prepare_cached(
        "DELETE FROM mail_shards WHERE NOT EXISTS (SELECT 1 FROM mail_places AS p WHERE p.shard = mail_shards.shard)
         RETURNING shard, file",
    )?;
    let files = forget.query_map([], |row| Ok((Shard(row.get(0)?), row.get(1)?)))?;
    Ok(files.collect::<Result<_, _>>()?)
}

/// Whether all mail lies by this setting, but for what came home.
pub(super) fn is_settled(db: &Connection, sharding: Sharding) -> Sql<bool> {
    Ok(db.prepare_cached("SELECT 1 FROM mail_layout WHERE shards = ?1")?.exists([sharding.word()])?)
}

pub(super) fn settle(db: &Connection, sharding: Sharding) -> Sql<()> {
    db.execute("DELETE FROM mail_layout WHERE shards <> ?1", [sharding.word()])?;
    db.execute("INSERT INTO mail_layout (shards) VALUES (?1) ON CONFLICT DO NOTHING", [sharding.word()])?;
    Ok(())
}

/// From now on mail is written by this setting, so that it may lie by no single one.
pub(super) fn unsettle(db: &Connection, sharding: Sharding) -> Sql<()> {
    db.execute("DELETE FROM mail_layout WHERE shards <> ?1", [sharding.word()])?;
    Ok(())
}
