//! How many keys of a segment are not plainly stored, and the line of the ledger that says so when it is sealed.

use highwater_core::{ExceptionState, Tally};
use serde_json::json;

use super::SegmentRow;
use crate::{Close, LedgerEntry};

/// How many exceptions there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Census {
    pub(crate) retrying: u64,
    pub(crate) missing: u64,
    pub(crate) excluded: u64,
    pub(crate) dead: u64,
}

impl Census {
    pub(crate) fn note(&mut self, state: ExceptionState, count: u64) {
        *match state {
            ExceptionState::RetryWait => &mut self.retrying,
            ExceptionState::Missing => &mut self.missing,
            ExceptionState::Excluded => &mut self.excluded,
            ExceptionState::DeadLetter => &mut self.dead,
        } = count;
    }

    pub(crate) fn total(&self) -> u64 {
        self.retrying + self.missing + self.excluded + self.dead
    }

    pub(crate) fn tally(&self) -> Tally {
        Tally { retrying: self.retrying, dead: self.dead }
    }
}

pub(crate) fn sealed_entry(close: &Close, segment: &SegmentRow, stored: u64, census: &Census) -> LedgerEntry {
    LedgerEntry {
        at: close.now,
        event_type: "SEGMENT_SEALED",
        source: close.stream.source.clone(),
        entity_type: "segment",
        entity_id: segment.id.to_string(),
        payload: json!({
            "stream": close.stream.stream.as_str(),
            "start": segment.span.start().0,
            "end": segment.span.end().0,
            "stored": stored,
            "missing": census.missing,
            "excluded": census.excluded,
            "dead": census.dead,
        }),
        actor: close.lease.owner.to_string(),
    }
}
