//! Everything worth telling, in one enum: it feeds progress, logs, the simulator's recorder and later metrics alike.
//! Events carry no bodies and no credentials.

use std::time::Duration;

use crate::{
    Ages, AlertChange, BlindWindow, Failure, FailureKind, Key, Moment, Position, Rescan, RescanReason, SegmentId,
    SegmentStatus, Span, StreamId, Timestamp,
};

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    RunStarted {
        /// How many objects there are, where positions do not tell.
        expected: Option<u64>,
        stream: StreamId,
        origin: Position,
        frontier: Position,
        target: Position,
        /// Keys of the span that are stored or explained already.
        settled: u64,
    },
    HeadFailed {
        kind: FailureKind,
        retry_at: Timestamp,
    },
    Planned {
        stream: StreamId,
        span: Span,
        segments: u64,
    },
    /// What lies between the range that was asked for and what is mirrored is fetched as well.
    Bridged {
        gap: Span,
    },
    Claimed {
        segment: SegmentId,
        span: Span,
        keys: u64,
    },
    /// A job's rows and verdicts are durable.
    Committed {
        segment: SegmentId,
        batch: BatchCounts,
        took: Duration,
    },
    KeyFailed {
        key: Key,
        kind: FailureKind,
        attempts: u32,
        retry_at: Option<Timestamp>,
    },
    /// The remote has lost an object that is stored; the stored body stays.
    Vanished {
        key: Key,
    },
    DeadLetter {
        key: Key,
        reason: &'static str,
    },
    Closed {
        segment: SegmentId,
        span: Span,
        status: SegmentStatus,
        frontier: Position,
    },
    /// Another worker has the segment now; what we fetched for it is dropped.
    LeaseLost {
        segment: SegmentId,
    },
    JobSplit {
        segment: SegmentId,
        keys: u64,
    },
    JobStalled {
        segment: SegmentId,
        keys: u64,
    },
    WorkerPanicked {
        segment: SegmentId,
    },
    OutageSuspected {
        kind: Option<FailureKind>,
    },
    OutageConfirmed {
        kind: Option<FailureKind>,
        probe_at: Moment,
    },
    OutageOver,
    /// Nothing can be done before then.
    Waiting {
        until: Timestamp,
    },
    /// The operator's allowance is used up; there is more then.
    Spent {
        until: Timestamp,
    },
    SpentOver,
    StoreTrouble {
        error: String,
    },
    StoreHealed,
    /// So many keys have been compared with the remote.
    Compared {
        keys: u64,
    },
    Alert(AlertChange),
    /// The remote tells us of changes from now on.
    FeedConnected {
        feed: &'static str,
    },
    FeedLost {
        feed: &'static str,
        failure: Failure,
        retry_in: Duration,
    },
    /// Nobody has listened since then.
    BlindSince {
        at: Timestamp,
    },
    /// Everything that may have changed unheard has been looked at again.
    BlindWindowClosed {
        window: BlindWindow,
    },
    RescanBegan {
        reason: RescanReason,
        span: Span,
    },
    RescanSealed {
        rescan: Rescan,
    },
    /// Objects the remote told of are durable.
    LiveCommitted {
        batch: BatchCounts,
        ages: Ages,
        took: Duration,
    },
    /// An object the remote told of could not be had within a few tries, and is looked for as any other from now on.
    LiveDeferred {
        key: Key,
    },
    LiveWorkerFell,
    /// This process listens from now on; the others stand by.
    RoleTaken,
    RoleLost,
    Stopping,
}

/// What one commit did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchCounts {
    pub new: u64,
    pub changed: u64,
    pub unchanged: u64,
    /// Not stored, because a row came in since they were asked for that says something else.
    pub behind: u64,
    pub missing: u64,
    pub excluded: u64,
    pub retrying: u64,
    pub dead: u64,
}

impl BatchCounts {
    pub fn stored(&self) -> u64 {
        self.new + self.changed + self.unchanged
    }

    pub fn bad(&self) -> u64 {
        self.dead
    }

    pub fn add(&mut self, other: &BatchCounts) {
        self.new += other.new;
        self.changed += other.changed;
        self.unchanged += other.unchanged;
        self.behind += other.behind;
        self.missing += other.missing;
        self.excluded += other.excluded;
        self.retrying += other.retrying;
        self.dead += other.dead;
    }
}

/// Whoever wants to know. Called on the hot path: an observer counts or queues, and never waits.
pub trait Observer: Send + Sync {
    fn notify(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> Observer for F {
    fn notify(&self, event: &Event) {
        self(event);
    }
}
