//! The parts of a message that may lie in a shard: the bytes it came in, and the texts read from them.

use highwater_core::{
    Record, SideRow, Value,
    schema::{ColumnType, Table},
};
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use crate::sqlite::{
    error::Sql,
    table::{ValueParam, value_of},
};

pub(in crate::sqlite) const MESSAGES: &str = "mail_messages";
/// The table of bytes: the same in a shard as in the store.
pub(in crate::sqlite) const RAW: &str = "mail_raw";
const RAW_KINDS: [ColumnType; 4] = [ColumnType::Text, ColumnType::Bytes, ColumnType::Int, ColumnType::Text];
/// Columns of messages, which are empty in the row of one whose texts lie in a shard.
pub(in crate::sqlite) const TEXTS: [&str; 2] = ["body_plain", "body_html"];

pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS mail_raw (
        message_id TEXT NOT NULL PRIMARY KEY,
        raw BLOB NOT NULL,
        size_bytes INTEGER NOT NULL,
        sha256 TEXT NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS mail_bodies (
        message_id TEXT NOT NULL PRIMARY KEY,
        body_plain TEXT,
        body_html TEXT
    ) STRICT";

pub(in crate::sqlite) fn is_mail(table: &Table) -> bool {
    table.name == MESSAGES
}

/// The places of the texts among the columns.
pub(in crate::sqlite) fn texts_of(table: &Table) -> [Option<usize>; 2] {
    TEXTS.map(|name| table.position(name))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sqlite) struct Parts {
    texts: [Value; 2],
    /// The row of [`RAW`].
    raw: Option<Vec<Value>>,
}

impl Parts {
    pub(in crate::sqlite) fn of(record: &Record) -> Parts {
        let text = |place: Option<usize>| place.and_then(|place| record.body.values.get(place).cloned());
        let raw = record.sides.iter().find(|side| Parts::has(side)).map(|side| side.values.clone());
        Parts { texts: texts_of(record.table).map(|place| text(place).unwrap_or(Value::Null)), raw }
    }

    /// Whether this row beside a message is one of its parts.
    pub(in crate::sqlite) fn has(side: &SideRow) -> bool {
        side.table.name == RAW
    }

    /// Of what is lost there is nothing.
    pub(in crate::sqlite) fn in_shard(file: &Connection, id: &str) -> Sql<Parts> {
        let texts = texts_in(file, id)?.unwrap_or([Value::Null, Value::Null]);
        Ok(Parts { texts, raw: raw_in(file, id)? })
    }

    pub(in crate::sqlite) fn at_home(db: &Connection, id: &str) -> Sql<Parts> {
        let texts = texts_by(db, "SELECT body_plain, body_html FROM mail_messages WHERE id = ?1", id)?;
        Ok(Parts { texts: texts.unwrap_or([Value::Null, Value::Null]), raw: raw_in(db, id)? })
    }

    pub(in crate::sqlite) fn put_in_shard(&self, file: &Connection, id: &str) -> Sql<()> {
        let [plain, html] = &self.texts;
        let put = "INSERT OR REPLACE INTO mail_bodies (message_id, body_plain, body_html) VALUES (?1, ?2, ?3)";
        file.prepare_cached(put)?.execute(params![id, ValueParam(plain), ValueParam(html)])?;
        self.put_raw(file)
    }

    pub(in crate::sqlite) fn put_home(&self, db: &Connection, id: &str) -> Sql<()> {
        put_texts_home(db, id, &self.texts)?;
        self.put_raw(db)
    }

    pub(in crate::sqlite) fn take_from_home(db: &Connection, id: &str) -> Sql<()> {
        put_texts_home(db, id, &[Value::Null, Value::Null])?;
        db.prepare_cached("DELETE FROM mail_raw WHERE message_id = ?1")?.execute([id])?;
        Ok(())
    }

    fn put_raw(&self, file: &Connection) -> Sql<()> {
        if let Some(raw) = &self.raw {
            let put = "INSERT OR REPLACE INTO mail_raw (message_id, raw, size_bytes, sha256) VALUES (?1, ?2, ?3, ?4)";
            file.prepare_cached(put)?.execute(params_from_iter(raw.iter().map(ValueParam)))?;
        }
        Ok(())
    }

    /// Whether the bytes are these, or there are none to compare.
    pub(in crate::sqlite) fn agrees(&self, raw: Option<&Vec<Value>>) -> bool {
        self.raw.is_none() || self.raw.as_ref() == raw
    }

    pub(in crate::sqlite) fn size(&self) -> usize {
        let size = |value: &Value| match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 8,
        };
        self.texts.iter().chain(self.raw.iter().flatten()).map(size).sum()
    }
}

fn put_texts_home(db: &Connection, id: &str, [plain, html]: &[Value; 2]) -> Sql<()> {
    let put = "UPDATE mail_messages SET body_plain = ?2, body_html = ?3 WHERE id = ?1";
    db.prepare_cached(put)?.execute(params![id, ValueParam(plain), ValueParam(html)])?;
    Ok(())
}

pub(super) fn texts_in(file: &Connection, id: &str) -> Sql<Option<[Value; 2]>> {
    texts_by(file, "SELECT body_plain, body_html FROM mail_bodies WHERE message_id = ?1", id)
}

fn texts_by(file: &Connection, select: &str, id: &str) -> Sql<Option<[Value; 2]>> {
    let mut select = file.prepare_cached(select)?;
    let texts = select.query_row([id], |row| {
        Ok([value_of(ColumnType::Text, row.get_ref(0)?), value_of(ColumnType::Text, row.get_ref(1)?)])
    });
    Ok(texts.optional()?)
}

pub(super) fn raw_in(file: &Connection, id: &str) -> Sql<Option<Vec<Value>>> {
    let mut select =
        file.prepare_cached("SELECT message_id, raw, size_bytes, sha256 FROM mail_raw WHERE message_id = ?1")?;
    let raw = select.query_row([id], |row| {
        RAW_KINDS.iter().enumerate().map(|(place, kind)| Ok(value_of(*kind, row.get_ref(place)?))).collect()
    });
    Ok(raw.optional()?)
}
