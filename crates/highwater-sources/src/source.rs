//! What the engine asks of a source. A source knows its API and its tables; it knows no store.

use futures_util::{
    future::BoxFuture,
    stream::{self, BoxStream},
};
use highwater_core::{
    AbsenceRule, DeadLetterPolicy, Failure, FailureKind, Key, KeySet, Position, Record, Span, StreamName, Timestamp,
    schema::{SideSpec, Table},
};

use crate::{Allowance, Call, Changes, Gateway, Held, Live, Recall};

pub trait Source: Send + Sync {
    fn streams(&self) -> &[StreamSpec];
    /// The way to the remote: one per account, shared by every lane.
    fn gateway(&self) -> &Gateway;
    /// The exclusive end of the axis as the remote has it now.
    fn head<'a>(&'a self, stream: &'a StreamName, call: &'a Call) -> BoxFuture<'a, Result<Position, Failure>>;
    /// What there is to mirror, before anything is planned.
    fn survey<'a>(&'a self, stream: &'a StreamName, call: &'a Call) -> BoxFuture<'a, Result<Survey, Failure>> {
        Box::pin(async move {
            let first = self.streams().iter().find(|spec| spec.name == *stream).map_or(Position(0), |spec| spec.origin);
            Ok(Survey { head: self.head(stream, call).await?, first, oldest: first, segment_size: None })
        })
    }
    /// Where an operator wants the stream to begin now, if the configuration says so.
    fn floor(&self, _stream: &StreamName) -> Option<Position> {
        None
    }
    /// Where the objects of `at` and later begin: at the origin for a time before the first object, at the head for one
    /// after the last. Rather too low than too high, where the remote does not tell.
    fn position_at<'a>(
        &'a self,
        stream: &'a StreamName,
        at: Timestamp,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Position, Failure>>;
    /// The keys of a span.
    fn discover<'a>(
        &'a self,
        stream: &'a StreamName,
        span: Span,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Discovered, Failure>>;
    /// The keys once more, when all those listed before are dealt with: what came and went meanwhile shows in the
    /// difference. None if a second list would prove nothing, or cost too much.
    fn recheck<'a>(
        &'a self,
        _stream: &'a StreamName,
        _span: Span,
        _call: &'a Call,
    ) -> BoxFuture<'a, Result<Option<Discovered>, Failure>> {
        Box::pin(async { Ok(None) })
    }
    /// How many calls it would take to mirror the stream now, found out by listing it; none if it cannot be told.
    fn forecast<'a>(
        &'a self,
        _stream: &'a StreamName,
        _call: &'a Call,
    ) -> BoxFuture<'a, Result<Option<Forecast>, Failure>> {
        Box::pin(async { Ok(None) })
    }
    /// One answer for each key, in any order. An error is about the batch as a whole: it is tried again, then split.
    fn fetch<'a>(
        &'a self,
        stream: &'a StreamName,
        keys: &'a [Key],
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Vec<Answer>, Failure>>;
    /// As `fetch`, in as many parts as memory asks for. Each is to be dealt with and dropped before the next is asked for.
    fn fetch_parts<'a>(
        &'a self,
        stream: &'a StreamName,
        keys: &'a [Key],
        call: &'a Call,
    ) -> BoxStream<'a, Result<Vec<Answer>, Failure>> {
        Box::pin(stream::once(self.fetch(stream, keys, call)))
    }
    /// Whether the remote answers at all: asks once for the canary (or the head without one), also while the account is
    /// paused for an outage. Any sound answer will do, also that there is no such object.
    fn probe<'a>(&'a self, stream: &'a StreamName, canary: Option<&'a Key>) -> BoxFuture<'a, Result<(), Failure>>;
    /// What the remote tells by itself, if it does.
    fn live(&self) -> Option<&dyn Live>;
    /// The bound on calls that an operator has set, if calls are counted.
    fn allowance(&self) -> Option<&Allowance> {
        None
    }
    /// Gives back what was taken for the work, which is over.
    fn sign_off(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
    /// The remote's own record of what changed, if it keeps one.
    fn changes(&self) -> Option<&dyn Changes> {
        None
    }
    /// The way to tell it what is stored, if it needs to know.
    fn recall(&self) -> Option<&dyn Recall> {
        None
    }
}

/// The extent of a stream, and how finely it is best cut; none if that is the same for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survey {
    pub head: Position,
    pub first: Position,
    /// Nothing lies before it now.
    pub oldest: Position,
    pub segment_size: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Discovered {
    Keys(KeySet),
    /// The span is to be cut in two.
    TooMany,
    /// Everything there is, of a remote that is mirrored as a whole.
    Roll(Roll),
    /// The account may not see what is there.
    Refused(Failure),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roll {
    pub keys: Vec<Key>,
    /// Those that are listed otherwise than the last time, so that their bodies are to be read again.
    pub moved: Vec<Key>,
    pub unlisted: Vec<Unlisted>,
}

/// A part of what there is that cannot be listed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlisted {
    pub part: String,
    pub failure: Failure,
}

impl Unlisted {
    /// A row that does not say what it is called.
    pub fn nameless() -> Self {
        let failure = Failure::new(FailureKind::Malformed, "a row of the list has no id");
        Unlisted { part: "a row without an id".into(), failure }
    }
}

/// What a look at a stream says it would take to mirror it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    pub objects: u64,
    /// By kind of call.
    pub calls: Vec<(&'static str, u64)>,
    /// Why nothing can be said of it.
    pub refused: Option<String>,
}

#[derive(Clone, Debug)]
pub struct StreamSpec {
    pub name: StreamName,
    /// What positions are: `id`, `seconds`, `snapshot`.
    pub axis: &'static str,
    pub origin: Position,
    pub table: &'static Table,
    /// Whether every position of the axis is a key.
    pub density: Density,
    pub follows: Following,
    /// What belongs to its rows.
    pub sides: &'static [SideSpec],
    /// The column that is filled when a stored object turns out to be gone.
    pub vanished: Option<&'static str>,
    pub policy: StreamPolicy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Density {
    Dense,
    /// The remote lists the keys of a span.
    Sparse,
    /// Keys are names that occur in rows of another stream, in the order in which they were found.
    Named(NamedIn),
    /// Positions are times: a segment is everything there is, as it was at its end or later.
    Snapshot(Renewal),
}

/// What a snapshot asks for of what an earlier one has stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// All of it, also what is no longer listed.
    Anew,
    /// Nothing: the remote never changes it.
    Once,
}

/// Which commands mirror a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Following {
    /// `sync`, and `serve` from then on.
    Sync,
    /// `serve` alone.
    Serve,
}

/// Where names come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedIn {
    pub stream: &'static str,
    pub table: &'static Table,
    pub column: &'static str,
}

/// Defaults of a stream that a configuration may override.
#[derive(Clone, Copy, Debug)]
pub struct StreamPolicy {
    pub segment_size: u64,
    pub job_size: usize,
    pub dead_letters: DeadLetterPolicy,
    pub absence: AbsenceRule,
    /// How far behind the head an absence may be final.
    pub settled_behind: u64,
}

#[derive(Debug)]
pub struct Answer {
    pub key: Key,
    pub fetched: Fetched,
    /// The memory it takes up, where that is bounded: to be dropped with it.
    pub held: Option<Held>,
}

impl Answer {
    pub fn new(key: Key, fetched: Fetched) -> Self {
        Answer { key, fetched, held: None }
    }
}

#[derive(Clone, Debug)]
pub enum Fetched {
    Found(Record),
    /// Stored as it is, and looked at again up to so many times: the remote holds content back.
    Delayed {
        record: Record,
        looks: u32,
    },
    /// The remote says there is no such object.
    Absent,
    /// The body is still the one whose mark was shown: see [`crate::Tags`].
    Unchanged,
    Excluded {
        reason: &'static str,
    },
    Failed(Failure),
    /// Not asked: the run is stopping.
    Skipped,
}
