//! Brings the index of a table up to date: both are walked in the order of their keys, page by page, and only what is new
//! or made from another row is read. No clock is asked, and nothing is remembered: what was committed is not done again.

use std::{
    cmp::Ordering,
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use highwater_core::{Key, search::Words};
use highwater_sources::search::Searched;
use highwater_store::{Collection, Document, Indexing, Page, SearchIndex, TextRow, TextStore, Texts};

use super::{
    IndexProgress, Result,
    error::{in_index, in_store},
};

/// What an index holds, and what it took to make it so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    pub documents: u64,
    pub added: u64,
    pub changed: u64,
    pub removed: u64,
}

/// Keys and checks: a few hundred kilobytes.
const PAGE: u32 = 5_000;
/// Documents of a transaction, at most: one is short, and a search that is broken off loses no more.
const BATCH: usize = 1_000;

pub(super) async fn refresh(
    store: &dyn TextStore,
    index: &dyn SearchIndex,
    searched: &Searched,
    progress: &IndexProgress,
    indexed: &mut Indexed,
) -> Result<()> {
    let collection = Collection::of(searched.table);
    let (mut rows, mut known) = (Walk::default(), Walk::default());
    let mut due = Due::default();
    let work = Work { store, index, searched, collection: &collection, progress };
    loop {
        if rows.is_due() {
            let page = store.checks(searched.table, rows.page()).await.map_err(in_store)?;
            progress.add_looked_at(page.len());
            rows.take(page);
        }
        if known.is_due() {
            known.take(index.known(&collection, known.page()).await.map_err(in_index)?);
        }
        let order = match (rows.peek(), known.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((row, _)), Some((document, _))) => collection.order(row, document),
        };
        let (row, document) = (rows.next_if(order.is_le()), known.next_if(order.is_ge()));
        due.note(row, document, indexed);
        if due.is_enough() {
            work.settle(std::mem::take(&mut due)).await?;
        }
    }
    work.settle(due).await
}

/// One of the two sides.
#[derive(Default)]
struct Walk {
    page: VecDeque<(Key, i64)>,
    last: Option<Key>,
    is_over: bool,
}

impl Walk {
    fn is_due(&self) -> bool {
        self.page.is_empty() && !self.is_over
    }

    fn page(&self) -> Page<Key> {
        Page { after: self.last.clone(), limit: PAGE }
    }

    fn take(&mut self, page: Vec<(Key, i64)>) {
        self.is_over = page.len() < PAGE as usize;
        self.last = page.last().map(|(key, _)| key.clone()).or(self.last.take());
        self.page = page.into();
    }

    fn peek(&self) -> Option<&(Key, i64)> {
        self.page.front()
    }

    fn next_if(&mut self, is_its_turn: bool) -> Option<(Key, i64)> {
        if is_its_turn { self.page.pop_front() } else { None }
    }
}

/// What is to be done.
#[derive(Default)]
struct Due {
    /// With the check of each row, as it was before its texts are read: if it changes meanwhile, the next search sees that.
    put: Vec<(Key, i64)>,
    gone: Vec<Key>,
}

impl Due {
    fn note(&mut self, row: Option<(Key, i64)>, document: Option<(Key, i64)>, indexed: &mut Indexed) {
        indexed.documents += u64::from(row.is_some());
        match (row, document) {
            (Some((_, check)), Some((_, made_from))) if check == made_from => {}
            (Some(row), document) => {
                *(if document.is_some() { &mut indexed.changed } else { &mut indexed.added }) += 1;
                self.put.push(row);
            }
            (None, Some((key, _))) => {
                indexed.removed += 1;
                self.gone.push(key);
            }
            (None, None) => {}
        }
    }

    fn is_enough(&self) -> bool {
        self.put.len() >= BATCH || self.gone.len() >= BATCH
    }
}

struct Work<'a> {
    store: &'a dyn TextStore,
    index: &'a dyn SearchIndex,
    searched: &'a Searched,
    collection: &'a Collection,
    progress: &'a IndexProgress,
}

impl Work<'_> {
    async fn settle(&self, due: Due) -> Result<()> {
        let Due { put, gone } = due;
        let keys: Vec<Key> = put.iter().map(|(key, _)| key.clone()).collect();
        let mut rest = &keys[..];
        let mut gone = Some(self.still_gone(gone).await?).filter(|gone| !gone.is_empty());
        while !rest.is_empty() || gone.is_some() {
            let mut amendment = Indexing { put: Vec::new(), gone: gone.take().unwrap_or_default() };
            if !rest.is_empty() {
                let texts = self.texts(rest).await?;
                self.progress.add_indexed(texts.looked_at);
                rest = &rest[texts.looked_at.min(rest.len())..];
                amendment.put = texts.rows.into_iter().filter_map(|row| self.document(row, &put)).collect();
            }
            self.index.amend(self.collection, Arc::new(amendment)).await.map_err(in_index)?;
        }
        Ok(())
    }

    /// What was mirrored since the rows were listed may have been indexed by another search.
    async fn still_gone(&self, mut gone: Vec<Key>) -> Result<Vec<Key>> {
        let mut there = HashSet::new();
        let mut rest = &gone[..];
        while !rest.is_empty() {
            let texts = self.texts(rest).await?;
            rest = &rest[texts.looked_at.min(rest.len())..];
            there.extend(texts.rows.into_iter().map(|row| row.key));
        }
        gone.retain(|key| !there.contains(key));
        Ok(gone)
    }

    async fn texts(&self, keys: &[Key]) -> Result<Texts> {
        self.store.texts(self.searched.table, self.searched.searchable, keys).await.map_err(in_store)
    }

    fn document(&self, row: TextRow, checks: &[(Key, i64)]) -> Option<Document> {
        let place = checks.binary_search_by(|(key, _)| self.collection.order(key, &row.key)).ok()?;
        let entry = (self.searched.searchable.read)(&row.values, &row.beside);
        let words = Words::of(entry.texts.iter().map(|(field, text)| (*field, text.as_str())));
        Some(Document { key: row.key, row_check: checks[place].1, at: entry.at, words })
    }
}
