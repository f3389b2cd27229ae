//! What a mirror that stays current asks of its store: rows the remote told of by itself, the windows in which nobody
//! listened, the passes that look again, and who listens.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use highwater_core::{
    AgeCounts, Ages, AlertState, BatchCounts, BlindWindow, Key, KeySet, Position, Record, Rescan, RescanId,
    RescanReason, SourceName, Span, StreamId, StreamName, Timestamp, WindowId, WorkerId, schema::Table,
};

use crate::Result;

/// The part of a store that serves the live feed. Every method that writes is one short transaction, all or nothing,
/// and may be called again with the same arguments without harm.
pub trait LiveStore: Send + Sync {
    /// Stores rows outside any segment. A key that had an exception is settled by its row, as in [`crate::Store::commit`].
    fn commit_live(&self, commit: Arc<LiveCommit>) -> BoxFuture<'_, Result<LiveCommitted>>;
    /// The marks by which the remote knows the stored bodies of these keys, where it gave one.
    fn tags<'a>(&'a self, table: &'static Table, keys: &'a KeySet) -> BoxFuture<'a, Result<BTreeMap<Key, String>>>;

    /// Takes a role, or renews it; false while somebody else has it who renewed it within its time to live.
    fn take_role<'a>(&'a self, ask: &'a RoleAsk) -> BoxFuture<'a, Result<bool>>;
    fn drop_role<'a>(&'a self, ask: &'a RoleAsk) -> BoxFuture<'a, Result<()>>;

    /// What is known of the feed of a stream.
    fn live_state<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<LiveState>>;
    /// Notes until when everything the feed told is stored, and what it told since. This, and opening and ending
    /// windows, is refused (`Fenced`) to who does not have the role [`LISTENER`] any more.
    fn heard<'a>(&'a self, heard: &'a Heard) -> BoxFuture<'a, Result<()>>;
    /// What of a stream was told and not stored when that was last noted.
    fn told<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Vec<Key>>>;
    /// Opens a window, or finds the one that is open and has not ended yet.
    fn open_window<'a>(&'a self, window: &'a NewWindow) -> BoxFuture<'a, Result<WindowId>>;
    /// The feed is back: notes until when nobody listened and where the head is, and lays the pass that covers it.
    fn end_window<'a>(&'a self, end: &'a EndWindow) -> BoxFuture<'a, Result<()>>;

    /// The names in a column of the rows of a span, each once: whose profiles a window may have missed.
    fn names_in<'a>(&'a self, names: &'a NamesIn) -> BoxFuture<'a, Result<Vec<String>>>;
    /// All names of a window's pass have been looked at again.
    fn names_done(&self, window: WindowId, now: Timestamp) -> BoxFuture<'_, Result<()>>;

    /// Lays the segments of a pass over what is stored already. More than a transaction should hold are laid by several;
    /// where that is broken off, `settle_live` goes on with it.
    fn begin_rescan<'a>(&'a self, plan: &'a RescanPlan) -> BoxFuture<'a, Result<RescanId>>;
    /// Ends passes whose segments are all sealed, and closes windows whose pass has ended, whose profiles are looked at
    /// again and whose new positions lie behind the frontier; returns those that ended by this call.
    fn settle_live<'a>(&'a self, stream: &'a StreamId, now: Timestamp) -> BoxFuture<'a, Result<LiveSettled>>;
    /// Joins neighbouring small sealed catch-up segments behind the frontier; returns how many rows were saved.
    fn compact<'a>(&'a self, stream: &'a StreamId, segment_size: u64) -> BoxFuture<'a, Result<u64>>;

    /// Enters names that occur in a column of stored rows into the list of a stream, as far as rows lie before `until`
    /// and were not looked at yet; a bounded number of rows at a time. `None` when all are.
    fn collect_names<'a>(&'a self, collect: &'a CollectNames) -> BoxFuture<'a, Result<Option<Collected>>>;
    /// Enters names into the list of a stream.
    fn note_names<'a>(&'a self, stream: &'a StreamId, names: &'a [String]) -> BoxFuture<'a, Result<()>>;
    /// The names of a span of the list, in order.
    fn listed<'a>(&'a self, stream: &'a StreamId, span: Span) -> BoxFuture<'a, Result<Vec<Key>>>;
    /// Where a name is on the list.
    fn listed_at<'a>(&'a self, stream: &'a StreamId, name: &'a Key) -> BoxFuture<'a, Result<Option<Position>>>;
    /// The exclusive end of the whole list, which begins at 1.
    fn listed_end<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Position>>;

    /// How old objects were when they were found changed, since the store was made.
    fn ages<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<AgeCounts>>;
    /// Notes an alert that was raised or resolved, of which the ledger gets a line, or that goes on.
    fn note_alert<'a>(&'a self, alert: &'a AlertNote) -> BoxFuture<'a, Result<()>>;
    /// Alerts that are not resolved, the eldest first.
    fn open_alerts<'a>(&'a self, source: &'a SourceName) -> BoxFuture<'a, Result<Vec<AlertRow>>>;
    /// The conditions that people were ever told of, and when last.
    fn told_alerts<'a>(&'a self, source: &'a SourceName) -> BoxFuture<'a, Result<Vec<(String, Timestamp)>>>;
    /// Bytes of the whole database, and of the tables of the control plane in it.
    fn sizes(&self) -> BoxFuture<'_, Result<StoreSizes>>;
    /// When the first run of a source began, of a command if that is named.
    fn first_run_at<'a>(
        &'a self,
        source: &'a SourceName,
        command: Option<&'static str>,
    ) -> BoxFuture<'a, Result<Option<Timestamp>>>;
}

/// The role of the one who listens to the feed of a source; what is noted about the feed is its alone to write.
pub const LISTENER: &str = "listener";

#[derive(Clone, Debug)]
pub struct LiveCommit {
    pub stream: StreamId,
    pub now: Timestamp,
    /// Before the first of the records was asked for.
    pub asked_at: Timestamp,
    pub records: Vec<Record>,
    /// Keys whose body the remote says is still the stored one: only `last_fetched_at` moves.
    pub unchanged: Vec<(Key, &'static Table)>,
}

impl LiveCommit {
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        let stored = self.records.iter().map(|record| &record.key);
        stored.chain(self.unchanged.iter().map(|(key, _)| key))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveCommitted {
    pub batch: BatchCounts,
    /// Of the changed ones.
    pub ages: Ages,
    /// Not stored, and to be asked for again: a row came in since they were asked for that says something else.
    pub behind: BTreeSet<Key>,
}

/// A role that one process of a source has at a time, for as long as it renews it. By the database's clock where
/// processes share the store.
#[derive(Clone, Debug)]
pub struct RoleAsk {
    pub source: SourceName,
    pub role: &'static str,
    pub worker: WorkerId,
    pub ttl: Duration,
    pub now: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveState {
    /// Everything the feed told until then is stored.
    pub heard_until: Option<Timestamp>,
    /// The windows that are not closed.
    pub windows: Vec<BlindWindow>,
    /// The passes that have not ended, and the last one that has.
    pub rescans: Vec<Rescan>,
    pub last_rescan: Option<Rescan>,
    /// When the last scheduled pass began, and where the last part of the slow pass over everything ends.
    pub last_scheduled_at: Option<Timestamp>,
    pub history_upto: Option<Position>,
    /// Objects looked at by all passes that ended, and how many of them differed.
    pub rescanned: u64,
    pub differed: u64,
}

#[derive(Clone, Debug)]
pub struct Heard {
    pub stream: StreamId,
    pub until: Timestamp,
    /// Told and not stored; of a stream that is not named here nothing changes.
    pub told: Vec<(StreamName, Vec<Key>)>,
    pub worker: WorkerId,
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub struct NewWindow {
    pub stream: StreamId,
    pub opened_at: Timestamp,
    pub reason: String,
    pub worker: WorkerId,
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub struct EndWindow {
    pub window: WindowId,
    pub ended_at: Timestamp,
    pub head: Position,
    /// An empty span lays nothing: there is nothing to look at again.
    pub rescan: RescanPlan,
    pub worker: WorkerId,
}

#[derive(Clone, Debug)]
pub struct RescanPlan {
    pub stream: StreamId,
    pub reason: RescanReason,
    pub span: Span,
    pub segment_size: u64,
    pub now: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveSettled {
    pub rescans: Vec<Rescan>,
    pub windows: Vec<BlindWindow>,
}

#[derive(Clone, Debug)]
pub struct CollectNames {
    /// The list that grows.
    pub stream: StreamId,
    /// The stream whose rows name them, and where.
    pub from: StreamId,
    pub table: &'static Table,
    pub column: &'static str,
    /// Exclusive, of the key of `table`.
    pub until: Position,
}

#[derive(Clone, Debug)]
pub struct NamesIn {
    pub table: &'static Table,
    pub column: &'static str,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collected {
    pub upto: Position,
    pub new_names: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertNote {
    pub source: SourceName,
    pub condition: String,
    pub severity: String,
    pub message: String,
    pub at: Timestamp,
    pub state: AlertState,
    /// When people were told, if they were just now.
    pub told_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertRow {
    pub condition: String,
    pub severity: String,
    pub message: String,
    pub raised_at: Timestamp,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreSizes {
    pub database_bytes: u64,
    pub control_bytes: u64,
    /// Of what the rows name that is kept beside the database, each content once.
    pub blob_bytes: u64,
}
