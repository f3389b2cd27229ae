//! Following a remote's own record of changes.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{try_join, try_join3};
use highwater_core::{
    Exception, ExceptionState, History, Key, Lease, Position, Purpose, SegmentId, SegmentStatus, StreamId, Value,
    schema::{Column, ColumnType, SideTable, Table},
};
use tokio_postgres::types::Type;

use super::{
    cells::{Keys, Time, time},
    columns::value_of,
    derived, edits,
    error::{Fault, Sql},
    exceptions::{self, Changes, Place},
    ledger,
    link::{Db, Param},
    pool::quoted,
    segments, settle,
};
use crate::{
    Applied, Followed, Page, Tidings,
    rules::{self, SegmentRow, TOLD, Then, key_column, key_of, kinds_of, note_entry},
};

pub(super) async fn followed(db: &Db, stream: &StreamId) -> Sql<Followed> {
    let ((), found, ()) = try_join3(db.begin(), read(db, stream, ""), db.commit()).await?;
    Ok(found)
}

async fn read(db: &Db, stream: &StreamId, lock: &str) -> Sql<Followed> {
    let select = format!(
        "SELECT live_cursor, reconciled_at, expected FROM ingest_streams WHERE source = $1 AND stream = $2 {lock}"
    );
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let rows = db.query(&select, &[(&source, Type::TEXT), (&name, Type::TEXT)]).await?;
    match rows.first() {
        Some(row) => {
            let expected = row.try_get::<_, Option<i64>>(2)?.map(i64::cast_unsigned);
            Ok(Followed { upto: row.try_get(0)?, reconciled_at: time(row, 1)?, expected })
        }
        None => Ok(Followed::default()),
    }
}

pub(super) async fn follow_from(db: &Db, stream: &StreamId, from: &str, expected: Option<u64>) -> Sql<()> {
    let ((), known) = try_join(db.begin(), read(db, stream, "FOR NO KEY UPDATE")).await?;
    if known.upto.is_none() {
        move_to(db, stream, from).await?;
        let (source, name) = (stream.source.as_str(), stream.stream.as_str());
        let expected = expected.map(u64::cast_signed);
        let note = "UPDATE ingest_streams SET expected = $3 WHERE source = $1 AND stream = $2";
        db.execute(note, &[(&source, Type::TEXT), (&name, Type::TEXT), (&expected, Type::INT8)]).await?;
    }
    db.commit().await
}

async fn move_to(db: &Db, stream: &StreamId, upto: &str) -> Sql<()> {
    let (source, name) = (stream.source.as_str(), stream.stream.as_str());
    let cursor: [Param<'_>; 3] = [(&source, Type::TEXT), (&name, Type::TEXT), (&upto, Type::TEXT)];
    let mailbox: [Param<'_>; 2] = [(&source, Type::TEXT), (&upto, Type::TEXT)];
    try_join(
        db.execute("UPDATE ingest_streams SET live_cursor = $3 WHERE source = $1 AND stream = $2", &cursor),
        db.execute("UPDATE mailboxes SET last_history_id = $2 WHERE source = $1", &mailbox),
    )
    .await?;
    Ok(())
}

/// What is to be written about keys that are not stored.
#[derive(Default)]
struct Unstored {
    places: Vec<Place>,
    exceptions: Vec<Exception>,
    /// Those that had one before.
    known: BTreeSet<Key>,
    /// Those that are being tried, and stay whose business they are.
    told: Vec<(Place, Exception)>,
    owners: BTreeSet<SegmentId>,
}

/// Locks as everybody does: segments, rows, the stream's row, the ledger. Who comes second finds another cursor, and
/// leaves everything as it is.
pub(super) async fn apply(db: &Db, tidings: &Tidings) -> Sql<Applied> {
    let places: Vec<_> = tidings.tidings.iter().map(|tiding| (tidings.stream.clone(), tiding.key.clone())).collect();
    let ((), seen) = try_join(db.begin(), exceptions::find(db, &places)).await?;
    let ids: BTreeSet<_> = seen.iter().map(|(_, exception)| exception.segment).collect();
    let (locked, seen) = try_join(segments::lock(db, &ids), exceptions::find(db, &places)).await?;
    if seen.iter().any(|(_, exception)| !ids.contains(&exception.segment)) {
        return Err(Fault::Raced);
    }
    if read(db, &tidings.stream, "").await?.upto.as_deref() != Some(&tidings.after) {
        db.commit().await?;
        return Ok(Applied { is_late: true, ..Applied::default() });
    }
    let before: BTreeMap<_, _> = seen.into_iter().map(|((_, key), exception)| (key, exception)).collect();
    let stored = stored(db, tidings).await?;
    let mut applied = Applied::default();
    let mut told = Vec::new();
    let mut unstored = Unstored::default();
    for tiding in &tidings.tidings {
        let known = before.get(&tiding.key);
        match rules::then(tiding, stored.contains(&tiding.key), known.map(|known| known.state)) {
            Then::Nothing => {}
            Then::Edit => told.push((tiding.key.clone(), tidings.table, tiding.edits.clone())),
            Then::Want => {
                applied.wanted += 1;
                unstored.put(tidings, &tiding.key, ExceptionState::RetryWait, TOLD, known);
            }
            Then::Again => unstored.tell(tidings, known),
            Then::Exclude { reason } => {
                applied.excluded += 1;
                unstored.put(tidings, &tiding.key, ExceptionState::Excluded, reason, known);
            }
        }
    }
    let groups = edits::edit(db, &told, tidings.now).await?;
    applied.edited = groups.edited;
    let notes = derived::refresh(db, &groups.groups.iter().collect::<Vec<_>>()).await?;
    unstored.write(db, tidings, &locked).await?;
    let notes = notes.into_values().map(|note| note_entry(&tidings.stream, note, tidings.now, "highwater"));
    let entries: Vec<_> = notes.chain(tidings.entries.iter().cloned()).collect();
    // Looked at again behind the lock: somebody may have applied the same meanwhile.
    if read(db, &tidings.stream, "FOR NO KEY UPDATE").await?.upto.as_deref() != Some(&tidings.after) {
        return Err(Fault::Raced);
    }
    if let Some(upto) = &tidings.upto {
        move_to(db, &tidings.stream, upto).await?;
    }
    if tidings.is_reconciled {
        let (source, stream) = (tidings.stream.source.as_str(), tidings.stream.stream.as_str());
        let note = "UPDATE ingest_streams SET reconciled_at = $3 WHERE source = $1 AND stream = $2";
        let at = Time(tidings.now);
        db.execute(note, &[(&source, Type::TEXT), (&stream, Type::TEXT), (&at, Type::TIMESTAMPTZ)]).await?;
    }
    ledger::append(db, &entries).await?;
    db.commit().await?;
    Ok(applied)
}

async fn stored(db: &Db, tidings: &Tidings) -> Sql<BTreeSet<Key>> {
    let column = key_column(tidings.table);
    let (name, key) = (quoted(tidings.table.name), quoted(column.name));
    let asked: Vec<_> = tidings.tidings.iter().map(|tiding| tidings.table.row_key(&tiding.key)).collect();
    let keys = Keys::of(column.kind, asked.iter());
    let select = format!("SELECT {key}::text FROM {name} WHERE {key} = ANY($1)");
    let rows = db.query(&select, &[keys.param()]).await?;
    let key = |row: &tokio_postgres::Row| -> Sql<Key> {
        Ok(tidings.table.key_of_row(&Key::from(row.try_get::<_, &str>(0)?)))
    };
    rows.iter().map(key).collect()
}

impl Unstored {
    fn put(
        &mut self,
        tidings: &Tidings,
        key: &Key,
        state: ExceptionState,
        reason: &'static str,
        known: Option<&Exception>,
    ) {
        if let Some(known) = known {
            self.known.insert(key.clone());
            self.owners.insert(known.segment);
        }
        self.places.push((tidings.stream.clone(), key.clone()));
        self.exceptions.push(Exception {
            key: key.clone(),
            segment: SegmentId(0),
            state,
            history: History::default(),
            first_seen_at: known.map_or(tidings.now, |known| known.first_seen_at),
            last_tried_at: tidings.now,
            next_retry_at: (state == ExceptionState::RetryWait).then_some(tidings.now),
            reason: reason.into(),
            last_error: None,
        });
    }

    fn tell(&mut self, tidings: &Tidings, known: Option<&Exception>) {
        let told = known.map(|known| Exception { reason: TOLD.into(), last_tried_at: tidings.now, ..known.clone() });
        self.told.extend(told.map(|told| ((tidings.stream.clone(), told.key.clone()), told)));
    }

    async fn write(mut self, db: &Db, tidings: &Tidings, locked: &segments::Locked) -> Sql<()> {
        let told = self.told.iter().map(|(place, exception)| (place, exception)).collect();
        Changes { updated: told, ..Changes::default() }.write(db).await?;
        if self.exceptions.is_empty() {
            return Ok(());
        }
        let segment = lay(db, tidings).await?;
        self.exceptions.iter_mut().for_each(|exception| exception.segment = segment);
        let mut changes = Changes::default();
        for (place, exception) in self.places.iter().zip(&self.exceptions) {
            let list = if self.known.contains(&place.1) { &mut changes.updated } else { &mut changes.added };
            list.push((place, exception));
        }
        changes.write(db).await?;
        let reconsidered = settle::reconsidered(locked, &self.owners);
        self.owners.insert(segment);
        segments::count_unresolved(db, &self.owners).await?;
        segments::put_down(db, &reconsidered).await
    }
}

/// A segment in which nothing is to be listed: its keys are due. One that is done with its keys serves again, so that
/// years of news take no more segments than are open at once; who holds it now is not waited for.
async fn lay(db: &Db, tidings: &Tidings) -> Sql<SegmentId> {
    let reopen = "
        UPDATE ingest_segments SET status = $6, next_retry_at = $7, sealed_at = NULL WHERE segment_id = (
            SELECT segment_id FROM ingest_segments
            WHERE source = $1 AND stream = $2 AND purpose = $3 AND start_pos = $4 AND end_pos = $5
              AND status = 'sealed' AND rescan_id IS NULL
            LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
        RETURNING segment_id";
    let insert = "
        INSERT INTO ingest_segments (source, stream, purpose, start_pos, end_pos, scan_cursor, status, next_retry_at)
        VALUES ($1, $2, $3, $4, $5, $5, $6, $7) RETURNING segment_id";
    let (source, stream) = (tidings.stream.source.as_str(), tidings.stream.stream.as_str());
    let (purpose, status) = (Purpose::Rescan.as_str(), SegmentStatus::RetryWait.as_str());
    let (start, end, at) = (tidings.position.0, tidings.position.plus(1).0, Time(tidings.now));
    let params: [Param<'_>; 7] = [
        (&source, Type::TEXT),
        (&stream, Type::TEXT),
        (&purpose, Type::TEXT),
        (&start, Type::INT8),
        (&end, Type::INT8),
        (&status, Type::TEXT),
        (&at, Type::TIMESTAMPTZ),
    ];
    let mut rows = db.query(reopen, &params).await?;
    if rows.is_empty() {
        rows = db.query(insert, &params).await?;
    }
    Ok(SegmentId(rows[0].try_get(0)?))
}

pub(super) async fn columns(
    db: &Db,
    table: &'static Table,
    columns: &[&'static str],
    page: &Page<Key>,
) -> Sql<Vec<(Key, Vec<Value>)>> {
    let key = key_column(table);
    let kinds = kinds_of(table, columns)?;
    let shown = |(name, kind): (&&str, &ColumnType)| match kind {
        ColumnType::Json => format!("{}::text", quoted(name)),
        _ => quoted(name),
    };
    let named = columns.iter().zip(&kinds).map(shown).collect::<Vec<_>>().join(", ");
    let rows = page_of(db, table, &named, page).await?;
    let found = |row: &tokio_postgres::Row| -> Sql<(Key, Vec<Value>)> {
        let values = kinds.iter().enumerate().map(|(at, kind)| value_of(*kind, row, at)).collect::<Sql<_>>()?;
        Ok((table.key_of_row(&key_of(&value_of(key.kind, row, kinds.len())?)), values))
    };
    rows.iter().map(found).collect()
}

/// These columns, and the key behind them, of a page of a source's own rows.
pub(super) async fn page_of(
    db: &Db,
    table: &'static Table,
    named: &str,
    page: &Page<Key>,
) -> Sql<Vec<tokio_postgres::Row>> {
    let key = key_column(table);
    let within = Within::of(table, page.after.as_ref());
    let select = format!(
        "SELECT {named}, {key} FROM {} WHERE {} ORDER BY {key} LIMIT {}",
        quoted(table.name),
        within.condition(&quoted(key.name)),
        page.limit,
        key = quoted(key.name),
    );
    let params = within.params(key.kind);
    let params: Vec<_> = params.iter().map(Keys::param).collect();
    let ((), rows, ()) = try_join3(db.begin(), db.query(&select, &params), db.commit()).await?;
    Ok(rows)
}

pub(super) async fn side_rows(
    db: &Db,
    side: &'static SideTable,
    of: &'static Table,
    page: &Page<String>,
) -> Sql<Vec<Vec<Value>>> {
    let shown = |column: &Column| match column.kind {
        ColumnType::Json => format!("{}::text", quoted(column.name)),
        _ => quoted(column.name),
    };
    let within = Within::after(of, page.after.as_deref());
    let select = format!(
        "SELECT {} FROM {} WHERE {} ORDER BY {key} LIMIT {}",
        side.columns.iter().map(shown).collect::<Vec<_>>().join(", "),
        quoted(side.name),
        within.condition(&quoted(side.columns[0].name)),
        page.limit,
        key = quoted(side.columns[0].name),
    );
    let params = within.params(side.columns[0].kind);
    let params: Vec<_> = params.iter().map(Keys::param).collect();
    let ((), rows, ()) = try_join3(db.begin(), db.query(&select, &params), db.commit()).await?;
    let row = |row: &tokio_postgres::Row| -> Sql<Vec<Value>> {
        side.columns.iter().enumerate().map(|(place, column)| value_of(column.kind, row, place)).collect()
    };
    rows.iter().map(row).collect()
}

/// The rows of a source after a key. Bounds are sent as arrays of at most one: of any type, and none is no bound.
pub(super) struct Within {
    after: Option<Key>,
    bounds: Option<[String; 2]>,
}

impl Within {
    pub(super) fn of(table: &Table, after: Option<&Key>) -> Self {
        Within { after: after.map(|key| table.row_key(key)), bounds: table.bounds() }
    }

    /// Of something that is called like the rows of a table, after a name.
    pub(super) fn after(table: &Table, name: Option<&str>) -> Self {
        Within { after: name.map(|name| Key::Text(name.into())), bounds: table.bounds() }
    }

    /// With parameters 1 to 3. Only what is to be compared is spelled, so that an index serves.
    pub(super) fn condition(&self, key: &str) -> String {
        let mut parts = vec!["TRUE".to_owned()];
        parts.extend(self.after.as_ref().map(|_| format!("{key} > ($1)[1]")));
        parts.extend(self.bounds.as_ref().map(|_| format!("{key} >= ($2)[1] AND {key} < ($3)[1]")));
        parts.join(" AND ")
    }

    pub(super) fn params(&self, kind: ColumnType) -> [Keys; 3] {
        let bound = |place: usize| self.bounds.as_ref().map(|bounds| Key::Text(bounds[place].as_str().into()));
        [self.after.clone(), bound(0), bound(1)].map(|key| Keys::of(kind, key.iter()))
    }
}

pub(super) async fn cut(db: &Db, lease: &Lease, at: Position) -> Sql<()> {
    let ids = BTreeSet::from([lease.segment]);
    let ((), locked) = try_join(db.begin(), segments::lock(db, &ids)).await?;
    let segment = SegmentRow::held(locked.get(&lease.segment).cloned(), lease)?;
    if at > segment.span.start() && at < segment.span.end() {
        let params: [Param<'_>; 2] = [(&segment.id.0, Type::INT8), (&at.0, Type::INT8)];
        let insert = "INSERT INTO ingest_segments (source, stream, purpose, rescan_id, start_pos, end_pos)
                      SELECT source, stream, purpose, rescan_id, $2, end_pos FROM ingest_segments WHERE segment_id = $1";
        let update = "UPDATE ingest_segments SET end_pos = $2 WHERE segment_id = $1";
        try_join(db.execute(insert, &params), db.execute(update, &params)).await?;
    }
    db.commit().await
}
