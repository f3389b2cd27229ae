//! What is told of a mirror that stays current: the state of its feed, the marks of its rows, how much room it takes.

use std::collections::BTreeMap;

use futures_util::future::{try_join, try_join3, try_join4};
use highwater_core::{Key, KeySet, Rescan, SourceName, StreamId, Timestamp, schema::Table};
use tokio_postgres::{Row, types::Type};

use super::{
    cells::{Keys, count, time},
    error::Sql,
    link::{Db, Param},
    pool::quoted,
    rescans, streams, windows,
};
use crate::{
    LiveState, StoreSizes,
    migrations::tables,
    rules::{ENDED_AT_ONCE, key_column},
};

pub(super) async fn live(db: &Db, stream: &StreamId) -> Sql<LiveState> {
    db.begin().await?;
    let (heard_until, windows) = try_join(streams::live_cursor(db, stream), windows::unclosed(db, stream, "")).await?;
    let (mut scheduled, mut history) =
        try_join(passes(db, stream, LAST_SCHEDULED, 1), passes(db, stream, LAST_HISTORY, 1)).await?;
    let (rescans, mut last, (rescanned, differed), ()) = try_join4(
        passes(db, stream, "sealed_at IS NULL ORDER BY reason = 'key', rescan_id", ENDED_AT_ONCE),
        passes(db, stream, LAST, 1),
        sums(db, stream),
        db.commit(),
    )
    .await?;
    Ok(LiveState {
        heard_until: heard_until.map(Timestamp::from_millis),
        windows: windows.into_iter().map(|row| row.window).collect(),
        rescans,
        last_rescan: last.pop(),
        last_scheduled_at: scheduled.pop().map(|pass| pass.began_at),
        history_upto: history.pop().map(|pass| pass.span.end()),
        rescanned,
        differed,
    })
}

const LAST: &str = "sealed_at IS NOT NULL AND reason IN ('scheduled', 'blind') ORDER BY sealed_at DESC, rescan_id DESC";
const LAST_SCHEDULED: &str = "reason = 'scheduled' ORDER BY began_at DESC, rescan_id DESC";
const LAST_HISTORY: &str = "reason = 'history' ORDER BY began_at DESC, rescan_id DESC";

async fn passes(db: &Db, stream: &StreamId, which: &str, limit: u32) -> Sql<Vec<Rescan>> {
    let columns = rescans::COLUMNS;
    let select = format!("SELECT {columns} FROM ingest_rescans WHERE source = $1 AND stream = $2 AND {which} LIMIT $3");
    let (source, name, limit) = (stream.source.as_str(), stream.stream.as_str(), i64::from(limit));
    let params: [Param<'_>; 3] = [(&source, Type::TEXT), (&name, Type::TEXT), (&limit, Type::INT8)];
    let rows = db.query(&select, &params).await?;
    rows.iter().map(|row| Ok(rescans::row_of(row)?.rescan)).collect()
}

async fn sums(db: &Db, stream: &StreamId) -> Sql<(u64, u64)> {
    let select = "SELECT COALESCE(sum(items), 0)::bigint, COALESCE(sum(changed), 0)::bigint FROM ingest_rescans
                  WHERE source = $1 AND stream = $2 AND sealed_at IS NOT NULL AND reason <> 'key'";
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let rows = db.query(select, &[(&source, Type::TEXT), (&name, Type::TEXT)]).await?;
    Ok((count(&rows[0], 0)?, count(&rows[0], 1)?))
}

pub(super) async fn tags(db: &Db, table: &'static Table, keys: &KeySet) -> Sql<BTreeMap<Key, String>> {
    let column = key_column(table);
    let (name, key) = (quoted(table.name), quoted(column.name));
    let select = format!("SELECT {key}::text, etag FROM {name} WHERE etag IS NOT NULL AND");
    let found = async {
        match keys {
            KeySet::Range(span) => {
                let (start, end) = (span.start().0, span.end().0);
                let range = [(&start as _, Type::INT8), (&end as _, Type::INT8)];
                db.query(&format!("{select} {key} >= $1 AND {key} < $2"), &range).await
            }
            KeySet::List(keys) => {
                let rows: Vec<_> = keys.iter().map(|key| table.row_key(key)).collect();
                let keys = Keys::of(column.kind, rows.iter());
                db.query(&format!("{select} {key} = ANY($1)"), &[keys.param()]).await
            }
        }
    };
    let ((), rows, ()) = try_join3(db.begin(), found, db.commit()).await?;
    let tag = |row: &Row| Ok((table.key_of_row(&Key::from(row.try_get::<_, &str>(0)?)), row.try_get(1)?));
    rows.iter().map(tag).collect()
}

pub(super) async fn first_run_at(db: &Db, source: &SourceName, command: Option<&str>) -> Sql<Option<Timestamp>> {
    let select = "SELECT min(started_at) FROM ingest_runs WHERE source = $1 AND command = COALESCE($2, command)";
    let name = source.as_str();
    let params = [(&name as _, Type::TEXT), (&command as _, Type::TEXT)];
    let ((), rows, ()) = try_join3(db.begin(), db.query(select, &params), db.commit()).await?;
    time(&rows[0], 0)
}

pub(super) async fn sizes(db: &Db) -> Sql<StoreSizes> {
    let select = "
        SELECT pg_database_size(current_database()), COALESCE(sum(pg_total_relation_size(c.oid)), 0)::bigint
        FROM pg_class AS c WHERE c.relkind = 'r' AND c.relname = ANY($1)
          AND c.relnamespace = to_regnamespace(quote_ident(current_schema()))";
    let control = tables().iter().map(|table| table.name);
    let control: Vec<_> = control.filter(|name| name.starts_with("ingest_") || *name == "ledger").collect();
    let params = [(&control as _, Type::TEXT_ARRAY)];
    let blobs = "
        SELECT COALESCE(sum(size_bytes), 0)::bigint
        FROM (SELECT max(size_bytes) AS size_bytes FROM mail_attachments GROUP BY sha256) AS b";
    let (sizes, blobs) = (db.query(select, &params), db.query(blobs, &[]));
    let ((), rows, blobs, ()) = try_join4(db.begin(), sizes, blobs, db.commit()).await?;
    let (database_bytes, control_bytes) = (count(&rows[0], 0)?, count(&rows[0], 1)?);
    Ok(StoreSizes { database_bytes, control_bytes, blob_bytes: count(&blobs[0], 0)? })
}
