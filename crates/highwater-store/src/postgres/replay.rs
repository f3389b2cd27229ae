//! Putting dead letters back to work, and counting anew what was repaired.

use std::collections::BTreeSet;

use futures_util::future::{try_join, try_join3};
use highwater_core::{Key, Pending, SegmentId, StreamId, Timestamp, schema::Table};
use tokio_postgres::types::Type;

use super::{
    cells::{Keys, Time},
    error::Sql,
    follow::Within,
    link::{Db, Param},
    pool::quoted,
    segments, streams,
};
use crate::rules::{self, key_column};

const DEAD: &str =
    "source = $1 AND stream = $2 AND state = 'dead_letter' AND ($3::text[] IS NULL OR item_key = ANY($3))";

pub(super) async fn replay(db: &Db, stream: &StreamId, keys: Option<&[Key]>, now: Timestamp) -> Sql<u64> {
    let keys: Option<Vec<_>> = keys.map(|keys| keys.iter().map(Key::to_string).collect());
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let whose: [Param<'_>; 3] = [(&source, Type::TEXT), (&name, Type::TEXT), (&keys, Type::TEXT_ARRAY)];
    let owners = format!("SELECT DISTINCT segment_id FROM ingest_exceptions WHERE {DEAD}");
    let ((), rows) = try_join(db.begin(), db.query(&owners, &whose)).await?;
    let owners = rows.iter().map(|row| row.try_get(0).map(SegmentId)).collect::<Result<BTreeSet<_>, _>>()?;
    let locked = segments::lock(db, &owners).await?;
    let revive = format!(
        "UPDATE ingest_exceptions SET state = 'retry_wait', attempts = 0, next_retry_at = $4, reason = $5
         WHERE {DEAD} AND segment_id = ANY($6) RETURNING segment_id"
    );
    let ids: Vec<_> = locked.keys().map(|id| id.0).collect();
    let (time, reason) = (Time(now), Pending::Replayed.as_str());
    let what: [Param<'_>; 3] = [(&time, Type::TIMESTAMPTZ), (&reason, Type::TEXT), (&ids, Type::INT8_ARRAY)];
    let rows = db.query(&revive, &whose.into_iter().chain(what).collect::<Vec<_>>()).await?;
    let revived = rows.iter().map(|row| row.try_get(0).map(SegmentId)).collect::<Result<BTreeSet<_>, _>>()?;
    let woken = revived.iter().filter_map(|id| locked.get(id));
    let put: Vec<_> =
        woken.filter_map(|row| Some((row.id, rules::status_when_replayed(row.lease.status)?, Some(now)))).collect();
    try_join(segments::put_down(db, &put), db.commit()).await?;
    Ok(rows.len() as u64)
}

/// Behind the lock of the stream's row, and in one look: rows that are committed later are counted by those who bring
/// them, those of segments at work when they are put down.
pub(super) async fn recount(db: &Db, stream: &StreamId, table: &'static Table) -> Sql<()> {
    let column = key_column(table);
    let within = Within::of(table, None);
    let update = format!(
        "UPDATE ingest_streams SET stored = (SELECT count(*) FROM {} WHERE {}) - COALESCE((
             SELECT sum(uncounted) FROM ingest_segments
             WHERE source = $4 AND stream = $5 AND status = 'in_progress'), 0)
         WHERE source = $4 AND stream = $5",
        quoted(table.name),
        within.condition(&quoted(column.name)),
    );
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let bounds = within.params(column.kind);
    let params: Vec<_> =
        bounds.iter().map(Keys::param).chain([(&source as _, Type::TEXT), (&name as _, Type::TEXT)]).collect();
    // A long table takes long to count.
    try_join3(db.begin(), db.run("SET LOCAL statement_timeout = 0"), streams::lock(db, stream)).await?;
    db.execute(&update, &params).await?;
    db.commit().await
}
