//! The store in a schema of a PostgreSQL database: its tables are the queue, the leases and the archive of any number of
//! processes.

/// A transaction on a connection of the pool: `transact!(self, to_read, "doing something", |db| work(db))`.
macro_rules! transact {
    ($store:ident, $access:ident, $doing:literal, |$db:ident| $work:expr) => {
        Box::pin(async move {
            let (seat, db) = $store.$access($doing).await?;
            let $db = &db;
            seat.run($doing, $work).await
        })
    };
}

mod account;
mod address;
mod ages;
mod alerts;
mod cells;
mod claim;
mod close;
mod closer;
mod columns;
mod commit;
mod compact;
mod copy;
mod dense;
mod derived;
mod edges;
mod edits;
mod ending;
mod error;
mod exceptions;
mod follow;
mod group;
mod job;
mod ledger;
mod link;
mod live;
mod load;
mod mailboxes;
mod names;
mod open;
mod passwords;
mod plan;
mod pool;
mod replay;
mod report;
mod rescans;
mod rewrite;
mod roles;
mod rows;
mod runs;
mod search;
mod segments;
mod settle;
mod sides;
mod state;
mod streams;
mod table;
#[cfg(test)]
mod tests;
mod texts;
mod tls;
mod windows;
mod writer;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use highwater_core::{
    AccountView, BatchCounts, Exception, Key, KeySet, Lease, Pause, Position, Segment, SegmentId, SourceName, StreamId,
    Timestamp, Value, WorkerId,
    planted::{Bug, planted},
    schema::{SideTable, Table},
};
pub use open::{LeaseClock, PostgresOptions};
pub use search::PostgresIndex;

use self::{
    claim::{Abandoned, Glances},
    closer::Closer,
    group::COLLISIONS_MAX,
    job::Job,
    link::Db,
    pool::{Access, Pool, Seat, unreachable},
    writer::Writer,
};
use crate::{
    Applied, Claim, Claimed, Close, Closed, Columns, Commit, Counts, Download, DownloadNote, ErrorKind,
    ExceptionFilter, FollowStore, Followed, Known, LedgerEntry, LedgerLine, Misderived, Mode, Outlook, Page, Plan,
    Result, RunEnd, RunStart, ShareAsk, Store, StoreError, StoredRow, StreamRow, Tidings, Wanted, WorkerRow,
    rules::Rest,
};

pub struct PostgresStore {
    pool: Arc<Pool>,
    writer: Writer,
    closer: Closer,
    mode: Mode,
    clock: LeaseClock,
    glances: Glances,
    /// For people, and to know it again.
    name: String,
}

impl PostgresStore {
    /// Connects, and brings the schema up to date.
    pub async fn open(options: PostgresOptions) -> Result<PostgresStore> {
        let (pool, name) = open::open(&options).await?;
        let PostgresOptions { mode, clock, execution, group, .. } = options;
        let (writer, closer, glances) = (Writer::new(group, execution), Closer::default(), Glances::default());
        Ok(PostgresStore { pool: Arc::new(pool), writer, closer, mode, clock, glances, name })
    }

    async fn to_read(&self, doing: &str) -> Result<(Seat<'_>, Db)> {
        self.pool.seat(Access::Read).await.map_err(|fault| unreachable(fault, doing))
    }

    async fn to_write(&self, doing: &str) -> Result<(Seat<'_>, Db)> {
        self.check_writable(doing)?;
        self.pool.seat(Access::Write).await.map_err(|fault| unreachable(fault, doing))
    }

    fn check_writable(&self, doing: &str) -> Result<()> {
        match self.mode {
            Mode::ReadWrite | Mode::CopyTarget => Ok(()),
            Mode::ReadOnly | Mode::CopySource => {
                Err(StoreError::new(ErrorKind::CannotOpen, format!("{doing}: the store is open for reading only")))
            }
        }
    }

    /// What leases are dated by: none is the server's clock.
    fn lease_time(&self, now: Timestamp) -> Option<Timestamp> {
        match self.clock {
            LeaseClock::Server => None,
            LeaseClock::Caller => Some(now),
        }
    }

    async fn claim_segments(&self, claim: Claim<'_>) -> Result<Vec<Claimed>> {
        let doing = "claiming segments";
        let now = self.lease_time(claim.now);
        // Whoever plays with time wants to see every lease that ended.
        let abandoned = match claim.wanted {
            Wanted::Due => Abandoned::Passed,
            _ if now.is_some() => Abandoned::LookedFor,
            _ => self.glances.next(),
        };
        let (seat, db) = self.to_write(doing).await?;
        let handed = seat.run(doing, claim::claim(&db, &claim, now, abandoned)).await?;
        if claim.wanted != Wanted::Due {
            self.glances.note(&handed, claim.limit);
        }
        Ok(handed.segments)
    }

    async fn commit_job(&self, commit: Arc<Commit>) -> Result<BatchCounts> {
        self.check_writable("committing a job")?;
        if planted(Bug::StateBeforeData) {
            return self.commit_state_before_data(&commit).await;
        }
        Ok(self.writer.submit(&self.pool, Job::Segment(commit)).await?.batch)
    }

    /// The planted bug: verdicts and cursor are durable while the rows may still be lost.
    async fn commit_state_before_data(&self, commit: &Commit) -> Result<BatchCounts> {
        let state = Commit { records: Vec::new(), ..commit.clone() };
        let data = Commit { settlements: Vec::new(), cursor: None, ..commit.clone() };
        let mut counts = self.writer.submit(&self.pool, Job::Segment(Arc::new(state))).await?.batch;
        counts.add(&self.writer.submit(&self.pool, Job::Segment(Arc::new(data))).await?.batch);
        Ok(counts)
    }

    /// Two who follow the same record collide over the same keys: the second looks again, and finds them applied.
    async fn apply_tidings(&self, tidings: Arc<Tidings>) -> Result<Applied> {
        let doing = "applying what was told";
        let mut collisions = 0;
        loop {
            let (seat, db) = self.to_write(doing).await?;
            match seat.carry(follow::apply(&db, &tidings)).await {
                Err(fault) if fault.is_collision() && collisions < COLLISIONS_MAX => collisions += 1,
                outcome => return outcome.map_err(|fault| fault.while_doing(doing)),
            }
        }
    }

    async fn plan_all(&self, rest: Rest) -> Result<()> {
        let doing = "laying segments";
        let mut rest = Some(rest).filter(|rest| !rest.span.is_empty());
        while let Some(chunk) = rest {
            let (seat, db) = self.to_write(doing).await?;
            rest = seat.run(doing, plan::lay(&db, chunk)).await?;
        }
        Ok(())
    }
}

impl Store for PostgresStore {
    fn open_stream<'a>(&'a self, stream: &'a StreamId, axis: &'a str) -> BoxFuture<'a, Result<StreamRow>> {
        transact!(self, to_write, "opening a stream", |db| streams::open(db, stream, axis))
    }

    fn plan<'a>(&'a self, plan: Plan<'a>) -> BoxFuture<'a, Result<()>> {
        let Plan { stream, purpose, span, segment_size, bare_until } = plan;
        Box::pin(self.plan_all(Rest { stream: stream.clone(), purpose, span, segment_size, bare_until }))
    }

    fn claim<'a>(&'a self, claim: Claim<'a>) -> BoxFuture<'a, Result<Vec<Claimed>>> {
        Box::pin(self.claim_segments(claim))
    }

    fn known<'a>(
        &'a self,
        stream: &'a StreamId,
        table: &'static Table,
        keys: &'a KeySet,
    ) -> BoxFuture<'a, Result<Known>> {
        transact!(self, to_read, "looking up keys", |db| report::known(db, stream, table, keys))
    }

    fn commit(&self, commit: Arc<Commit>) -> BoxFuture<'_, Result<BatchCounts>> {
        Box::pin(self.commit_job(commit))
    }

    fn close(&self, close: Close) -> BoxFuture<'_, Result<Closed>> {
        Box::pin(async move {
            self.check_writable("closing a segment")?;
            self.closer.submit(&self.pool, &self.writer, close).await
        })
    }

    fn release<'a>(&'a self, leases: &'a [Lease]) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "releasing segments", |db| segments::release(db, leases))
    }

    fn heartbeat<'a>(&'a self, leases: &'a [Lease], now: Timestamp) -> BoxFuture<'a, Result<Vec<SegmentId>>> {
        let now = self.lease_time(now);
        transact!(self, to_write, "renewing leases", |db| segments::heartbeat(db, leases, now))
    }

    fn outlook<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Outlook>> {
        transact!(self, to_read, "looking for work", |db| report::outlook(db, stream))
    }

    fn replay<'a>(
        &'a self,
        stream: &'a StreamId,
        keys: Option<&'a [Key]>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<u64>> {
        transact!(self, to_write, "replaying dead letters", |db| replay::replay(db, stream, keys, now))
    }

    fn recount<'a>(&'a self, stream: &'a StreamId, table: &'static Table) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "counting rows", |db| replay::recount(db, stream, table))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn share<'a>(&'a self, ask: &'a ShareAsk) -> BoxFuture<'a, Result<AccountView>> {
        let now = self.lease_time(ask.now);
        transact!(self, to_write, "noting the state of the account", |db| account::share(db, ask, now))
    }

    fn leave<'a>(&'a self, worker: &'a WorkerId) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "leaving the account", |db| account::leave(db, worker))
    }

    fn workers<'a>(&'a self, source: &'a SourceName, now: Timestamp) -> BoxFuture<'a, Result<Vec<WorkerRow>>> {
        let now = self.lease_time(now);
        transact!(self, to_read, "reading who is at work", |db| account::workers(db, source, now))
    }

    fn pause<'a>(&'a self, source: &'a SourceName, now: Timestamp) -> BoxFuture<'a, Result<Option<Pause>>> {
        let now = self.lease_time(now);
        transact!(self, to_read, "reading the state of the account", |db| account::pause(db, source, now))
    }

    fn begin_run<'a>(&'a self, run: &'a RunStart) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "noting the start of a run", |db| runs::begin(db, run))
    }

    fn end_run<'a>(&'a self, run: &'a RunEnd) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "noting the end of a run", |db| runs::end(db, run))
    }

    fn note_requests<'a>(&'a self, run: &'a str, requests: u64) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "noting requests", |db| runs::note_requests(db, run, requests))
    }

    fn requests_since<'a>(&'a self, source: &'a SourceName, since: Timestamp) -> BoxFuture<'a, Result<u64>> {
        transact!(self, to_read, "counting requests", |db| runs::requests_since(db, source, since))
    }

    fn note_downloads<'a>(&'a self, note: &'a DownloadNote) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "noting downloads", |db| runs::note_downloads(db, note))
    }

    fn downloads_since<'a>(&'a self, source: &'a SourceName, since: Timestamp) -> BoxFuture<'a, Result<Vec<Download>>> {
        transact!(self, to_read, "counting downloads", |db| runs::downloads_since(db, source, since))
    }

    fn append_ledger<'a>(&'a self, entry: &'a LedgerEntry) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "writing to the ledger", |db| ledger::note(db, entry))
    }

    fn streams(&self) -> BoxFuture<'_, Result<Vec<StreamRow>>> {
        transact!(self, to_read, "reading streams", |db| streams::all(db))
    }

    fn counts<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Counts>> {
        transact!(self, to_read, "counting segments", |db| report::counts(db, stream))
    }

    fn segments<'a>(
        &'a self,
        stream: &'a StreamId,
        page: Page<(Position, SegmentId)>,
    ) -> BoxFuture<'a, Result<Vec<Segment>>> {
        transact!(self, to_read, "reading segments", |db| report::segments(db, stream, &page))
    }

    fn exceptions<'a>(
        &'a self,
        stream: &'a StreamId,
        filter: ExceptionFilter,
        page: Page<Key>,
    ) -> BoxFuture<'a, Result<Vec<Exception>>> {
        transact!(self, to_read, "reading exceptions", |db| report::exceptions(db, stream, filter, &page))
    }

    fn rows<'a>(&'a self, table: &'static Table, page: Page<Key>) -> BoxFuture<'a, Result<Vec<StoredRow>>> {
        transact!(self, to_read, "reading rows", |db| report::rows(db, table, &page))
    }

    fn ledger<'a>(&'a self, source: &'a SourceName, page: Page<i64>) -> BoxFuture<'a, Result<Vec<LedgerLine>>> {
        transact!(self, to_read, "reading the ledger", |db| ledger::page(db, source, &page))
    }

    fn integrity(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        transact!(self, to_read, "checking the database", |db| report::integrity(db))
    }
}

impl FollowStore for PostgresStore {
    fn followed<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Followed>> {
        transact!(self, to_read, "reading where the record was followed to", |db| follow::followed(db, stream))
    }

    fn follow_from<'a>(
        &'a self,
        stream: &'a StreamId,
        from: &'a str,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "noting where to follow the record from", |db| follow::follow_from(
            db, stream, from, expected
        ))
    }

    fn apply(&self, tidings: Arc<Tidings>) -> BoxFuture<'_, Result<Applied>> {
        Box::pin(self.apply_tidings(tidings))
    }

    fn columns<'a>(
        &'a self,
        table: &'static Table,
        columns: &'a [&'static str],
        page: Page<Key>,
    ) -> BoxFuture<'a, Result<Vec<Columns>>> {
        transact!(self, to_read, "reading columns", |db| follow::columns(db, table, columns, &page))
    }

    fn side_rows<'a>(
        &'a self,
        side: &'static SideTable,
        of: &'static Table,
        page: Page<String>,
    ) -> BoxFuture<'a, Result<Vec<Vec<Value>>>> {
        transact!(self, to_read, "reading rows beside others", |db| follow::side_rows(db, side, of, &page))
    }

    fn misderived<'a>(&'a self, table: &'static Table, page: Page<String>) -> BoxFuture<'a, Result<Misderived>> {
        transact!(self, to_read, "checking what is derived", |db| derived::misderived(db, table, &page))
    }

    fn rederive<'a>(
        &'a self,
        stream: &'a StreamId,
        table: &'static Table,
        groups: &'a [String],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "deriving rows anew", |db| derived::rederive(db, stream, table, groups, now))
    }

    fn cut<'a>(&'a self, lease: &'a Lease, at: Position) -> BoxFuture<'a, Result<()>> {
        transact!(self, to_write, "cutting a segment", |db| follow::cut(db, lease, at))
    }
}
