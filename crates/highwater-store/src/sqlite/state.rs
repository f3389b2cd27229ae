//! What is told of a mirror that stays current: the state of its feed, the marks of its rows, how much room it takes.

use std::collections::BTreeMap;

use highwater_core::{Key, KeySet, Rescan, SourceName, StreamId, Timestamp, schema::Table};
use rusqlite::{Connection, OptionalExtension, params};

use super::{error::Sql, places, rescans, segments::time, shards::Shards, streams, table::KeyParam, windows};
use crate::{
    LiveState, StoreSizes,
    rules::{ENDED_AT_ONCE, key_column},
};

pub(super) fn live(db: &Connection, stream: &StreamId) -> Sql<LiveState> {
    let (rescanned, differed) = sums(db, stream)?;
    Ok(LiveState {
        heard_until: streams::live_cursor(db, stream)?.map(Timestamp::from_millis),
        windows: windows::unclosed(db, stream)?.into_iter().map(|row| row.window).collect(),
        rescans: passes(db, stream, "sealed_at IS NULL ORDER BY reason = 'key', rescan_id", ENDED_AT_ONCE)?,
        last_rescan: passes(db, stream, LAST, 1)?.pop(),
        last_scheduled_at: passes(db, stream, LAST_SCHEDULED, 1)?.pop().map(|pass| pass.began_at),
        history_upto: passes(db, stream, LAST_HISTORY, 1)?.pop().map(|pass| pass.span.end()),
        rescanned,
        differed,
    })
}

const LAST: &str = "sealed_at IS NOT NULL AND reason IN ('scheduled', 'blind') ORDER BY sealed_at DESC, rescan_id DESC";
const LAST_SCHEDULED: &str = "reason = 'scheduled' ORDER BY began_at DESC, rescan_id DESC";
const LAST_HISTORY: &str = "reason = 'history' ORDER BY began_at DESC, rescan_id DESC";

fn passes(db: &Connection, stream: &StreamId, which: &str, limit: u32) -> Sql<Vec<Rescan>> {
    let columns = rescans::COLUMNS;
    let mut select = db.prepare_cached(&format!(
        "SELECT {columns} FROM ingest_rescans WHERE source = ?1 AND stream = ?2 AND {which} LIMIT ?3"
    ))?;
    let rows = select.query(params![stream.source.as_str(), stream.stream.as_str(), limit])?;
    Ok(rescans::collect(rows)?.into_iter().map(|pass| pass.rescan).collect())
}

fn sums(db: &Connection, stream: &StreamId) -> Sql<(u64, u64)> {
    let mut select = db.prepare_cached(
        "SELECT COALESCE(sum(items), 0), COALESCE(sum(changed), 0) FROM ingest_rescans
         WHERE source = ?1 AND stream = ?2 AND sealed_at IS NOT NULL AND reason <> 'key'",
    )?;
    let names = [stream.source.as_str(), stream.stream.as_str()];
    let sums = select.query_row(names, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    Ok((sums.0.cast_unsigned(), sums.1.cast_unsigned()))
}

pub(super) fn tags(db: &Connection, table: &'static Table, keys: &KeySet) -> Sql<BTreeMap<Key, String>> {
    let (name, key) = (table.name, key_column(table).name);
    match keys {
        KeySet::Range(span) => {
            let mut select = db.prepare_cached(&format!(
                "SELECT \"{key}\", etag FROM \"{name}\" WHERE \"{key}\" >= ?1 AND \"{key}\" < ?2 AND etag IS NOT NULL"
            ))?;
            let tag = |row: &rusqlite::Row<'_>| Ok((Key::Number(row.get(0)?), row.get(1)?));
            Ok(select.query_map([span.start().0, span.end().0], tag)?.collect::<Result<_, _>>()?)
        }
        KeySet::List(keys) => {
            let mut select = db.prepare_cached(&format!("SELECT etag FROM \"{name}\" WHERE \"{key}\" = ?1"))?;
            let mut tags = BTreeMap::new();
            for key in keys {
                let tag: Option<String> =
                    select.query_row([KeyParam(&table.row_key(key))], |row| row.get(0)).optional()?.flatten();
                tags.extend(tag.map(|tag| (key.clone(), tag)));
            }
            Ok(tags)
        }
    }
}

pub(super) fn first_run_at(db: &Connection, source: &SourceName, command: Option<&str>) -> Sql<Option<Timestamp>> {
    let first = "SELECT min(started_at) FROM ingest_runs WHERE source = ?1 AND command = COALESCE(?2, command)";
    Ok(db.query_row(first, params![source.as_str(), command], |row| time(row, 0))?)
}

/// Rows of the tables that grow, and the bytes that one takes with its share of the indexes: measured with `dbstat`,
/// which would read every page of them.
const CONTROL: [(&str, u64); 4] = [
    ("SELECT count(*) FROM ingest_segments", 140),
    ("SELECT count(*) FROM ingest_exceptions", 195),
    (LEDGER_LINES, 310),
    (NAMES, 60),
];

/// Numbered without gaps, so that the last number of each is the count.
const LEDGER_LINES: &str = "
    SELECT COALESCE(sum((SELECT max(seq) FROM ledger AS l WHERE l.source = s.source)), 0)
    FROM (SELECT DISTINCT source FROM ingest_streams) AS s";
const NAMES: &str = "
    SELECT COALESCE(sum((SELECT max(seq) FROM ingest_names AS n WHERE n.source = s.source AND n.stream = s.stream)), 0)
    FROM ingest_streams AS s";

pub(super) fn sizes(db: &Connection, shards: &Shards) -> Sql<StoreSizes> {
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned);
    let own_bytes = number("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")?;
    let size = |(_, file): &(_, String)| shards.path_of(file).metadata().map_or(0, |file| file.len());
    let database_bytes = own_bytes + places::files(db)?.iter().map(size).sum::<u64>();
    let mut control_bytes = 0;
    for (rows, bytes) in CONTROL {
        control_bytes += number(rows)? * bytes;
    }
    let blob_bytes = number(
        "SELECT COALESCE(sum(size_bytes), 0)
         FROM (SELECT max(size_bytes) AS size_bytes FROM mail_attachments GROUP BY sha256)",
    )?;
    Ok(StoreSizes { database_bytes, control_bytes: control_bytes.min(database_bytes), blob_bytes })
}
