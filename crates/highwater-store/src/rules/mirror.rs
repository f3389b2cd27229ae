//! Rows of mirrored objects, apart from any SQL. Whether a row changed is the core's to say.

use std::{borrow::Cow, cmp::Ordering, collections::BTreeSet, ptr, time::Duration};

use highwater_core::{
    Ages, BatchCounts, Body, Change, Edit, Key, Note, Record, Settlement, StreamId, Timestamp, Value, Verdict,
    has_repeats,
    planted::{Bug, planted},
    schema::{Column, ColumnType, Table},
    without_repeats,
};

use crate::{ErrorKind, LedgerEntry, Result, StoreError};

/// What storing a batch of records did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    pub(crate) new: u64,
    pub(crate) changed: u64,
    pub(crate) unchanged: u64,
    /// To be asked for again: nobody knows which is newer, they or their rows.
    pub(crate) behind: BTreeSet<Key>,
    /// Of the changed ones.
    pub(crate) ages: Ages,
    /// What the ledger says of the new ones.
    pub(crate) notes: Vec<Note>,
    /// Whose derived rows are to be computed anew.
    pub(crate) groups: Vec<Grouped>,
}

/// A table, and the value of the column by which rows of it are taken together.
pub(crate) type Grouped = (&'static Table, String);

/// The group of a row, if something is computed from it.
pub(crate) fn grouped(table: &'static Table, body: &Body) -> Option<Grouped> {
    let place = table.position(table.derived?.group)?;
    body.values.get(place)?.as_text().map(|group| (table, group.to_owned()))
}

/// Who wrote what nobody's lease stands behind because it mends.
pub(crate) const REPAIR: &str = "repair";

/// The line of the ledger that a note becomes.
pub(crate) fn note_entry(stream: &StreamId, note: Note, now: Timestamp, actor: &str) -> LedgerEntry {
    LedgerEntry {
        at: now,
        event_type: note.event_type,
        source: stream.source.clone(),
        entity_type: note.entity_type,
        entity_id: note.entity_id,
        payload: note.payload,
        actor: actor.to_owned(),
    }
}

impl Stored {
    pub(crate) fn note(&mut self, change: Change, record: &Record, now: Timestamp) {
        match change {
            Change::New => self.new += 1,
            Change::Changed => self.changed += 1,
            Change::Unchanged | Change::Reordered => self.unchanged += 1,
            Change::Behind => drop(self.behind.insert(record.key.clone())),
        }
        if change == Change::New {
            self.notes.extend(record.notes.iter().cloned());
        }
        if matches!(change, Change::New | Change::Changed) {
            self.groups.extend(grouped(record.table, &record.body));
        }
        if change == Change::Changed
            && let Some(born) = born(record).filter(|born| *born <= now)
        {
            self.ages.add(now.since(born));
        }
    }

    /// Whether the key of a verdict is not settled by it, because what was found is not to be believed.
    pub(crate) fn leaves_open(&self, settlement: &Settlement) -> bool {
        settlement.verdict == Verdict::Stored && self.behind.contains(&settlement.key)
    }

    /// Rows that were looked at, whatever came of it. All are looked at again, and count then, if some are to be.
    pub(crate) fn seen(&self) -> u64 {
        if self.behind.is_empty() { self.new + self.changed + self.unchanged } else { 0 }
    }

    pub(crate) fn counts(&self) -> BatchCounts {
        BatchCounts {
            new: self.new,
            changed: self.changed,
            unchanged: self.unchanged,
            behind: self.behind.len() as u64,
            ..BatchCounts::default()
        }
    }
}

/// When the object was made, if its table says so.
fn born(record: &Record) -> Option<Timestamp> {
    let place = record.table.position(record.table.time?)?;
    match record.body.values.get(place)? {
        Value::Int(seconds) => seconds.checked_mul(1000).map(Timestamp::from_millis),
        _ => None,
    }
}

/// When records came, and since when they may have been on their way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) now: Timestamp,
    pub(crate) asked_at: Timestamp,
}

/// Clocks of processes that share a store may differ by so much. A row from later than that was stored when a clock was
/// wrong, and does not tell which of the two is newer.
const CLOCKS_APART: Duration = Duration::from_secs(5);

impl Arrival {
    /// How `body` differs from the row it meets. One that came in while this was on its way may be newer or older, so
    /// this is not to be believed.
    pub(crate) fn change(&self, kept: &Kept, body: &Body, table: &Table) -> Change {
        match kept.body.change_to(body, table) {
            Change::Unchanged => Change::Unchanged,
            _ if self.may_be_outrun_by(kept) && !planted(Bug::LateAnswerWins) => Change::Behind,
            change => change,
        }
    }

    fn may_be_outrun_by(&self, kept: &Kept) -> bool {
        kept.last_fetched_at > self.asked_at && kept.last_fetched_at <= self.now + CLOCKS_APART
    }
}

/// A row as it lies in its table.
pub(crate) struct Kept {
    pub(crate) body: Body,
    pub(crate) last_fetched_at: Timestamp,
    pub(crate) last_changed_at: Timestamp,
    pub(crate) row_check: i64,
    pub(crate) etag: Option<String>,
}

impl Kept {
    /// Changes the row by what was told of it; whether it is another now. One that stays as it is bears the time as well:
    /// an answer that was asked for before must not undo what was told. Damage is not made sound by it.
    pub(crate) fn edit<'e>(
        &mut self,
        table: &Table,
        edits: impl IntoIterator<Item = &'e Edit>,
        now: Timestamp,
    ) -> bool {
        let is_sound = self.row_check == self.body.checksum();
        let mut differs = false;
        for edit in edits {
            differs |= edit.apply(&mut self.body, table);
        }
        if differs {
            self.last_changed_at = now;
        }
        if is_sound {
            self.row_check = self.body.checksum();
        }
        self.last_fetched_at = now.max(self.last_fetched_at);
        differs
    }
}

/// Stored in this order, records fill pages from left to right.
pub(crate) fn by_place(a: &Record, b: &Record) -> Ordering {
    // Those of a batch are nearly always of one table.
    let tables = if ptr::eq(a.table, b.table) { Ordering::Equal } else { a.table.name.cmp(b.table.name) };
    tables.then_with(|| a.key.cmp(&b.key))
}

/// The column that names a row. Sources describe tables with exactly one.
pub(crate) fn key_column(table: &'static Table) -> &'static Column {
    table.key_columns().next().expect("a table names the column of its key").1
}

/// A column that every table of mirrored objects has.
pub(crate) const FETCHED_AT: &str = "last_fetched_at";

/// What the columns of these names hold.
pub(crate) fn kinds_of(table: &Table, columns: &[&'static str]) -> Result<Vec<ColumnType>> {
    let kind = |name: &&'static str| match table.position(name) {
        Some(place) => Ok(table.columns[place].kind),
        None if *name == FETCHED_AT => Ok(ColumnType::Time),
        None => Err(StoreError::new(ErrorKind::Refused, format!("{} has no column {name}", table.name))),
    };
    columns.iter().map(kind).collect()
}

/// The key that a value names. A text column may hold digits, which are a number to us.
pub(crate) fn key_of(value: &Value) -> Key {
    match value {
        Value::Int(number) => Key::Number(*number),
        Value::Text(text) => Key::from(text.as_str()),
        Value::Json(text) => Key::from(text.as_str()),
        Value::Null | Value::Bool(_) | Value::Ints(_) | Value::Bytes(_) | Value::Time(_) => Key::from(""),
    }
}

/// With each edge once: the same list must come back from the table.
pub(crate) fn distinct(body: &Body) -> Cow<'_, Body> {
    if !has_repeats(&body.edges) {
        return Cow::Borrowed(body);
    }
    Cow::Owned(Body { values: body.values.clone(), edges: without_repeats(body.edges.clone()) })
}

/// Roughly what a record takes in the log.
pub(crate) fn size_of(record: &Record) -> usize {
    let value = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::Json(text) => text.len(),
        Value::Ints(numbers) => 8 * numbers.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Time(_) => 8,
    };
    let beside = record.sides.iter().flat_map(|side| &side.values);
    record.body.values.iter().chain(beside).map(value).sum::<usize>() + 24 * record.body.edges.len()
}
