//! The store in one SQLite file: readable by other programs at any time, written by one process.

mod account;
mod ages;
mod alerts;
mod arrange;
mod claim;
mod close;
mod commit;
mod compact;
mod copy;
mod courtesy;
mod derived;
mod edits;
mod ending;
mod error;
mod exceptions;
mod follow;
mod group;
mod inserts;
mod ledger;
mod live;
mod lock;
mod mailboxes;
mod names;
mod open;
mod places;
mod plan;
mod readers;
mod replay;
mod report;
mod rescans;
mod roles;
mod rows;
mod runs;
mod search;
mod segments;
mod session;
mod shards;
mod state;
mod streams;
mod table;
#[cfg(test)]
mod tests;
mod texts;
mod windows;
mod writer;

use std::{future::Future, sync::Arc};

use futures_util::future::BoxFuture;
use highwater_core::{
    AccountView, BatchCounts, Exception, Key, KeySet, Lease, Pause, Position, Segment, SegmentId, SourceName, StreamId,
    Timestamp, Value, WorkerId,
    planted::{Bug, planted},
    schema::{SideTable, Table},
};
pub use open::{Durability, GroupLimits, Mode, OpenOptions};
pub use search::SqliteIndex;
pub use shards::Sharding;

use self::{
    error::Sql,
    lock::ProcessLock,
    readers::Readers,
    session::Session,
    shards::Shards,
    writer::{Haste, Weight, Writer},
};
use crate::{
    Applied, Claim, Claimed, Close, Closed, Columns, Commit, Counts, Download, DownloadNote, ErrorKind,
    ExceptionFilter, FollowStore, Followed, Known, LedgerEntry, LedgerLine, Misderived, Outlook, Page, Plan, Result,
    RunEnd, RunStart, ShareAsk, Store, StoreError, StoredRow, StreamRow, Tidings, WorkerRow,
    rules::{REPAIR, Rest, size_of},
};

pub struct SqliteStore {
    readers: Readers,
    /// Absent in a store opened for reading only.
    writer: Option<Writer>,
}

impl SqliteStore {
    /// Short work on a local file, done where it is called.
    pub fn open(options: OpenOptions) -> Result<SqliteStore> {
        let path = open::resolve(&options.path)?;
        open::check_is_database(&path)?;
        if options.mode == Mode::ReadOnly {
            let reader = open::checked_reader(&path)?;
            let readers = Readers::new(path, Some(reader), options.execution);
            return Ok(SqliteStore { readers, writer: None });
        }
        if options.mode == Mode::CopySource {
            open::check_exists(&path)?;
        }
        let lock = ProcessLock::acquire(&path)?;
        let shards = Shards::to_write(&path, options.sharding, options.durability);
        let mut session = Session::new(open::writer(&path, &options)?, shards, lock);
        session.recover().map_err(|fault| fault.while_doing("taking up what a dead process left"))?;
        if options.mode == Mode::ReadWrite {
            let unsettled = places::unsettle(&session.db, options.sharding);
            unsettled.map_err(|fault| fault.while_doing("looking how mail lies"))?;
        }
        let writer = Writer::new(session, options.group, options.execution);
        let readers = Readers::new(path, None, options.execution);
        Ok(SqliteStore { readers, writer: Some(writer) })
    }

    async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        weight: Weight,
        work: impl FnMut(&mut Session) -> Sql<T> + Send + 'static,
    ) -> Result<T> {
        let read_only =
            || StoreError::new(ErrorKind::CannotOpen, format!("{doing}: the store is open for reading only"));
        self.writer.as_ref().ok_or_else(read_only)?.submit(doing, weight, work).await
    }

    /// A write that others may be waiting for.
    fn hasty<'a, T: Send + 'static>(
        &'a self,
        doing: &'static str,
        work: impl FnMut(&mut Session) -> Sql<T> + Send + 'static,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(self.write(doing, Weight::default(), work))
    }

    async fn commit_job(&self, commit: Arc<Commit>) -> Result<BatchCounts> {
        if planted(Bug::StateBeforeData) {
            return self.commit_state_before_data(&commit).await;
        }
        let weight = Weight {
            rows: commit.records.len() + commit.settlements.len(),
            bytes: commit.records.iter().map(size_of).sum(),
            haste: Haste::Gather,
            first: Some(rows::first(&commit.records)),
        };
        self.write("committing a job", weight, move |session| commit::commit(session, &commit)).await
    }

    /// The planted bug: verdicts and cursor are durable while the rows may still be lost.
    async fn commit_state_before_data(&self, commit: &Commit) -> Result<BatchCounts> {
        let state = Commit { records: Vec::new(), ..commit.clone() };
        let data = Commit { settlements: Vec::new(), cursor: None, ..commit.clone() };
        let mut counts = self.hasty("committing state", move |session| commit::commit(session, &state)).await?;
        tokio::task::yield_now().await;
        counts.add(&self.hasty("committing data", move |session| commit::commit(session, &data)).await?);
        Ok(counts)
    }

    async fn plan_all(&self, rest: Rest) -> Result<()> {
        let mut rest = Some(rest).filter(|rest| !rest.span.is_empty());
        while let Some(chunk) = rest {
            rest = self.hasty("laying segments", move |session| plan::lay(&session.db, chunk.clone())).await?;
            // A long plan lets others write between its chunks.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn read<'a, T: Send + 'static>(
        &'a self,
        doing: &'static str,
        work: impl FnOnce(&rusqlite::Connection) -> Sql<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send + 'a {
        self.readers.read(doing, work)
    }

    fn read_whole<'a, T: Send + 'static>(
        &'a self,
        doing: &'static str,
        work: impl Fn(&rusqlite::Connection, &mut Shards) -> Sql<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send + 'a {
        self.readers.read_whole(doing, work)
    }
}

impl Store for SqliteStore {
    fn open_stream<'a>(&'a self, stream: &'a StreamId, axis: &'a str) -> BoxFuture<'a, Result<StreamRow>> {
        let (stream, axis) = (stream.clone(), axis.to_owned());
        self.hasty("opening a stream", move |session| streams::open(&session.db, &stream, &axis))
    }

    fn plan<'a>(&'a self, plan: Plan<'a>) -> BoxFuture<'a, Result<()>> {
        let Plan { stream, purpose, span, segment_size, bare_until } = plan;
        Box::pin(self.plan_all(Rest { stream: stream.clone(), purpose, span, segment_size, bare_until }))
    }

    fn claim<'a>(&'a self, claim: Claim<'a>) -> BoxFuture<'a, Result<Vec<Claimed>>> {
        let Claim { limit, wanted, lease_ttl, now, .. } = claim;
        let (stream, owner) = (claim.stream.clone(), claim.owner.clone());
        self.hasty("claiming segments", move |session| {
            claim::claim(&session.db, &Claim { stream: &stream, owner: &owner, limit, wanted, lease_ttl, now })
        })
    }

    fn known<'a>(
        &'a self,
        stream: &'a StreamId,
        table: &'static Table,
        keys: &'a KeySet,
    ) -> BoxFuture<'a, Result<Known>> {
        let (stream, keys) = (stream.clone(), keys.clone());
        Box::pin(self.read("looking up keys", move |db| report::known(db, &stream, table, &keys)))
    }

    fn commit(&self, commit: Arc<Commit>) -> BoxFuture<'_, Result<BatchCounts>> {
        Box::pin(self.commit_job(commit))
    }

    fn close(&self, close: Close) -> BoxFuture<'_, Result<Closed>> {
        // Nobody waits for it but the worker that has nothing else to do: it goes along with the next rows.
        let weight = Weight { haste: Haste::Gather, ..Weight::default() };
        Box::pin(self.write("closing a segment", weight, move |session| close::close(session, &close)))
    }

    fn release<'a>(&'a self, leases: &'a [Lease]) -> BoxFuture<'a, Result<()>> {
        let leases = leases.to_vec();
        self.hasty("releasing segments", move |session| segments::release(&session.db, &leases))
    }

    fn heartbeat<'a>(&'a self, leases: &'a [Lease], now: Timestamp) -> BoxFuture<'a, Result<Vec<SegmentId>>> {
        let leases = leases.to_vec();
        self.hasty("renewing leases", move |session| segments::heartbeat(&session.db, &leases, now))
    }

    fn outlook<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Outlook>> {
        let stream = stream.clone();
        Box::pin(self.read("looking for work", move |db| report::outlook(db, &stream)))
    }

    fn replay<'a>(
        &'a self,
        stream: &'a StreamId,
        keys: Option<&'a [Key]>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<u64>> {
        let (stream, keys) = (stream.clone(), keys.map(<[Key]>::to_vec));
        self.hasty("replaying dead letters", move |session| replay::replay(&session.db, &stream, keys.as_deref(), now))
    }

    fn recount<'a>(&'a self, stream: &'a StreamId, table: &'static Table) -> BoxFuture<'a, Result<()>> {
        let stream = stream.clone();
        self.hasty("counting rows", move |session| replay::recount(&session.db, &stream, table))
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn share<'a>(&'a self, ask: &'a ShareAsk) -> BoxFuture<'a, Result<AccountView>> {
        let ask = ask.clone();
        self.hasty("noting the state of the account", move |session| account::share(&session.db, &ask))
    }

    fn leave<'a>(&'a self, worker: &'a WorkerId) -> BoxFuture<'a, Result<()>> {
        let worker = worker.clone();
        self.hasty("leaving the account", move |session| account::leave(&session.db, &worker))
    }

    fn workers<'a>(&'a self, source: &'a SourceName, now: Timestamp) -> BoxFuture<'a, Result<Vec<WorkerRow>>> {
        let source = source.clone();
        Box::pin(self.read("reading who is at work", move |db| account::workers(db, &source, now)))
    }

    fn pause<'a>(&'a self, source: &'a SourceName, now: Timestamp) -> BoxFuture<'a, Result<Option<Pause>>> {
        let source = source.clone();
        Box::pin(self.read("reading the state of the account", move |db| account::pause(db, &source, now)))
    }

    fn begin_run<'a>(&'a self, run: &'a RunStart) -> BoxFuture<'a, Result<()>> {
        let run = run.clone();
        self.hasty("noting the start of a run", move |session| runs::begin(&session.db, &run))
    }

    fn end_run<'a>(&'a self, run: &'a RunEnd) -> BoxFuture<'a, Result<()>> {
        let run = run.clone();
        self.hasty("noting the end of a run", move |session| runs::end(session, &run))
    }

    fn note_requests<'a>(&'a self, run: &'a str, requests: u64) -> BoxFuture<'a, Result<()>> {
        let run = run.to_owned();
        self.hasty("noting requests", move |session| runs::note_requests(&session.db, &run, requests))
    }

    fn requests_since<'a>(&'a self, source: &'a SourceName, since: Timestamp) -> BoxFuture<'a, Result<u64>> {
        let source = source.clone();
        Box::pin(self.read("counting requests", move |db| runs::requests_since(db, &source, since)))
    }

    fn note_downloads<'a>(&'a self, note: &'a DownloadNote) -> BoxFuture<'a, Result<()>> {
        let note = note.clone();
        self.hasty("noting downloads", move |session| runs::note_downloads(&session.db, &note))
    }

    fn downloads_since<'a>(&'a self, source: &'a SourceName, since: Timestamp) -> BoxFuture<'a, Result<Vec<Download>>> {
        let source = source.clone();
        Box::pin(self.read("counting downloads", move |db| runs::downloads_since(db, &source, since)))
    }

    fn append_ledger<'a>(&'a self, entry: &'a LedgerEntry) -> BoxFuture<'a, Result<()>> {
        let entry = entry.clone();
        self.hasty("writing to the ledger", move |session| session.append(&entry))
    }

    fn streams(&self) -> BoxFuture<'_, Result<Vec<StreamRow>>> {
        Box::pin(self.read("reading streams", streams::all))
    }

    fn counts<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Counts>> {
        let stream = stream.clone();
        Box::pin(self.read("counting segments", move |db| report::counts(db, &stream)))
    }

    fn segments<'a>(
        &'a self,
        stream: &'a StreamId,
        page: Page<(Position, SegmentId)>,
    ) -> BoxFuture<'a, Result<Vec<Segment>>> {
        let stream = stream.clone();
        Box::pin(self.read("reading segments", move |db| report::segments(db, &stream, &page)))
    }

    fn exceptions<'a>(
        &'a self,
        stream: &'a StreamId,
        filter: ExceptionFilter,
        page: Page<Key>,
    ) -> BoxFuture<'a, Result<Vec<Exception>>> {
        let stream = stream.clone();
        Box::pin(self.read("reading exceptions", move |db| report::exceptions(db, &stream, filter, &page)))
    }

    fn rows<'a>(&'a self, table: &'static Table, page: Page<Key>) -> BoxFuture<'a, Result<Vec<StoredRow>>> {
        Box::pin(self.read_whole("reading rows", move |db, shards| report::rows(db, shards, table, &page)))
    }

    fn ledger<'a>(&'a self, source: &'a SourceName, page: Page<i64>) -> BoxFuture<'a, Result<Vec<LedgerLine>>> {
        let source = source.clone();
        Box::pin(self.read("reading the ledger", move |db| ledger::page(db, &source, &page)))
    }

    fn integrity(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(self.read_whole("checking the database", report::integrity))
    }
}

impl FollowStore for SqliteStore {
    fn followed<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Followed>> {
        let stream = stream.clone();
        Box::pin(self.read("reading where the record was followed to", move |db| follow::followed(db, &stream)))
    }

    fn follow_from<'a>(
        &'a self,
        stream: &'a StreamId,
        from: &'a str,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<()>> {
        let (stream, from) = (stream.clone(), from.to_owned());
        self.hasty("noting where to follow the record from", move |session| {
            follow::follow_from(&session.db, &stream, &from, expected)
        })
    }

    fn apply(&self, tidings: Arc<Tidings>) -> BoxFuture<'_, Result<Applied>> {
        self.hasty("applying what was told", move |session| follow::apply(session, &tidings))
    }

    fn columns<'a>(
        &'a self,
        table: &'static Table,
        columns: &'a [&'static str],
        page: Page<Key>,
    ) -> BoxFuture<'a, Result<Vec<Columns>>> {
        let columns = columns.to_vec();
        Box::pin(
            self.read_whole("reading columns", move |db, shards| follow::columns(db, shards, table, &columns, &page)),
        )
    }

    fn side_rows<'a>(
        &'a self,
        side: &'static SideTable,
        of: &'static Table,
        page: Page<String>,
    ) -> BoxFuture<'a, Result<Vec<Vec<Value>>>> {
        Box::pin(
            self.read_whole("reading rows beside others", move |db, shards| {
                follow::side_rows(db, shards, side, of, &page)
            }),
        )
    }

    fn misderived<'a>(&'a self, table: &'static Table, page: Page<String>) -> BoxFuture<'a, Result<Misderived>> {
        Box::pin(self.read("checking what is derived", move |db| derived::misderived(db, table, &page)))
    }

    fn rederive<'a>(
        &'a self,
        stream: &'a StreamId,
        table: &'static Table,
        groups: &'a [String],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<()>> {
        let (stream, groups) = (stream.clone(), groups.to_vec());
        self.hasty("deriving rows anew", move |session| {
            let groups = groups.iter().map(|group| (table, group.clone())).collect();
            edits::refresh(session, &stream, groups, now, REPAIR)
        })
    }

    fn cut<'a>(&'a self, lease: &'a Lease, at: Position) -> BoxFuture<'a, Result<()>> {
        let lease = lease.clone();
        self.hasty("cutting a segment", move |session| follow::cut(&session.db, &lease, at))
    }
}
