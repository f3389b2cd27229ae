//! The row of a segment as work needs it, the lease check before every write, and what becomes of a segment given back.

use highwater_core::{Epoch, Fenced, Lease, LeaseState, Position, Purpose, SegmentId, SegmentStatus, Span, Timestamp};

#[derive(Clone, Debug)]
pub(crate) struct SegmentRow {
    pub(crate) id: SegmentId,
    pub(crate) purpose: Purpose,
    pub(crate) span: Span,
    pub(crate) cursor: Option<Position>,
    pub(crate) attempts: u32,
    pub(crate) stored: u64,
    pub(crate) lease: LeaseState,
}

impl SegmentRow {
    /// The segment a lease is for, if the lease still holds.
    pub(crate) fn held(found: Option<SegmentRow>, lease: &Lease) -> Result<SegmentRow, Fenced> {
        let gone = Fenced { segment: lease.segment, held: lease.epoch, current: Epoch::default() };
        let segment = found.ok_or(gone)?;
        segment.lease.admits(lease)?;
        Ok(segment)
    }

    /// A segment all of whose keys were tried goes on waiting for its retries; any other is work to be done.
    pub(crate) fn status_given_back(&self, next_retry: Option<Timestamp>) -> SegmentStatus {
        let tried = self.cursor.is_some_and(|cursor| cursor >= self.span.end());
        if tried && next_retry.is_some() { SegmentStatus::RetryWait } else { SegmentStatus::Pending }
    }
}
