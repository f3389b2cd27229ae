//! Moving a whole mirror from one store to another, table by table, until both sides have the same rows. What a store
//! has to offer for that is [`Content`]; how it reads and writes is its own affair.

mod cells;
mod digest;
mod feed;
mod merge;
mod progress;

use futures_util::future::{BoxFuture, try_join};

pub use cells::{Amendment, Cell, Row};
pub(crate) use cells::{Pace, unfit};
pub use progress::CopyProgress;

use self::{digest::Tally, feed::Feed};
use crate::{
    ErrorKind, Result, Store, StoreError,
    migrations::{Shape, tables},
};

/// A store as what it holds: rows of cells by table, and the mark of a copy that has not come to its end.
pub trait Content: Store {
    /// For people, and to know the same store again; without a password.
    fn name(&self) -> String;
    /// Processes at work on it beside this one, by host and pid.
    fn others(&self) -> BoxFuture<'_, Result<Vec<String>>>;
    /// Keeps everybody from writing.
    fn hold(&self) -> BoxFuture<'_, Result<Box<dyn Hold + '_>>>;
    fn count<'a>(&'a self, table: &'static Shape) -> BoxFuture<'a, Result<u64>>;
    /// All rows in the order of their key, whose texts are ordered by their bytes.
    fn scan<'a>(&'a self, table: &'static Shape) -> BoxFuture<'a, Result<Box<dyn Scan + 'a>>>;
    /// One transaction. Refused where no copy is under way.
    fn amend<'a>(&'a self, table: &'static Shape, amendment: Amendment) -> BoxFuture<'a, Result<()>>;
    /// What is being copied into this store.
    fn unfinished(&self) -> BoxFuture<'_, Result<Option<String>>>;
    /// Marks the store: until the copy ends, it opens for nothing else.
    fn begin_copy<'a>(&'a self, source: &'a str) -> BoxFuture<'a, Result<()>>;
    /// Takes the mark away, and lets new rows be numbered after the copied ones.
    fn end_copy(&self) -> BoxFuture<'_, Result<()>>;
}

/// Nobody writes as long as it lives.
pub trait Hold: Send {
    /// Whether it has lasted until now.
    fn check(&mut self) -> BoxFuture<'_, Result<()>>;
}

/// A walk through a table.
pub trait Scan: Send {
    /// The next rows; none at the end.
    fn page(&mut self) -> BoxFuture<'_, Result<Vec<Row>>>;
}

/// What came of a copy. If anything is not the same, the target stays marked as unfinished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyReport {
    pub tables: Vec<TableReport>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReport {
    pub name: &'static str,
    /// In the source.
    pub rows: u64,
    /// SHA-256 over all rows of the source, in hexadecimal.
    pub digest: String,
    pub is_same: bool,
}

impl CopyReport {
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    pub fn differing(&self) -> impl Iterator<Item = &TableReport> {
        self.tables.iter().filter(|table| !table.is_same)
    }
}

/// Processes at work, and what they have taken upon themselves, are not part of a mirror; nor is in which file of a store
/// a row lies.
const LEFT_BEHIND: [&str; 5] = ["ingest_workers", "ingest_roles", "mail_shards", "mail_places", "mail_layout"];

pub(crate) fn copied() -> impl Iterator<Item = &'static Shape> {
    tables().iter().filter(|table| !LEFT_BEHIND.contains(&table.name))
}

/// Makes `to` the same as `from`, and compares both in the end. May be broken off at any moment and begun again: what is
/// there already is compared and not written again.
pub async fn copy(from: &dyn Content, to: &dyn Content, progress: &CopyProgress) -> Result<CopyReport> {
    check_idle(from).await?;
    check_idle(to).await?;
    let mut hold = from.hold().await?;
    take(from, to).await?;
    for table in copied() {
        progress.expect(from.count(table).await?);
    }
    for table in copied() {
        progress.copying(table.name);
        merge::merge(table, from, to, progress).await?;
    }
    let mut reports = Vec::new();
    for table in copied() {
        progress.comparing(table.name);
        reports.push(compare_or_mend(table, from, to, progress).await?);
    }
    hold.check().await?;
    let report = CopyReport { tables: reports };
    if report.differing().next().is_none() {
        to.end_copy().await?;
    }
    Ok(report)
}

async fn check_idle(store: &dyn Content) -> Result<()> {
    let others = store.others().await?;
    if others.is_empty() {
        return Ok(());
    }
    let busy = format!("{} is in use by {}: stop them first", store.name(), others.join(", "));
    Err(StoreError::new(ErrorKind::Locked, busy))
}

/// Only an empty store, or one in which the same copy was begun, becomes the target.
async fn take(from: &dyn Content, to: &dyn Content) -> Result<()> {
    let refused = |why: String| Err(StoreError::new(ErrorKind::CannotOpen, why));
    let (source, target) = (from.name(), to.name());
    if source == target {
        return refused(format!("{source} cannot be copied into itself"));
    }
    match to.unfinished().await? {
        Some(begun) if begun == source => return Ok(()),
        Some(begun) => return refused(format!("{target} is an unfinished copy of {begun}, not of {source}")),
        None => {}
    }
    for table in copied() {
        if Feed::open(to, table).await?.peek().await?.is_some() {
            return refused(format!("{target} is not empty: there are rows in {}", table.name));
        }
    }
    to.begin_copy(&source).await
}

/// The verdict on a table. One that differs is gone through once more: the source may have changed after it was read.
async fn compare_or_mend(
    table: &'static Shape,
    from: &dyn Content,
    to: &dyn Content,
    progress: &CopyProgress,
) -> Result<TableReport> {
    let first = compare(table, from, to, progress).await?;
    if first.is_same {
        return Ok(first);
    }
    merge::merge(table, from, to, &CopyProgress::default()).await?;
    compare(table, from, to, &CopyProgress::default()).await
}

async fn compare(
    table: &'static Shape,
    from: &dyn Content,
    to: &dyn Content,
    progress: &CopyProgress,
) -> Result<TableReport> {
    let unseen = CopyProgress::default();
    let (source, target) = try_join(Tally::of(table, from, progress), Tally::of(table, to, &unseen)).await?;
    let is_same = source == target;
    Ok(TableReport { name: table.name, rows: source.rows, digest: source.digest, is_same })
}

/// What a store says that was opened for anything but to go on with the copy.
pub(crate) fn is_unfinished(source: &str) -> StoreError {
    let unfinished = format!("it is an unfinished copy of {source}; run 'highwater store copy' again to finish it");
    StoreError::new(ErrorKind::CannotOpen, unfinished)
}
