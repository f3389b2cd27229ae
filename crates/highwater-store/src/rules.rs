//! What every backend decides alike, without SQL: the rules between what is read and what is written.

mod census;
mod json;
mod laying;
mod mirror;
mod segment_row;
mod settling;

pub(crate) use census::{Census, sealed_entry};
pub(crate) use json::canonical;
pub(crate) use laying::{Laid, Rest};
pub(crate) use mirror::{Kept, Stored, distinct, key_column, key_of, place, size_of};
pub(crate) use segment_row::SegmentRow;
pub(crate) use settling::{count, is_to_be_reconsidered, ledger_entry, next_retry, owner, status_when_replayed};
