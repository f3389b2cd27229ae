//! Appending to the chains of the ledger, and reading them.

use std::collections::btree_map::Entry;

use highwater_core::{SourceName, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{error::Sql, session::Session};
use crate::{LedgerEntry, LedgerLine, Page, payload_text};

impl Session {
    pub(super) fn append(&mut self, entry: &LedgerEntry) -> Sql<()> {
        let line = match self.chain_ends.entry(entry.source.clone()) {
            Entry::Occupied(end) => entry.chained(Some((end.get().0, &end.get().1))),
            Entry::Vacant(_) => {
                let end = chain_end(&self.db, &entry.source)?;
                entry.chained(end.as_ref().map(|(seq, hash)| (*seq, hash.as_str())))
            }
        };
        insert(&self.db, &line)?;
        self.chain_ends.insert(line.source, (line.seq, line.hash));
        Ok(())
    }
}

fn chain_end(db: &Connection, source: &SourceName) -> Sql<Option<(i64, String)>> {
    let mut select = db.prepare_cached("SELECT seq, hash FROM ledger WHERE source = ?1 ORDER BY seq DESC LIMIT 1")?;
    Ok(select.query_row([source.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

fn insert(db: &Connection, line: &LedgerLine) -> Sql<()> {
    db.prepare_cached(
        "INSERT INTO ledger (seq, at, event_type, source, entity_type, entity_id, payload, actor, prev_hash, hash)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        line.seq,
        line.at.as_millis(),
        line.event_type,
        line.source.as_str(),
        line.entity_type,
        line.entity_id,
        payload_text(&line.payload),
        line.actor,
        line.prev_hash,
        line.hash,
    ])?;
    Ok(())
}

pub(super) fn page(db: &Connection, source: &SourceName, page: &Page<i64>) -> Sql<Vec<LedgerLine>> {
    let mut select = db.prepare_cached(
        "SELECT seq, at, event_type, entity_type, entity_id, payload, actor, prev_hash, hash FROM ledger
         WHERE source = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    let after = page.after.unwrap_or(i64::MIN);
    let lines = select.query_map(params![source.as_str(), after, page.limit], |row| line_of(source, row))?;
    Ok(lines.collect::<Result<_, _>>()?)
}

fn line_of(source: &SourceName, row: &Row<'_>) -> rusqlite::Result<LedgerLine> {
    let payload: String = row.get(5)?;
    Ok(LedgerLine {
        seq: row.get(0)?,
        at: Timestamp::from_millis(row.get(1)?),
        event_type: row.get(2)?,
        source: source.clone(),
        entity_type: row.get(3)?,
        entity_id: row.get(4)?,
        // A payload that is no JSON any more is for the chain's check to find, not a reason to stop reading.
        payload: serde_json::from_str(&payload).unwrap_or(serde_json::Value::String(payload)),
        actor: row.get(6)?,
        prev_hash: row.get(7)?,
        hash: row.get(8)?,
    })
}
