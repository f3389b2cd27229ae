//! A verification beside a sync: what it reads first is older than what it reads later, and nothing of that is damage.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use futures_util::future::BoxFuture;
use highwater_core::{
    AccountView, BatchCounts, Exception, Key, KeySet, Lease, Pause, Position, Segment, SegmentId, SegmentStatus,
    SourceName, StreamId, Timestamp, Value, WorkerId, schema::Table,
};
use highwater_store::{
    Claim, Claimed, Close, Closed, Commit, Counts, Download, DownloadNote, ExceptionFilter, FollowStore, Known,
    LedgerEntry, LedgerLine, LiveStore, MailboxStore, Outlook, Page, Plan, Result, RunEnd, RunStart, ShareAsk, Store,
    StoredRow, StreamRow, WorkerRow,
};

use crate::{
    follow_methods::follow_methods, live_methods::live_methods, mailbox_methods::mailbox_methods, run::Stage,
    scenario::Scenario,
};

/// What one look at something shows as it was a moment before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stale {
    /// The missing key had no exception yet.
    Exceptions,
    /// The last segment was at work, the frontier before it.
    Segments,
    /// The rows had not been fetched again since the remote changed them.
    Rows,
    /// Rows half of which are of a moment later.
    TornRows,
}

struct Earlier {
    inner: Arc<dyn Store>,
    stale: Stale,
    looks: AtomicU32,
}

impl Earlier {
    /// The books are read before the remote is compared with, so rows are read for that at the second look.
    fn shows(&self, stale: Stale) -> bool {
        let look = if stale == Stale::Rows { 1 } else { 0 };
        self.stale == stale && self.looks.fetch_add(1, Ordering::Relaxed) == look
    }
}

macro_rules! pass_on {
    ($(fn $name:ident<$life:lifetime>(&$life2:lifetime self $(, $arg:ident: $type:ty)*) -> $output:ty;)+) => {
        $(fn $name<$life>(&$life self $(, $arg: $type)*) -> BoxFuture<$life, Result<$output>> {
            self.inner.$name($($arg),*)
        })+
    };
}

impl LiveStore for Earlier {
    live_methods!(pass_on);
}

impl MailboxStore for Earlier {
    mailbox_methods!(pass_on);
}

impl FollowStore for Earlier {
    follow_methods!(pass_on);
}

impl Store for Earlier {
    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn exceptions<'a>(
        &'a self,
        stream: &'a StreamId,
        filter: ExceptionFilter,
        page: Page<Key>,
    ) -> BoxFuture<'a, Result<Vec<Exception>>> {
        if self.shows(Stale::Exceptions) {
            return Box::pin(async { Ok(Vec::new()) });
        }
        self.inner.exceptions(stream, filter, page)
    }

    fn segments<'a>(
        &'a self,
        stream: &'a StreamId,
        page: Page<(Position, SegmentId)>,
    ) -> BoxFuture<'a, Result<Vec<Segment>>> {
        let stale = self.shows(Stale::Segments);
        Box::pin(async move {
            let mut segments = self.inner.segments(stream, page).await?;
            if let Some(last) = segments.last_mut().filter(|_| stale) {
                last.status = SegmentStatus::InProgress;
            }
            Ok(segments)
        })
    }

    fn rows<'a>(&'a self, table: &'static Table, page: Page<Key>) -> BoxFuture<'a, Result<Vec<StoredRow>>> {
        let (stale, torn) = (self.shows(Stale::Rows), self.shows(Stale::TornRows));
        Box::pin(async move {
            let mut rows = self.inner.rows(table, page).await?;
            for row in rows.iter_mut().filter(|_| stale || torn) {
                row.body.values[table.position("by").unwrap()] = Value::Text("somebody else".into());
                row.row_check = if torn { row.row_check } else { row.body.checksum() };
            }
            Ok(rows)
        })
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
        fn ledger<'a>(&'a self, source: &'a SourceName, page: Page<i64>) -> Vec<LedgerLine>;
        fn integrity<'a>(&'a self) -> Vec<String>;
    }
}

#[test]
fn what_changed_while_it_was_read_is_not_reported() {
    let mut stage = Stage::new(&Scenario::small());
    stage.finish();
    for stale in [Stale::Exceptions, Stale::Segments, Stale::Rows, Stale::TornRows] {
        let earlier = |inner| Arc::new(Earlier { inner, stale, looks: AtomicU32::new(0) }) as Arc<dyn Store>;
        let report = stage.verify(&earlier);
        let verdict = &report.streams[0];
        let told = (verdict.differs, verdict.unexplained, &verdict.book_errors);
        assert_eq!(told, (0, 0, &Vec::new()), "{stale:?}: {:?}", verdict.examples);
    }
}
