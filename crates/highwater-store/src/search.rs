//! Full text over the mirror. [`TextStore`] is what a store reads for it, [`SearchIndex`] where the words are kept: derived
//! from rows, beside the mirror, never part of the proof, and made again whenever it is lost.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use highwater_core::{
    Key, Timestamp, Value,
    schema::{ColumnType, Table},
    search::{Query, Searchable, TEXT_MAX, Words},
};

use crate::{Page, Result, Store, rules::key_column};

/// A store as the texts it holds.
pub trait TextStore: Store {
    /// Keys and checks of rows in order of their key, a page at a time.
    fn checks<'a>(&'a self, table: &'static Table, page: Page<Key>) -> BoxFuture<'a, Result<Vec<(Key, i64)>>>;
    /// What can be searched of the rows with these keys: of as many, from the first on, as memory allows.
    fn texts<'a>(
        &'a self,
        table: &'static Table,
        searchable: &'static Searchable,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Texts>>;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// In any order; none of a key that has no row, or whose texts are lost.
    pub rows: Vec<TextRow>,
    /// How many of the keys were looked at; never none.
    pub looked_at: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRow {
    pub key: Key,
    pub values: Vec<Value>,
    /// Texts of what belongs to it, in order.
    pub beside: Vec<String>,
}

/// An index of words. Every method that writes is one short transaction and may be called again without harm; several
/// processes may do so at once.
pub trait SearchIndex: Send + Sync {
    /// The documents of a collection, each with the check of the row it was made from, in order of their key.
    fn known<'a>(&'a self, of: &'a Collection, page: Page<Key>) -> BoxFuture<'a, Result<Vec<(Key, i64)>>>;
    /// What is there already, made from the same row, is left alone.
    fn amend<'a>(&'a self, of: &'a Collection, amendment: Arc<Indexing>) -> BoxFuture<'a, Result<()>>;
    /// The best of what answers a query: those of the same rank with the latest first.
    fn find<'a>(&'a self, query: &'a Query, among: &'a [Collection], limit: u32) -> BoxFuture<'a, Result<Found>>;
    fn count<'a>(&'a self, among: &'a [Collection]) -> BoxFuture<'a, Result<u64>>;
    /// Begins anew, with nothing.
    fn clear(&self) -> BoxFuture<'_, Result<()>>;
}

/// Whether an index may be made and changed, or only asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Made if there is none, or one of another version.
    Refresh,
    AsIs,
}

/// The rows of a table that are one source's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    pub(crate) name: String,
    /// Keys are numbers, and ordered as such.
    pub(crate) is_numbered: bool,
}

impl Collection {
    pub fn of(table: &'static Table) -> Self {
        let name = table.scope.map_or_else(|| table.name.to_owned(), |scope| format!("{}:{scope}", table.name));
        Collection { name, is_numbered: key_column(table).kind == ColumnType::Int }
    }

    /// As the tables list them.
    pub fn order(&self, one: &Key, other: &Key) -> std::cmp::Ordering {
        match (one.number(), other.number()) {
            (Some(one), Some(other)) if self.is_numbered => one.cmp(&other),
            _ => one.to_string().cmp(&other.to_string()),
        }
    }
}

/// How a collection is to change.
#[derive(Clone, Debug, Default)]
pub struct Indexing {
    /// New, or in place of those with the same key.
    pub put: Vec<Document>,
    pub gone: Vec<Key>,
}

#[derive(Clone, Debug)]
pub struct Document {
    pub key: Key,
    pub row_check: i64,
    pub at: Option<Timestamp>,
    pub words: Words,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// How many there are; the hits may be fewer.
    pub total: u64,
    pub hits: Vec<Hit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its place among those that were asked for.
    pub collection: usize,
    pub key: Key,
}

/// In bytes: what is read at once, but for a single row that is larger.
pub(crate) const TEXTS_AT_ONCE: usize = 16 << 20;

/// The beginning of a text, as much as is looked at.
pub(crate) fn shortened(value: Value) -> Value {
    match value {
        Value::Text(text) => match text.char_indices().nth(TEXT_MAX) {
            Some((end, _)) => Value::text(&text[..end]),
            None => Value::Text(text),
        },
        value => value,
    }
}

/// Of another shape than this program knows: it is made again.
pub(crate) const INDEX_VERSION: i64 = 1;

pub(crate) const NO_INDEX: &str = "there is no search index yet, or it is one of another version";
