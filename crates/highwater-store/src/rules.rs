//! What every backend decides alike, without SQL: the rules between what is read and what is written.

mod alerting;
mod census;
mod following;
mod joining;
mod json;
mod laying;
mod mailbox;
mod mirror;
mod passes;
mod segment_row;
mod settling;
mod shares;
mod windows;

use std::time::Duration;

/// Clocks of machines differ by less. What was tried longer ahead of now was tried under a wrong one.
pub(crate) const CLOCKS_DIFFER: Duration = Duration::from_secs(3600);

pub(crate) use alerting::alert_entry;
pub(crate) use census::{Census, sealed_entry};
pub(crate) use following::{TOLD, Then, is_outrun, then};
pub(crate) use joining::{JOINED_AT_ONCE, Joined, joined};
pub(crate) use json::canonical;
pub(crate) use laying::{Laid, Rest};
pub(crate) use mailbox::no_mailbox;
pub(crate) use mirror::{
    Arrival, Grouped, Kept, REPAIR, Stored, by_place, distinct, grouped, key_column, key_of, kinds_of, note_entry,
    size_of,
};
pub(crate) use passes::{ENDED_AT_ONCE, Pass, clipped, rescan_entry};
pub(crate) use segment_row::SegmentRow;
pub(crate) use settling::{
    count, is_ended_by_row, is_to_be_reconsidered, ledger_entry, next_retry, owner, status_when_replayed,
};
pub(crate) use shares::{AtWork, shared_out};
pub(crate) use windows::{WindowRow, not_listening, told_keys, told_text};
