//! Rows on their way between two stores: cells that mean the same on both.

use std::cmp::Ordering;

use crate::{
    ErrorKind, StoreError,
    ledger::payload_text,
    migrations::{Kind, Shape},
    rules::canonical,
};

/// In the order of the table's columns.
pub type Row = Vec<Cell>;

/// Times are milliseconds, JSON is text.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Int(i64),
    Real(f64),
    Bool(bool),
    Text(String),
    Ints(Vec<i64>),
    Bytes(Vec<u8>),
}

/// How a table is to change.
#[derive(Clone, Debug, Default)]
pub struct Amendment {
    /// Whole rows, new or in place of those with the same key.
    pub put: Vec<Row>,
    /// Keys of rows that are to go: the cells of the key columns.
    pub gone: Vec<Row>,
}

impl Amendment {
    pub(super) fn len(&self) -> usize {
        self.put.len() + self.gone.len()
    }
}

pub(super) fn key_of(table: &Shape, row: &Row) -> Row {
    table.key.iter().map(|place| row[*place].clone()).collect()
}

/// By key, as both stores list their rows.
pub(super) fn order(table: &Shape, one: &Row, other: &Row) -> Ordering {
    let part = |place: &usize| match (&one[*place], &other[*place]) {
        (Cell::Int(one), Cell::Int(other)) => one.cmp(other),
        (Cell::Text(one), Cell::Text(other)) => one.cmp(other),
        (one, other) => unreachable!("a key is a number or a text, not {one:?} or {other:?}"),
    };
    table.key.iter().map(part).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// The row as it is to lie in any store: JSON in its one spelling, and nobody at work.
pub(super) fn settle(table: &Shape, row: &mut Row) {
    for (cell, column) in row.iter_mut().zip(&table.columns) {
        match cell {
            Cell::Text(text) if column.kind == Kind::Json => *text = spelled(table, text),
            // SQLite keeps no sign of zero.
            Cell::Real(number) => *number += 0.0,
            _ => {}
        }
    }
    match table.name {
        "ingest_segments" if is(table, row, "status", "in_progress") => {
            put(table, row, "status", Cell::Text("pending".into()));
            put(table, row, "lease_owner", Cell::Null);
            put(table, row, "heartbeat_at", Cell::Null);
        }
        "ingest_runs" if is(table, row, "outcome", "running") => {
            put(table, row, "outcome", Cell::Text("failed".into()));
        }
        _ => {}
    }
}

/// The ledger's payloads lie as they are hashed; see [`payload_text`].
fn spelled(table: &Shape, text: &str) -> String {
    match (table.name, serde_json::from_str(text)) {
        ("ledger", Ok(payload)) => payload_text(&payload),
        _ => canonical(text),
    }
}

fn is(table: &Shape, row: &Row, column: &str, word: &str) -> bool {
    table.place(column).is_some_and(|place| matches!(&row[place], Cell::Text(text) if text == word))
}

fn put(table: &Shape, row: &mut Row, column: &str, cell: Cell) {
    if let Some(place) = table.place(column) {
        row[place] = cell;
    }
}

/// A cell holds what its column cannot.
pub(crate) fn unfit(table: &Shape, place: usize) -> StoreError {
    let what = format!("{}.{} holds what it cannot hold", table.name, table.columns[place].name);
    StoreError::new(ErrorKind::Corrupt, what)
}

/// How many rows to read at once, so that a page stays small whatever the rows are like.
pub(crate) struct Pace {
    pub(crate) rows: usize,
}

/// As many as the stores write in one transaction.
pub(super) const PAGE_ROWS: usize = 1_000;
const PAGE_BYTES: usize = 4 << 20;
const FIRST_ROWS: usize = 100;

impl Pace {
    pub(crate) fn new() -> Pace {
        Pace { rows: FIRST_ROWS }
    }

    pub(crate) fn learn(&mut self, page: &[Row]) {
        let bytes: usize = page.iter().flatten().map(size_of).sum();
        if let Some(each) = bytes.checked_div(page.len()) {
            self.rows = (PAGE_BYTES / each.max(1)).clamp(1, PAGE_ROWS);
        }
    }
}

fn size_of(cell: &Cell) -> usize {
    match cell {
        Cell::Text(text) => text.len(),
        Cell::Ints(numbers) => 8 * numbers.len(),
        Cell::Bytes(bytes) => bytes.len(),
        Cell::Null | Cell::Int(_) | Cell::Real(_) | Cell::Bool(_) => 8,
    }
}
