//! The decisions of Highwater as plain data and functions: no async, clock, randomness, SQL or HTTP.

mod account;
mod alert;
mod downloads;
mod edit;
mod event;
mod failure;
mod frontier;
mod lane;
mod lease;
mod live;
mod name;
mod number;
mod outage;
pub mod planted;
mod record;
mod retry;
pub mod schema;
pub mod search;
mod segment;
mod span;
mod split;
mod text;
pub mod throttle;
mod time;
mod verdict;
mod word;

pub use account::{Account, AccountReport, AccountView, Closed, Pause, SHARE_LEAST, SILENCE_MAX, Sharer};
pub use alert::{
    AlertBook, AlertChange, AlertState, CatchupSignals, Condition, ControlSignals, ItemSignals, LiveSignals, OpenAlert,
    Severity, Signals,
};
pub use downloads::Downloads;
pub use edit::{Edit, Otherwise, Tiding, list, texts};
pub use event::{BatchCounts, Event, Observer};
pub use failure::{Failure, FailureKind};
pub use frontier::{Frontier, Overlap};
pub use lane::Lane;
pub use lease::{Epoch, Fenced, Lease, LeaseState, WorkerId};
pub use live::{AGE_BOUNDS, AGE_CLASSES, AgeCounts, Ages, BlindWindow, Rescan, RescanId, RescanReason, WindowId};
pub use name::{BadName, Key, KeySet, SourceName, StreamId, StreamName};
pub use number::spelled_number;
pub use outage::{Health, OutageWatch};
pub use record::{
    Blob, Body, Change, Note, Record, SideRow, SidesCheck, Value, blob_path, has_repeats, hex, without_repeats,
};
pub use retry::RetryPolicy;
pub use segment::{DeadLetterPolicy, Extension, Purpose, Segment, SegmentId, SegmentStatus, Tally};
pub use span::{Position, Span};
pub use split::{AfterFailure, after_failure, halves};
pub use text::Text;
pub use time::{Moment, Timestamp};
pub use verdict::{
    AbsenceRule, Exception, ExceptionState, History, Judge, Pending, Region, Settlement, Strike, Verdict,
};
pub use word::UnknownWord;
