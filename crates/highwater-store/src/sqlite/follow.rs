//! Following a remote's own record of changes.

use highwater_core::{
    ExceptionState, History, Key, Lease, Position, Purpose, SegmentId, SegmentStatus, Settlement, StreamId, Tiding,
    Value, Verdict,
    schema::{Column, SideTable, Table},
};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    commit::{count_unresolved, reconsider},
    edits::{self, Edited},
    error::Sql,
    exceptions, places,
    segments::{self, time},
    session::Session,
    shards::{RAW, Shards, TEXTS, is_mail},
    table::{KeyParam, value_of},
};
use crate::{
    Applied, Followed, Page, Tidings,
    rules::{self, TOLD, Then, key_column, key_of, kinds_of},
};

pub(super) fn followed(db: &Connection, stream: &StreamId) -> Sql<Followed> {
    let mut select = db.prepare_cached(
        "SELECT live_cursor, reconciled_at, expected FROM ingest_streams WHERE source = ?1 AND stream = ?2",
    )?;
    let names = [stream.source.as_str(), stream.stream.as_str()];
    let found = select.query_row(names, |row| {
        let expected = row.get::<_, Option<i64>>(2)?.map(i64::cast_unsigned);
        Ok(Followed { upto: row.get(0)?, reconciled_at: time(row, 1)?, expected })
    });
    Ok(found.optional()?.unwrap_or_default())
}

pub(super) fn follow_from(db: &Connection, stream: &StreamId, from: &str, expected: Option<u64>) -> Sql<()> {
    if followed(db, stream)?.upto.is_none() {
        move_to(db, stream, from)?;
        db.prepare_cached("UPDATE ingest_streams SET expected = ?3 WHERE source = ?1 AND stream = ?2")?
            .execute(params![stream.source.as_str(), stream.stream.as_str(), expected.map(u64::cast_signed)])?;
    }
    Ok(())
}

fn move_to(db: &Connection, stream: &StreamId, upto: &str) -> Sql<()> {
    db.prepare_cached("UPDATE ingest_streams SET live_cursor = ?3 WHERE source = ?1 AND stream = ?2")?.execute([
        stream.source.as_str(),
        stream.stream.as_str(),
        upto,
    ])?;
    db.prepare_cached("UPDATE mailboxes SET last_history_id = ?2 WHERE source = ?1")?
        .execute([stream.source.as_str(), upto])?;
    Ok(())
}

pub(super) fn apply(session: &mut Session, tidings: &Tidings) -> Sql<Applied> {
    if followed(&session.db, &tidings.stream)?.upto.as_deref() != Some(&tidings.after) {
        return Ok(Applied { is_late: true, ..Applied::default() });
    }
    let mut applied = Applied::default();
    let mut segment = None;
    let mut edited = Edited::default();
    for tiding in &tidings.tidings {
        match next_step(&session.db, tidings, tiding)? {
            Then::Nothing => {}
            Then::Edit => {
                let (table, now) = (tidings.table, tidings.now);
                edits::edit(session, table, &tiding.key, &tiding.edits, now, &mut edited)?;
            }
            Then::Want => {
                let verdict = Verdict::Retry { at: tidings.now };
                put(&session.db, tidings, &mut segment, &tiding.key, verdict, TOLD)?;
                applied.wanted += 1;
            }
            Then::Again => exceptions::tell(&session.db, &tidings.stream, &tiding.key, TOLD, tidings.now)?,
            Then::Exclude { reason } => {
                put(&session.db, tidings, &mut segment, &tiding.key, Verdict::Excluded, reason)?;
                applied.excluded += 1;
            }
        }
    }
    applied.edited = edited.edited;
    edits::refresh(session, &tidings.stream, edited.groups, tidings.now, "highwater")?;
    for entry in &tidings.entries {
        session.append(entry)?;
    }
    if let Some(id) = segment {
        count_unresolved(&session.db, id)?;
    }
    if let Some(upto) = &tidings.upto {
        move_to(&session.db, &tidings.stream, upto)?;
    }
    if tidings.is_reconciled {
        let (source, stream) = (tidings.stream.source.as_str(), tidings.stream.stream.as_str());
        let mut note = session
            .db
            .prepare_cached("UPDATE ingest_streams SET reconciled_at = ?3 WHERE source = ?1 AND stream = ?2")?;
        note.execute(params![source, stream, tidings.now.as_millis()])?;
    }
    Ok(applied)
}

fn next_step(db: &Connection, tidings: &Tidings, tiding: &Tiding) -> Sql<Then> {
    let (name, key) = (tidings.table.name, key_column(tidings.table).name);
    let mut row = db.prepare_cached(&format!("SELECT 1 FROM \"{name}\" WHERE \"{key}\" = ?1"))?;
    let is_stored = row.exists([KeyParam(&tidings.table.row_key(&tiding.key))])?;
    let excepted = exceptions::find(db, &tidings.stream, &tiding.key)?.map(|exception| exception.state);
    Ok(rules::then(tiding, is_stored, excepted))
}

/// Makes the key the business of the segment of these tidings.
fn put(
    db: &Connection,
    tidings: &Tidings,
    segment: &mut Option<SegmentId>,
    key: &Key,
    verdict: Verdict,
    reason: &'static str,
) -> Sql<()> {
    let owner = match *segment {
        Some(id) => id,
        None => *segment.insert(lay(db, tidings)?),
    };
    let before = exceptions::find(db, &tidings.stream, key)?;
    let state = verdict.exception_state().unwrap_or(ExceptionState::RetryWait);
    let settlement = Settlement { key: key.clone(), verdict, history: History::default(), reason, last_error: None };
    exceptions::put(db, &tidings.stream, owner, &settlement, state, tidings.now)?;
    if let Some(before) = before.filter(|before| before.segment != owner) {
        count_unresolved(db, before.segment)?;
        reconsider(db, before.segment)?;
    }
    Ok(())
}

/// A segment in which nothing is to be listed: its keys are due. One that is done with its keys serves again, so that
/// years of news take no more segments than are open at once.
fn lay(db: &Connection, tidings: &Tidings) -> Sql<SegmentId> {
    let (source, stream) = (tidings.stream.source.as_str(), tidings.stream.stream.as_str());
    let (purpose, status) = (Purpose::Rescan.as_str(), SegmentStatus::RetryWait.as_str());
    let (start, end) = (tidings.position.0, tidings.position.plus(1).0);
    let mut reopen = db.prepare_cached(
        "UPDATE ingest_segments SET status = ?5, next_retry_at = ?6, sealed_at = NULL WHERE segment_id = (
            SELECT segment_id FROM ingest_segments WHERE source = ?1 AND stream = ?2 AND purpose = ?3 AND start_pos = ?4
               AND status = 'sealed' AND rescan_id IS NULL LIMIT 1)
         RETURNING segment_id",
    )?;
    let sealed = params![source, stream, purpose, start, status, tidings.now.as_millis()];
    if let Some(id) = reopen.query_row(sealed, |row| row.get(0).map(SegmentId)).optional()? {
        return Ok(id);
    }
    let mut insert = db.prepare_cached(
        "INSERT INTO ingest_segments (source, stream, purpose, start_pos, end_pos, scan_cursor, status, next_retry_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7) RETURNING segment_id",
    )?;
    let id = insert
        .query_row(params![source, stream, purpose, start, end, status, tidings.now.as_millis()], |row| {
            row.get(0).map(SegmentId)
        })?;
    Ok(id)
}

pub(super) fn columns(
    db: &Connection,
    shards: &mut Shards,
    table: &'static Table,
    columns: &[&'static str],
    page: &Page<Key>,
) -> Sql<Vec<(Key, Vec<Value>)>> {
    let key = key_column(table).name;
    let kinds = kinds_of(table, columns)?;
    let named = columns.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let [first, beyond] = bounds(table);
    let mut select = db.prepare_cached(&format!(
        "SELECT {named}, \"{key}\" FROM \"{}\" WHERE {} ORDER BY \"{key}\" LIMIT ?4",
        table.name,
        within(table, page.after.as_ref())
    ))?;
    let after = page.after.as_ref().map(|key| table.row_key(key));
    let mut rows = select.query(params![after.as_ref().map(KeyParam), first, beyond, page.limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let values = kinds.iter().enumerate().map(|(place, kind)| Ok(value_of(*kind, row.get_ref(place)?)));
        let mut values = values.collect::<rusqlite::Result<Vec<_>>>()?;
        let key = key_of(&value_of(key_column(table).kind, row.get_ref(kinds.len())?));
        if is_mail(table) && columns.iter().any(|name| TEXTS.contains(name)) {
            add_texts(columns, &mut values, shards.texts_of(db, &key.to_string())?);
        }
        found.push((table.key_of_row(&key), values));
    }
    Ok(found)
}

pub(super) fn add_texts(columns: &[&str], values: &mut [Value], texts: Option<[Value; 2]>) {
    for (name, text) in TEXTS.iter().zip(texts.into_iter().flatten()) {
        if let Some(place) = columns.iter().position(|column| column == name) {
            values[place] = text;
        }
    }
}

pub(super) fn side_rows(
    db: &Connection,
    shards: &mut Shards,
    side: &'static SideTable,
    of: &Table,
    page: &Page<String>,
) -> Sql<Vec<Vec<Value>>> {
    if side.name == RAW {
        let condition = condition(side.columns[0].name, page.after.is_some(), of.scope.is_some());
        return raws(db, shards, &condition, bounds(of), page);
    }
    let key = side.columns[0].name;
    let named = side.columns.iter().map(|column| format!("\"{}\"", column.name)).collect::<Vec<_>>().join(", ");
    let [first, beyond] = bounds(of);
    let mut select = db.prepare_cached(&format!(
        "SELECT {named} FROM \"{}\" WHERE {} ORDER BY \"{key}\" LIMIT ?4",
        side.name,
        condition(key, page.after.is_some(), of.scope.is_some())
    ))?;
    let rows = select.query_map(params![page.after, first, beyond, page.limit], |row| {
        let value = |(place, column): (usize, &Column)| Ok(value_of(column.kind, row.get_ref(place)?));
        side.columns.iter().enumerate().map(value).collect()
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Bytes of messages, wherever they lie. Of those that are lost there is no row, and yet more may follow.
fn raws(
    db: &Connection,
    shards: &mut Shards,
    condition: &str,
    [first, beyond]: [Option<String>; 2],
    page: &Page<String>,
) -> Sql<Vec<Vec<Value>>> {
    const NO_LIMIT: i64 = -1;
    let mut select = db.prepare_cached(&format!("{} LIMIT ?4", places::raws(condition)))?;
    let mut lying = select.query(params![page.after, first, beyond, NO_LIMIT])?;
    let mut found = Vec::new();
    while found.len() < page.limit as usize
        && let Some(row) = lying.next()?
    {
        let id: String = row.get(0)?;
        found.extend(shards.raw_at(db, places::away(row.get(1)?), &id)?);
    }
    Ok(found)
}

/// The condition of a source's own rows after a key, with that key, the first and the one beyond as parameters 1 to 3.
/// Only what is to be compared is spelled, and one bound from below, so that an index serves.
pub(super) fn within(table: &'static Table, after: Option<&Key>) -> String {
    condition(key_column(table).name, after.is_some(), table.scope.is_some())
}

pub(super) fn condition(key: &str, has_after: bool, has_scope: bool) -> String {
    let from = match (has_after, has_scope) {
        (true, _) => format!("\"{key}\" > ?1"),
        (false, true) => format!("\"{key}\" >= ?2"),
        (false, false) => "TRUE".to_owned(),
    };
    if has_scope { format!("{from} AND \"{key}\" < ?3") } else { from }
}

pub(super) fn bounds(table: &Table) -> [Option<String>; 2] {
    table.bounds().map_or([None, None], |bounds| bounds.map(Some))
}

pub(super) fn cut(db: &Connection, lease: &Lease, at: Position) -> Sql<()> {
    let segment = segments::held(db, lease)?;
    if at <= segment.span.start() || at >= segment.span.end() {
        return Ok(());
    }
    db.prepare_cached(
        "INSERT INTO ingest_segments (source, stream, purpose, rescan_id, start_pos, end_pos)
         SELECT source, stream, purpose, rescan_id, ?2, end_pos FROM ingest_segments WHERE segment_id = ?1",
    )?
    .execute([segment.id.0, at.0])?;
    db.prepare_cached("UPDATE ingest_segments SET end_pos = ?2 WHERE segment_id = ?1")?
        .execute([segment.id.0, at.0])?;
    Ok(())
}
