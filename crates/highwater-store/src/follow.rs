//! What a mirror asks of its store that follows a remote's own record of changes.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use highwater_core::{
    Key, Lease, Position, StreamId, Tiding, Timestamp, Value,
    schema::{SideTable, Table},
};

use crate::{LedgerEntry, Page, Result};

/// The part of a store that serves a record of changes. Every method that writes is one short transaction, all or
/// nothing, and may be called again with the same arguments without harm.
pub trait FollowStore: Send + Sync {
    /// How far the record was followed.
    fn followed<'a>(&'a self, stream: &'a StreamId) -> BoxFuture<'a, Result<Followed>>;
    /// Notes where the record is to be followed from, and how many objects there are, unless that is known already.
    fn follow_from<'a>(
        &'a self,
        stream: &'a StreamId,
        from: &'a str,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<()>>;
    /// Changes rows as they were told to have changed, and has fetched what is told of and not stored: as keys that
    /// wait for a retry, due at once, in a segment of their own.
    fn apply(&self, tidings: Arc<Tidings>) -> BoxFuture<'_, Result<Applied>>;
    /// Some columns of the rows, in order of their key, a page at a time.
    fn columns<'a>(
        &'a self,
        table: &'static Table,
        columns: &'a [&'static str],
        page: Page<Key>,
    ) -> BoxFuture<'a, Result<Vec<Columns>>>;
    /// Rows beside those of a table, in order of their key, a page at a time.
    fn side_rows<'a>(
        &'a self,
        side: &'static SideTable,
        of: &'static Table,
        page: Page<String>,
    ) -> BoxFuture<'a, Result<Vec<Vec<Value>>>>;
    /// Which rows computed from those of `table` are not what these make, some groups at a time in their order.
    fn misderived<'a>(&'a self, table: &'static Table, page: Page<String>) -> BoxFuture<'a, Result<Misderived>>;
    /// Computes the rows of these groups anew.
    fn rederive<'a>(
        &'a self,
        stream: &'a StreamId,
        table: &'static Table,
        groups: &'a [String],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<()>>;
    /// Cuts a segment in two: it keeps what lies before `at`, the rest is a segment of its own that nobody works on.
    fn cut<'a>(&'a self, lease: &'a Lease, at: Position) -> BoxFuture<'a, Result<()>>;
}

/// What a look at some groups came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Misderived {
    /// The last group looked at; none if there was none.
    pub last: Option<String>,
    pub wrong: Vec<String>,
}

/// A key, and some columns of its row.
pub type Columns = (Key, Vec<Value>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// Everything before is applied.
    pub upto: Option<String>,
    /// When all rows were last compared with everything the remote has.
    pub reconciled_at: Option<Timestamp>,
    /// Objects there were when the record was begun to be followed.
    pub expected: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Tidings {
    pub stream: StreamId,
    pub table: &'static Table,
    /// Where the record was followed to before: if that is no longer so, somebody else has applied these, and nothing
    /// is done.
    pub after: String,
    /// Where it is followed to with these; none if more of the same stretch is to come.
    pub upto: Option<String>,
    /// No key twice.
    pub tidings: Vec<Tiding>,
    /// Where the segment of keys that are to be fetched lies: anywhere within the axis.
    pub position: Position,
    pub entries: Vec<LedgerEntry>,
    /// With these all rows have been compared with everything the remote has.
    pub is_reconciled: bool,
    pub now: Timestamp,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Rows that are others now.
    pub edited: u64,
    /// Keys that are to be fetched.
    pub wanted: u64,
    pub excluded: u64,
    /// Somebody else has applied them already.
    pub is_late: bool,
}
