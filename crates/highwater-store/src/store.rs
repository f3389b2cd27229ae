//! The one narrow interface to a store. Decisions are made in the core; a backend only reads and writes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use highwater_core::{
    AccountReport, AccountView, BatchCounts, Body, DeadLetterPolicy, Downloads, Edit, Exception, ExceptionState, Key,
    KeySet, Lease, Pause, Position, Purpose, Record, Segment, SegmentId, SegmentStatus, Settlement, SourceName, Span,
    StreamId, Timestamp, WorkerId, schema::Table,
};

use serde_json::json;

use crate::{FollowStore, LedgerEntry, LedgerLine, LiveStore, MailboxStore, Result};

/// Work and evidence, durable. Every method that writes is one short transaction, all or nothing, and may be called
/// again with the same arguments without harm.
pub trait Store: LiveStore + FollowStore + MailboxStore {
    /// The row of a stream, made if it is not there yet with an empty span.
    fn open_stream<'a>(&'a self, stream: &'a StreamId, axis: &'a str) -> BoxFuture<'a, Result<StreamRow>>;
    /// Lays segments and moves origin, target and frontier so that catch-up segments tile `[origin, target)` at any
    /// time, also while a long plan is being laid.
    fn plan<'a>(&'a self, plan: Plan<'a>) -> BoxFuture<'a, Result<()>>;
    /// Hands out segments nobody works on: due retries first, then the lowest.
    fn claim<'a>(&'a self, claim: Claim<'a>) -> BoxFuture<'a, Result<Vec<Claimed>>>;
    /// Which of these keys are stored, and which have an exception.
    fn known<'a>(
        &'a self,
        stream: &'a StreamId,
        table: &'static Table,
        keys: &'a KeySet,
    ) -> BoxFuture<'a, Result<Known>>;
    /// Rows, verdicts, cursor and ledger of a job, behind a check of the lease. Shared, not owned, so that a caller can
    /// bring the same rows again when the disk was full.
    fn commit(&self, commit: Arc<Commit>) -> BoxFuture<'_, Result<BatchCounts>>;
    /// Ends the work on a segment for now: seals it, or leaves it waiting for retries or held by dead letters; moves
    /// the frontier. Refuses to seal a dense segment whose keys do not add up.
    fn close(&self, close: Close) -> BoxFuture<'_, Result<Closed>>;
    /// Gives unfinished segments back, with what is committed in them.
    fn release<'a>(&'a self, leases: &'a [Lease]) -> BoxFuture<'a, Result<()>>;
    /// Renews leases; returns the segments that are no longer ours.
    fn heartbeat<'a>(&'a self, leases: &'a [Lease], now: Timestamp) -> BoxFuture<'a, Result<Vec<SegmentId>>>;
    /// What is left to do, and when the next retry is due.
    fn outlook<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Outlook>>;
    /// Puts dead letters back to `retry_wait`, due now, attempts forgotten; returns how many.
    fn replay<'a>(
        &'a self,
        stream: &'a StreamId,
        keys: Option<&'a [Key]>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<u64>>;
    /// Counts the rows of the table anew, after something was repaired.
    fn recount<'a>(&'a self, stream: &'a StreamId, table: &'static Table) -> BoxFuture<'a, Result<()>>;

    /// Whether other processes may work on this store at the same time.
    fn is_shared(&self) -> bool;
    /// Tells what this process does with the account, and takes its share of it.
    fn share<'a>(&'a self, ask: &'a ShareAsk) -> BoxFuture<'a, Result<AccountView>>;
    /// Gives the share back.
    fn leave<'a>(&'a self, worker: &'a WorkerId) -> BoxFuture<'a, Result<()>>;
    /// The processes alive on this source, the eldest first.
    fn workers<'a>(&'a self, source: &'a SourceName, now: Timestamp) -> BoxFuture<'a, Result<Vec<WorkerRow>>>;

    /// For how long the account is to be left alone.
    fn pause<'a>(&'a self, source: &'a SourceName, now: Timestamp) -> BoxFuture<'a, Result<Option<Pause>>>;

    /// Also takes for due what was last tried in the future: the time it waits for was set by a wrong clock.
    fn begin_run<'a>(&'a self, run: &'a RunStart) -> BoxFuture<'a, Result<()>>;
    /// Notes how a run ended, with a line in the ledger the first time.
    fn end_run<'a>(&'a self, run: &'a RunEnd) -> BoxFuture<'a, Result<()>>;
    /// Notes how many requests a run under way has made so far.
    fn note_requests<'a>(&'a self, run: &'a str, requests: u64) -> BoxFuture<'a, Result<()>>;
    /// Requests of all runs that began since then.
    fn requests_since<'a>(&'a self, source: &'a SourceName, since: Timestamp) -> BoxFuture<'a, Result<u64>>;
    /// Notes what a run under way has downloaded so far, and lets go of what is too old to count for anybody.
    fn note_downloads<'a>(&'a self, note: &'a DownloadNote) -> BoxFuture<'a, Result<()>>;
    /// What runs have downloaded in the hours since then.
    fn downloads_since<'a>(&'a self, source: &'a SourceName, since: Timestamp) -> BoxFuture<'a, Result<Vec<Download>>>;
    fn append_ledger<'a>(&'a self, entry: &'a LedgerEntry) -> BoxFuture<'a, Result<()>>;

    fn streams(&self) -> BoxFuture<'_, Result<Vec<StreamRow>>>;
    /// Counts by status and state.
    fn counts<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Counts>>;
    /// Segments in order of `(start, id)`, a page at a time.
    fn segments<'a>(
        &'a self,
        stream: &'a StreamId,
        page: Page<(Position, SegmentId)>,
    ) -> BoxFuture<'a, Result<Vec<Segment>>>;
    /// Exceptions in order of their key's text, a page at a time.
    fn exceptions<'a>(
        &'a self,
        stream: &'a StreamId,
        filter: ExceptionFilter,
        page: Page<Key>,
    ) -> BoxFuture<'a, Result<Vec<Exception>>>;
    /// Stored rows in order of their key, a page at a time.
    fn rows<'a>(&'a self, table: &'static Table, page: Page<Key>) -> BoxFuture<'a, Result<Vec<StoredRow>>>;
    fn ledger<'a>(&'a self, source: &'a SourceName, page: Page<i64>) -> BoxFuture<'a, Result<Vec<LedgerLine>>>;
    /// What the database itself finds wrong with its files; empty is sound.
    fn integrity(&self) -> BoxFuture<'_, Result<Vec<String>>>;
}

/// What one run has downloaded within an hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    pub run: String,
    /// Its first moment.
    pub hour: Timestamp,
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub struct DownloadNote {
    pub source: SourceName,
    pub run: String,
    /// Each hour with all its bytes so far.
    pub downloads: Downloads,
    pub now: Timestamp,
}

impl DownloadNote {
    /// Earlier hours are let go of.
    pub(crate) fn kept_since(&self) -> Timestamp {
        Downloads::counted_since(self.now)
    }
}

/// A stretch of an ordered listing.
#[derive(Clone, Debug)]
pub struct Page<K> {
    /// Exclusive.
    pub after: Option<K>,
    pub limit: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRow {
    pub id: StreamId,
    pub axis: String,
    /// `[origin, target)`; empty before the first plan.
    pub span: Span,
    pub frontier: Position,
    pub stored: u64,
}

#[derive(Clone, Debug)]
pub struct Plan<'a> {
    pub stream: &'a StreamId,
    pub purpose: Purpose,
    /// For catch-up: adjacent to the stream's present span, before or after it.
    pub span: Span,
    pub segment_size: u64,
    /// What lies before is one segment, whatever its size; none if all is cut alike.
    pub bare_until: Option<Position>,
}

#[derive(Clone, Debug)]
pub struct Claim<'a> {
    pub stream: &'a StreamId,
    pub owner: &'a WorkerId,
    pub limit: u32,
    pub wanted: Wanted,
    /// Age of a heartbeat after which a segment may be taken over.
    pub lease_ttl: Duration,
    pub now: Timestamp,
}

/// Which segments are handed out. Retries that are due always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Anything,
    /// What was abandoned; of what nobody has begun only the catch-up.
    New,
    /// Nothing else.
    Due,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    pub lease: Lease,
    pub purpose: Purpose,
    pub span: Span,
    /// Everything before it is settled or has an exception.
    pub cursor: Option<Position>,
    /// How often the segment was claimed before.
    pub attempts: u32,
    /// Its exceptions that are due now.
    pub due: Vec<Exception>,
}

impl Claimed {
    /// The part of the span that was not gone through yet.
    pub fn rest(&self) -> Span {
        Span::new(self.cursor.unwrap_or(self.span.start()).max(self.span.start()), self.span.end())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    pub stored: BTreeSet<Key>,
    pub exceptions: Vec<Exception>,
}

#[derive(Clone, Debug)]
pub struct Commit {
    pub lease: Lease,
    pub stream: StreamId,
    pub now: Timestamp,
    /// Before the first of the records was asked for: a row that was fetched later than this stays as it is, and if it
    /// says something else, the key is counted as `behind`, stays unsettled and holds the cursor: ask again.
    pub asked_at: Timestamp,
    pub records: Vec<Record>,
    /// Keys whose stored body is still the remote's: only `last_fetched_at` moves.
    pub unchanged: Vec<(Key, &'static Table)>,
    /// What becomes of stored rows that were not fetched.
    pub edits: Vec<(Key, &'static Table, Vec<Edit>)>,
    /// Verdicts on keys that are not plainly stored, and `Stored` for keys that had an exception.
    pub settlements: Vec<Settlement>,
    pub cursor: Option<Position>,
}

#[derive(Clone, Debug)]
pub struct Close {
    pub lease: Lease,
    pub stream: StreamId,
    pub policy: DeadLetterPolicy,
    /// The table in which every position of the span is a key, if the axis is that dense.
    pub dense: Option<&'static Table>,
    pub now: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    pub status: SegmentStatus,
    pub frontier: Position,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Segments that can be claimed at once, or are being worked on.
    pub open: u64,
    /// The next retry of a key that failed or was absent, in a segment that waits for it.
    pub next_retry_at: Option<Timestamp>,
    /// The next look at a key that may not be published yet, likewise.
    pub next_unpublished_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub segments: Vec<(SegmentStatus, u64)>,
    pub exceptions: Vec<(ExceptionState, u64)>,
}

impl Counts {
    pub fn segments_in(&self, status: SegmentStatus) -> u64 {
        self.segments.iter().find(|(s, _)| *s == status).map_or(0, |(_, count)| *count)
    }

    pub fn exceptions_in(&self, state: ExceptionState) -> u64 {
        self.exceptions.iter().find(|(s, _)| *s == state).map_or(0, |(_, count)| *count)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExceptionFilter {
    pub state: Option<ExceptionState>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRow {
    pub key: Key,
    pub body: Body,
    pub row_check: i64,
    pub last_fetched_at: Timestamp,
}

/// A process without a beat for so long has lost its share: more than ten beats missed.
pub const SHARE_LASTS: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct ShareAsk {
    pub source: SourceName,
    pub worker: WorkerId,
    pub host: String,
    pub pid: u32,
    pub started_at: Timestamp,
    pub report: AccountReport,
    pub now: Timestamp,
}

/// A process at work.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerRow {
    pub worker: WorkerId,
    pub host: String,
    pub pid: u32,
    pub started_at: Timestamp,
    /// Of the account's rate.
    pub share: f64,
    /// Units per second it may send; none when unlimited.
    pub rate: Option<f64>,
    pub segments: u64,
}

highwater_core::word! {
    /// How a run ended.
    pub enum RunOutcome {
        Running = "running",
        Complete = "complete",
        Incomplete = "incomplete",
        Failed = "failed",
        Stopped = "stopped",
    }
}

#[derive(Clone, Debug)]
pub struct RunStart {
    pub id: String,
    pub source: SourceName,
    pub command: &'static str,
    pub workers: u32,
    pub at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct RunEnd {
    pub id: String,
    pub source: SourceName,
    pub command: &'static str,
    pub outcome: RunOutcome,
    pub items: u64,
    pub requests: u64,
    pub tallies: RunTallies,
    pub at: Timestamp,
}

/// What a run came to, in more detail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunTallies {
    /// Keys that failed, and are to be tried again or are dead letters.
    pub errors: u64,
    /// By stream.
    pub items: BTreeMap<String, u64>,
    /// By kind of call, where the remote makes a difference.
    pub calls: BTreeMap<&'static str, u64>,
}

impl RunTallies {
    pub(crate) fn items_json(&self) -> String {
        json!(self.items).to_string()
    }

    pub(crate) fn calls_json(&self) -> String {
        json!(self.calls).to_string()
    }
}

impl RunEnd {
    /// The line in the ledger.
    pub(crate) fn entry(&self) -> LedgerEntry {
        LedgerEntry {
            at: self.at,
            event_type: "RUN_ENDED",
            source: self.source.clone(),
            entity_type: "run",
            entity_id: self.id.clone(),
            payload: json!({ "items": self.items, "outcome": self.outcome.as_str(), "requests": self.requests }),
            actor: format!("highwater {}", self.command),
        }
    }
}
