//! Appending to the chains of the ledger, and reading them. One writer of a chain at a time.

use std::collections::BTreeMap;

use futures_util::future::try_join;
use highwater_core::SourceName;
use tokio_postgres::{Row, types::Type};

use super::{
    cells::{Time, time_at},
    error::Sql,
    link::Db,
};
use crate::{LedgerEntry, LedgerLine, Page, payload_text};

/// Comes last in a transaction: whoever holds a chain waits for nothing but the disk.
pub(super) async fn append(db: &Db, entries: &[LedgerEntry]) -> Sql<()> {
    let mut chains: BTreeMap<&SourceName, Vec<&LedgerEntry>> = BTreeMap::new();
    for entry in entries {
        chains.entry(&entry.source).or_default().push(entry);
    }
    for (source, entries) in chains {
        let mut end = take_end(db, source).await?;
        let mut lines = Vec::with_capacity(entries.len());
        for entry in entries {
            let line = entry.chained(end.as_ref().map(|(seq, hash)| (*seq, hash.as_str())));
            end = Some((line.seq, line.hash.clone()));
            lines.push(line);
        }
        insert(db, &lines).await?;
    }
    Ok(())
}

/// The end of a chain that nobody else appends to until our transaction ends. Read after the lock is held.
async fn take_end(db: &Db, source: &SourceName) -> Sql<Option<(i64, String)>> {
    let lock =
        "SELECT pg_advisory_xact_lock(hashtextextended('highwater ledger ' || current_schema() || ' ' || $1, 0))";
    let select = "SELECT seq, hash FROM ledger WHERE source = $1 ORDER BY seq DESC LIMIT 1";
    let name = source.as_str();
    let params = [(&name as _, Type::TEXT)];
    let (_, rows) = try_join(db.execute(lock, &params), db.query(select, &params)).await?;
    rows.first().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
}

async fn insert(db: &Db, lines: &[LedgerLine]) -> Sql<()> {
    let insert = "
        INSERT INTO ledger (seq, at, event_type, source, entity_type, entity_id, payload, actor, prev_hash, hash)
        SELECT n.seq, n.at, n.event_type, n.source, n.entity_type, n.entity_id, n.payload::jsonb, n.actor, n.prev_hash,
               n.hash
        FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS n
            (seq, at, event_type, source, entity_type, entity_id, payload, actor, prev_hash, hash)";
    let seqs: Vec<_> = lines.iter().map(|line| line.seq).collect();
    let times: Vec<_> = lines.iter().map(|line| Time(line.at)).collect();
    let texts = |text: fn(&LedgerLine) -> &str| lines.iter().map(text).collect::<Vec<_>>();
    let payloads: Vec<_> = lines.iter().map(|line| payload_text(&line.payload)).collect();
    let (events, sources) = (texts(|line| &line.event_type), texts(|line| line.source.as_str()));
    let (kinds, ids, actors) =
        (texts(|line| &line.entity_type), texts(|line| &line.entity_id), texts(|line| &line.actor));
    let (previous, hashes) = (texts(|line| &line.prev_hash), texts(|line| &line.hash));
    let params = [
        (&seqs as _, Type::INT8_ARRAY),
        (&times as _, Type::TIMESTAMPTZ_ARRAY),
        (&events as _, Type::TEXT_ARRAY),
        (&sources as _, Type::TEXT_ARRAY),
        (&kinds as _, Type::TEXT_ARRAY),
        (&ids as _, Type::TEXT_ARRAY),
        (&payloads as _, Type::TEXT_ARRAY),
        (&actors as _, Type::TEXT_ARRAY),
        (&previous as _, Type::TEXT_ARRAY),
        (&hashes as _, Type::TEXT_ARRAY),
    ];
    db.execute(insert, &params).await?;
    Ok(())
}

/// An entry in a transaction of its own.
pub(super) async fn note(db: &Db, entry: &LedgerEntry) -> Sql<()> {
    try_join(db.begin(), append(db, std::slice::from_ref(entry))).await?;
    db.commit().await
}

pub(super) async fn page(db: &Db, source: &SourceName, page: &Page<i64>) -> Sql<Vec<LedgerLine>> {
    let select = "SELECT seq, at, event_type, entity_type, entity_id, payload::text, actor, prev_hash, hash FROM ledger
                  WHERE source = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let (name, after, limit) = (source.as_str(), page.after.unwrap_or(i64::MIN), i64::from(page.limit));
    let params = [(&name as _, Type::TEXT), (&after as _, Type::INT8), (&limit as _, Type::INT8)];
    let ((), rows) = try_join(db.begin(), db.query(select, &params)).await?;
    db.commit().await?;
    rows.iter().map(|row| line_of(source, row)).collect()
}

fn line_of(source: &SourceName, row: &Row) -> Sql<LedgerLine> {
    let payload: &str = row.try_get(5)?;
    Ok(LedgerLine {
        seq: row.try_get(0)?,
        at: time_at(row, 1)?,
        event_type: row.try_get(2)?,
        source: source.clone(),
        entity_type: row.try_get(3)?,
        entity_id: row.try_get(4)?,
        payload: serde_json::from_str(payload).unwrap_or_else(|_| payload.into()),
        actor: row.try_get(6)?,
        prev_hash: row.try_get(7)?,
        hash: row.try_get(8)?,
    })
}
