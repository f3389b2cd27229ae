//! A pass over what is stored already: how much of it is laid in a transaction, and what the ledger says of its end.

use highwater_core::{Position, Rescan, Span, StreamId, Timestamp};
use serde_json::json;

use crate::{ErrorKind, LedgerEntry, RescanPlan, Result, StoreError};

/// Segments a transaction lays.
const LAID_AT_ONCE: u64 = 1_000;
/// A pass with more of them was cut too fine.
const SEGMENTS_MAX: u64 = 100_000;
/// Passes that a transaction ends, and segments of ended passes that it removes.
pub(crate) const ENDED_AT_ONCE: u32 = 1_000;

/// The row of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(crate) rescan: Rescan,
    pub(crate) segment_size: u64,
    /// Segments are laid up to here.
    pub(crate) laid: Position,
}

impl Pass {
    /// What is to be laid next; empty when all is.
    pub(crate) fn next_chunk(&self) -> Span {
        let reach = self.segment_size.max(1).saturating_mul(LAID_AT_ONCE);
        Span::new(self.laid, self.laid.plus(reach).min(self.rescan.span.end()))
    }

    /// The pass as it covers that span as well: one that begins within it, while nobody has begun the pass.
    pub(crate) fn stretched_over(&self, span: Span) -> Option<Pass> {
        let whole = Span::new(self.rescan.span.start(), self.rescan.span.end().max(span.end()));
        let begins_within = whole.start() <= span.start() && span.start() <= self.rescan.span.end();
        let is_bounded = whole.len().div_ceil(self.segment_size.max(1)) <= SEGMENTS_MAX;
        let rescan = Rescan { span: whole, ..self.rescan.clone() };
        (begins_within && is_bounded && !span.is_empty()).then(|| Pass { rescan, ..self.clone() })
    }

    pub(crate) fn is_laid(&self) -> bool {
        self.laid >= self.rescan.span.end()
    }
}

/// The part of a planned pass that lies within its stream.
pub(crate) fn clipped(plan: &RescanPlan, stream: Span) -> Result<Span> {
    let span = plan.span.intersect(stream);
    let segments = span.len().div_ceil(plan.segment_size.max(1));
    if segments > SEGMENTS_MAX {
        let many = format!("a rescan of {span} would take {segments} segments, more than {SEGMENTS_MAX}");
        return Err(StoreError::new(ErrorKind::Refused, many));
    }
    Ok(span)
}

pub(crate) fn rescan_entry(stream: &StreamId, rescan: &Rescan, now: Timestamp) -> LedgerEntry {
    LedgerEntry {
        at: now,
        event_type: "RESCAN_SEALED",
        source: stream.source.clone(),
        entity_type: "rescan",
        entity_id: rescan.id.to_string(),
        payload: json!({
            "stream": stream.stream.as_str(),
            "reason": rescan.reason.as_str(),
            "start": rescan.span.start().0,
            "end": rescan.span.end().0,
            "items": rescan.items,
            "changed": rescan.changed,
        }),
        actor: "highwater serve".into(),
    }
}
