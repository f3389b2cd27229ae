//! Who may write for a segment: an owner, and an epoch that fences off owners of the past.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    SegmentId, SegmentStatus, Timestamp,
    planted::{Bug, planted},
};

/// One start of one process. Never reused, so that a restarted process cannot keep a dead one's work alive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(Arc<str>);

impl WorkerId {
    pub fn new(id: &str) -> Self {
        WorkerId(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Counts the claims of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub i64);

/// The right to write for a segment, until somebody claims it at a later epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub segment: SegmentId,
    pub owner: WorkerId,
    pub epoch: Epoch,
}

/// The lease columns of a segment's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseState {
    pub status: SegmentStatus,
    pub owner: Option<WorkerId>,
    pub epoch: Epoch,
    pub heartbeat_at: Option<Timestamp>,
}

/// The lease is no longer the holder's: whatever it brings must not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease on segment {segment} was taken over: epoch {held:?} is behind {current:?}")]
pub struct Fenced {
    pub segment: SegmentId,
    pub held: Epoch,
    pub current: Epoch,
}

impl LeaseState {
    /// Whether `lease` may still write.
    pub fn admits(&self, lease: &Lease) -> Result<(), Fenced> {
        let held = self.status == SegmentStatus::InProgress
            && self.owner.as_ref() == Some(&lease.owner)
            && self.epoch == lease.epoch;
        if held || planted(Bug::FenceSkipped) {
            Ok(())
        } else {
            Err(Fenced { segment: lease.segment, held: lease.epoch, current: self.epoch })
        }
    }

    /// Whether nobody has been heard of for `ttl`, so that the segment may be taken over.
    pub fn is_expired(&self, now: Timestamp, ttl: Duration) -> bool {
        let heard_of = self.heartbeat_at.unwrap_or(Timestamp::EPOCH);
        self.status == SegmentStatus::InProgress && now.since(heard_of) >= ttl
    }

    /// The state after `owner` has claimed the segment, and the lease it gets.
    pub fn claimed(&self, segment: SegmentId, owner: &WorkerId, now: Timestamp) -> (LeaseState, Lease) {
        let step = if planted(Bug::TwoWorkersOneLease) { 0 } else { 1 };
        let epoch = Epoch(self.epoch.0 + step);
        let state = LeaseState {
            status: SegmentStatus::InProgress,
            owner: Some(owner.clone()),
            epoch,
            heartbeat_at: Some(now),
        };
        (state, Lease { segment, owner: owner.clone(), epoch })
    }
}
