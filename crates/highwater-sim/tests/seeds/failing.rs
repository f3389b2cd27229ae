//! Layers that fail on purpose: the nth call to the store or to the remote, once or from then on.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use futures_util::future::BoxFuture;
use highwater_core::{
    AccountView, BatchCounts, Exception, Failure, FailureKind, Key, KeySet, Lease, Pause, Position, Segment, SegmentId,
    SourceName, StreamId, Timestamp, WorkerId, schema::Table,
};
use highwater_sources::{Request, Response, Transport};
use highwater_store::{
    Claim, Claimed, Close, Closed, Commit, Counts, Download, DownloadNote, ErrorKind, ExceptionFilter, FollowStore,
    Known, LedgerEntry, LedgerLine, LiveStore, MailboxStore, Outlook, Page, Plan, Result, RunEnd, RunStart, ShareAsk,
    Store, StoreError, StoredRow, StreamRow, WorkerRow,
};

use crate::{follow_methods::follow_methods, live_methods::live_methods, mailbox_methods::mailbox_methods};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Lasting {
    Once,
    FromThenOn,
}

/// Counts calls, and says which fail.
pub(crate) struct Fuse {
    calls: AtomicU64,
    nth: u64,
    lasting: Lasting,
}

impl Fuse {
    pub(crate) fn new(nth: u64, lasting: Lasting) -> Arc<Self> {
        Arc::new(Fuse { calls: AtomicU64::new(0), nth, lasting })
    }

    fn blows(&self) -> bool {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        match self.lasting {
            Lasting::Once => call == self.nth,
            Lasting::FromThenOn => call >= self.nth,
        }
    }

    /// Whether the nth call was ever made.
    pub(crate) fn was_reached(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > self.nth
    }
}

pub(crate) struct FailingTransport {
    pub(crate) inner: Arc<dyn Transport>,
    pub(crate) fuse: Arc<Fuse>,
}

impl Transport for FailingTransport {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Failure>> {
        if self.fuse.blows() {
            return Box::pin(async { Err(Failure::new(FailureKind::Connect, "refused on purpose")) });
        }
        self.inner.send(request)
    }
}

pub(crate) struct FailingStore {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) fuse: Arc<Fuse>,
}

fn failure<T>() -> Result<T> {
    Err(StoreError::new(ErrorKind::Unavailable, "failing on purpose"))
}

/// Each method fails when the fuse blows, and is passed on otherwise.
macro_rules! pass_on {
    ($(fn $name:ident<$life:lifetime>(&$life2:lifetime self $(, $arg:ident: $type:ty)*) -> $output:ty;)+) => {
        $(fn $name<$life>(&$life self $(, $arg: $type)*) -> BoxFuture<$life, Result<$output>> {
            if self.fuse.blows() { Box::pin(async { failure() }) } else { self.inner.$name($($arg),*) }
        })+
    };
}

impl LiveStore for FailingStore {
    live_methods!(pass_on);
}

impl MailboxStore for FailingStore {
    mailbox_methods!(pass_on);
}

impl FollowStore for FailingStore {
    follow_methods!(pass_on);
}

impl Store for FailingStore {
    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    pass_on! {
        fn open_stream<'a>(&'a self, stream: &'a StreamId, axis: &'a str) -> StreamRow;
        fn plan<'a>(&'a self, plan: Plan<'a>) -> ();
        fn claim<'a>(&'a self, claim: Claim<'a>) -> Vec<Claimed>;
        fn known<'a>(&'a self, stream: &'a StreamId, table: &'static Table, keys: &'a KeySet) -> Known;
        fn commit<'a>(&'a self, commit: Arc<Commit>) -> BatchCounts;
        fn close<'a>(&'a self, close: Close) -> Closed;
        fn release<'a>(&'a self, leases: &'a [Lease]) -> ();
        fn heartbeat<'a>(&'a self, leases: &'a [Lease], now: Timestamp) -> Vec<SegmentId>;
        fn outlook<'a>(&'a self, stream: &'a StreamId) -> Outlook;
        fn replay<'a>(&'a self, stream: &'a StreamId, keys: Option<&'a [Key]>, now: Timestamp) -> u64;
        fn recount<'a>(&'a self, stream: &'a StreamId, table: &'static Table) -> ();
        fn share<'a>(&'a self, ask: &'a ShareAsk) -> AccountView;
        fn leave<'a>(&'a self, worker: &'a WorkerId) -> ();
        fn pause<'a>(&'a self, source: &'a SourceName, now: Timestamp) -> Option<Pause>;
        fn workers<'a>(&'a self, source: &'a SourceName, now: Timestamp) -> Vec<WorkerRow>;
        fn begin_run<'a>(&'a self, run: &'a RunStart) -> ();
        fn end_run<'a>(&'a self, run: &'a RunEnd) -> ();
        fn note_requests<'a>(&'a self, run: &'a str, requests: u64) -> ();
        fn requests_since<'a>(&'a self, source: &'a SourceName, since: Timestamp) -> u64;
        fn note_downloads<'a>(&'a self, note: &'a DownloadNote) -> ();
        fn downloads_since<'a>(&'a self, source: &'a SourceName, since: Timestamp) -> Vec<Download>;
        fn append_ledger<'a>(&'a self, entry: &'a LedgerEntry) -> ();
        fn streams<'a>(&'a self) -> Vec<StreamRow>;
        fn counts<'a>(&'a self, stream: &'a StreamId) -> Counts;
        fn segments<'a>(&'a self, stream: &'a StreamId, page: Page<(Position, SegmentId)>) -> Vec<Segment>;
        fn exceptions<'a>(&'a self, stream: &'a StreamId, filter: ExceptionFilter, page: Page<Key>) -> Vec<Exception>;
        fn rows<'a>(&'a self, table: &'static Table, page: Page<Key>) -> Vec<StoredRow>;
        fn ledger<'a>(&'a self, source: &'a SourceName, page: Page<i64>) -> Vec<LedgerLine>;
        fn integrity<'a>(&'a self) -> Vec<String>;
    }
}
