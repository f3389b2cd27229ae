//! A small run in steps, each acknowledged before the next, and the whole database as text.

use std::{path::Path, sync::Arc, time::Duration};

use highwater_core::{
    DeadLetterPolicy, History, Key, Lease, Position, Purpose, Record, Settlement, Span, StreamId, Timestamp, Verdict,
    WorkerId,
};
use rusqlite::{Connection, types::ValueRef};

use super::live::{self, LiveScript, Part};
use crate::{
    Claim, Close, Commit, Durability, Execution, GroupLimits, OpenOptions, Plan, Result, SqliteStore, Store,
    suite::{ITEMS, item},
};

pub(super) struct Script {
    stream: StreamId,
    lease: Option<Lease>,
    live: LiveScript,
}

const FIRST_LIVE: usize = 9;
pub(super) const STEPS: usize = FIRST_LIVE + live::STEPS;

pub(super) fn options(path: &Path) -> OpenOptions {
    OpenOptions {
        execution: Execution::Inline,
        durability: Durability::Off,
        group: GroupLimits::default(),
        ..OpenOptions::new(path)
    }
}

fn at(step: usize) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + 1000 * i64::try_from(step).unwrap())
}

fn settlement(key: i64, verdict: Verdict) -> Settlement {
    Settlement { key: Key::Number(key), verdict, history: History::default(), reason: "server", last_error: None }
}

impl Script {
    pub(super) fn new() -> Script {
        let stream = StreamId { source: "hn".parse().unwrap(), stream: "items".parse().unwrap() };
        Script { stream: stream.clone(), lease: None, live: LiveScript::new(stream) }
    }

    /// One step; may be repeated until it is acknowledged.
    pub(super) async fn play(&mut self, store: &SqliteStore, step: usize) -> Result<()> {
        match step {
            0 => store.open_stream(&self.stream, "id").await.map(drop),
            1 => store.plan(self.plan(Purpose::Catchup, 0, 20)).await,
            2 | 6 => self.claim(store, step).await,
            3 => {
                let settlements = vec![settlement(4, Verdict::Missing), settlement(5, Verdict::Retry { at: at(9) })];
                self.commit(store, step, (0..4).map(|id| item(id, "first", &[id, 7, 8])).collect(), settlements).await
            }
            4 => {
                let records = (0..10).filter(|id| *id != 4).map(|id| item(id, "second", &[8, id])).collect();
                self.commit(store, step, records, vec![settlement(5, Verdict::Stored)]).await
            }
            5 | 8 => self.close(store, step).await,
            7 => {
                let records = (11..20).map(|id| item(id, &"large ".repeat(3_000), &[])).collect();
                self.commit(store, step, records, vec![settlement(10, Verdict::Dead)]).await
            }
            _ => match self.live.play(store, step - FIRST_LIVE, at(step)).await? {
                Some(Part::Claim) => self.claim(store, step).await,
                Some(Part::Commit) => {
                    let records = vec![item(2, "third", &[8]), item(3, "second", &[8, 3])];
                    self.commit(store, step, records, vec![settlement(4, Verdict::Missing)]).await
                }
                Some(Part::Close) => self.close(store, step).await,
                None => Ok(()),
            },
        }
    }

    fn plan(&self, purpose: Purpose, start: i64, end: i64) -> Plan<'_> {
        Plan {
            stream: &self.stream,
            purpose,
            span: Span::new(Position(start), Position(end)),
            segment_size: 10,
            bare_until: None,
        }
    }

    async fn claim(&mut self, store: &SqliteStore, step: usize) -> Result<()> {
        let (owner, lease_ttl) = (WorkerId::new("worker"), Duration::from_secs(60));
        let claim = Claim {
            stream: &self.stream,
            owner: &owner,
            limit: 1,
            wanted: crate::Wanted::Anything,
            lease_ttl,
            now: at(step),
        };
        self.lease = store.claim(claim).await?.pop().map(|claimed| claimed.lease);
        Ok(())
    }

    async fn commit(
        &self,
        store: &SqliteStore,
        step: usize,
        records: Vec<Record>,
        settlements: Vec<Settlement>,
    ) -> Result<()> {
        let commit = Commit {
            edits: Vec::new(),
            lease: self.lease.clone().unwrap(),
            stream: self.stream.clone(),
            now: at(step),
            asked_at: at(step),
            unchanged: Vec::new(),
            records,
            settlements,
            cursor: Some(Position(7)),
        };
        store.commit(Arc::new(commit)).await.map(drop)
    }

    async fn close(&self, store: &SqliteStore, step: usize) -> Result<()> {
        let close = Close {
            lease: self.lease.clone().unwrap(),
            stream: self.stream.clone(),
            policy: DeadLetterPolicy::Pass,
            dense: Some(&ITEMS),
            now: at(step),
        };
        store.close(close).await.map(drop)
    }
}

/// Every row of every table.
pub(super) fn dump(path: &Path) -> rusqlite::Result<String> {
    let db = Connection::open(path)?;
    let mut tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let tables = tables.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    let mut lines = Vec::new();
    for table in tables {
        let mut select = db.prepare(&format!("SELECT * FROM \"{table}\""))?;
        let width = select.column_count();
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let mut line = table.clone();
            for index in 0..width {
                line.push('|');
                match row.get_ref(index)? {
                    ValueRef::Null => {}
                    ValueRef::Integer(number) => line.push_str(&number.to_string()),
                    ValueRef::Real(number) => line.push_str(&number.to_string()),
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => line.push_str(&String::from_utf8_lossy(bytes)),
                }
            }
            lines.push(line);
        }
    }
    lines.sort();
    Ok(lines.join("\n"))
}
