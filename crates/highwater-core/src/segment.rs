//! The durable unit of work: a span of the axis with a status, and the rule that closes it.

use std::fmt;

use crate::{Position, Span, word};

/// The row of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub i64);

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

word! {
    /// Why a segment exists. Only catch-up segments carry the frontier.
    pub enum Purpose {
        Catchup = "catchup",
        Rescan = "rescan",
    }
}

word! {
    pub enum SegmentStatus {
        Pending = "pending",
        InProgress = "in_progress",
        RetryWait = "retry_wait",
        Sealed = "sealed",
        DeadLetter = "dead_letter",
    }
}

word! {
    /// What a dead letter means for the frontier.
    pub enum DeadLetterPolicy {
        /// The frontier stops before it.
        Hold = "hold",
        /// The frontier goes by; the letter stays listed and counted.
        Pass = "pass",
    }
}

/// How many keys of a segment are not plainly settled once every key has been tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub retrying: u64,
    pub dead: u64,
}

impl Tally {
    pub fn unresolved(self) -> u64 {
        self.retrying + self.dead
    }

    /// The status of a segment whose work is done for now.
    pub fn closing_status(self, policy: DeadLetterPolicy) -> SegmentStatus {
        match (self.retrying, self.dead, policy) {
            (1.., _, _) => SegmentStatus::RetryWait,
            (0, 1.., DeadLetterPolicy::Hold) => SegmentStatus::DeadLetter,
            (0, _, _) => SegmentStatus::Sealed,
        }
    }
}

/// A segment as the planner lays it and reports read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub id: SegmentId,
    pub purpose: Purpose,
    pub span: Span,
    pub status: SegmentStatus,
}

/// What has to be planned so that catch-up segments tile `[origin, target)` again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// New work before the present origin.
    pub below: Span,
    /// New work after the present target.
    pub above: Span,
}

impl Extension {
    /// Origins only sink and targets only rise: what was promised once stays promised.
    pub fn of(present: Span, origin: Position, target: Position) -> Extension {
        if present.is_empty() {
            let start = origin.min(target);
            return Extension { below: Span::new(start, start), above: Span::new(start, target) };
        }
        Extension {
            below: Span::new(origin.min(present.start()), present.start()),
            above: Span::new(present.end(), target.max(present.end())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_with_a_retry_waits_and_a_dead_letter_holds_only_under_hold() {
        let status = |retrying, dead, policy| Tally { retrying, dead }.closing_status(policy);
        assert_eq!(status(0, 0, DeadLetterPolicy::Hold), SegmentStatus::Sealed);
        assert_eq!(status(1, 0, DeadLetterPolicy::Pass), SegmentStatus::RetryWait);
        assert_eq!(status(1, 1, DeadLetterPolicy::Hold), SegmentStatus::RetryWait);
        assert_eq!(status(0, 1, DeadLetterPolicy::Hold), SegmentStatus::DeadLetter);
        assert_eq!(status(0, 1, DeadLetterPolicy::Pass), SegmentStatus::Sealed);
    }

    #[test]
    fn an_extension_never_raises_the_origin_nor_lowers_the_target() {
        let span = |a, b| Span::new(Position(a), Position(b));
        let same = Extension::of(span(10, 20), Position(15), Position(18));
        assert!(same.below.is_empty() && same.above.is_empty());
        let wider = Extension::of(span(10, 20), Position(1), Position(30));
        assert_eq!((wider.below, wider.above), (span(1, 10), span(20, 30)));
        let fresh = Extension::of(span(0, 0), Position(1), Position(30));
        assert_eq!((fresh.below.is_empty(), fresh.above), (true, span(1, 30)));
    }
}
