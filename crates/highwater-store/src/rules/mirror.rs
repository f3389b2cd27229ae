//! Rows of mirrored objects, apart from any SQL. Whether a row changed is the core's to say.

use std::{borrow::Cow, collections::BTreeSet};

use highwater_core::{
    AgeCounts, BatchCounts, Body, Change, Key, Record, Timestamp, Value,
    schema::{Column, Table},
};

/// What storing a batch of records did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stored {
    pub(crate) new: u64,
    pub(crate) changed: u64,
    pub(crate) unchanged: u64,
    /// Of the changed ones.
    pub(crate) ages: AgeCounts,
}

impl Stored {
    pub(crate) fn note(&mut self, change: Change, record: &Record, now: Timestamp) {
        *match change {
            Change::New => &mut self.new,
            Change::Changed => &mut self.changed,
            Change::Unchanged | Change::Reordered => &mut self.unchanged,
        } += 1;
        if change == Change::Changed
            && let Some(born) = born(record).filter(|born| *born <= now)
        {
            self.ages.add(now.since(born));
        }
    }

    /// Rows that were looked at, whatever came of it.
    pub(crate) fn seen(&self) -> u64 {
        self.new + self.changed + self.unchanged
    }

    pub(crate) fn counts(&self) -> BatchCounts {
        BatchCounts { new: self.new, changed: self.changed, unchanged: self.unchanged, ..BatchCounts::default() }
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
    /// None for what is news at any rate.
    pub(crate) asked_at: Option<Timestamp>,
}

impl Arrival {
    /// Somebody was told later what the row says: the answer that took longer is the older one.
    pub(crate) fn is_behind(&self, kept: &Kept) -> bool {
        self.asked_at.is_some_and(|asked_at| kept.last_fetched_at > asked_at)
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

/// Records are stored in this order, which fills pages from left to right.
pub(crate) fn place(record: &Record) -> (&'static str, &Key) {
    (record.table.name, &record.key)
}

/// The column that names a row. Sources describe tables with exactly one.
pub(crate) fn key_column(table: &'static Table) -> &'static Column {
    table.key_columns().next().expect("a table names the column of its key").1
}

/// The key that a value names. A text column may hold digits, which are a number to us.
pub(crate) fn key_of(value: &Value) -> Key {
    match value {
        Value::Int(number) => Key::Number(*number),
        Value::Text(text) | Value::Json(text) => Key::from(text.as_str()),
        Value::Null | Value::Bool(_) | Value::Ints(_) => Key::from(""),
    }
}

/// A remote may name an edge twice; the first place counts. The same list must come back from the table.
pub(crate) fn distinct(body: &Body) -> Cow<'_, Body> {
    let mut seen = BTreeSet::new();
    if body.edges.len() < 2 || body.edges.iter().all(|edge| seen.insert(*edge)) {
        return Cow::Borrowed(body);
    }
    seen.clear();
    let edges = body.edges.iter().copied().filter(|edge| seen.insert(*edge)).collect();
    Cow::Owned(Body { values: body.values.clone(), edges })
}

/// Roughly what a record takes in the log.
pub(crate) fn size_of(record: &Record) -> usize {
    let value = |value: &Value| match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        Value::Ints(numbers) => 8 * numbers.len(),
        Value::Null | Value::Bool(_) | Value::Int(_) => 8,
    };
    record.body.values.iter().map(value).sum::<usize>() + 24 * record.body.edges.len()
}
