//! What became of a key, and the row kept for a key that is not plainly stored.

use std::time::Duration;

use crate::{
    Failure, FailureKind, Key, RetryPolicy, SegmentId, Timestamp,
    planted::{Bug, planted},
    word,
};

word! {
    /// The state of an exception row.
    pub enum ExceptionState {
        RetryWait = "retry_wait",
        Missing = "missing",
        Excluded = "excluded",
        DeadLetter = "dead_letter",
    }
}

word! {
    /// Why a key is not plainly stored, in one word. Failures use the words of [`crate::FailureKind`].
    pub enum Pending {
        /// The remote says there is nothing, and has not said so often enough.
        Null = "null",
        /// The remote says there is nothing, so near the head that it may not be published yet.
        Unpublished = "unpublished",
        /// Stored, but the remote still hides part of the content.
        Delayed = "delayed",
        /// Put back to work by hand.
        Replayed = "replayed",
    }
}

/// What earlier tries of a key have shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Failures that count against the key.
    pub attempts: u32,
    /// Times the remote said there is nothing, or held content back.
    pub absences: u32,
    pub first_absent_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Stored,
    Missing,
    Excluded,
    Retry { at: Timestamp },
    Dead,
}

impl Verdict {
    pub fn exception_state(&self) -> Option<ExceptionState> {
        match self {
            Verdict::Stored => None,
            Verdict::Missing => Some(ExceptionState::Missing),
            Verdict::Excluded => Some(ExceptionState::Excluded),
            Verdict::Retry { .. } => Some(ExceptionState::RetryWait),
            Verdict::Dead => Some(ExceptionState::DeadLetter),
        }
    }
}

/// The verdict on one key with its evidence: what a commit writes about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub key: Key,
    pub verdict: Verdict,
    pub history: History,
    pub reason: &'static str,
    pub last_error: Option<String>,
}

/// The row kept for a key that is not plainly stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    pub key: Key,
    pub segment: SegmentId,
    pub state: ExceptionState,
    pub history: History,
    pub first_seen_at: Timestamp,
    pub last_tried_at: Timestamp,
    pub next_retry_at: Option<Timestamp>,
    pub reason: String,
    pub last_error: Option<String>,
}

impl Exception {
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.state == ExceptionState::RetryWait && self.next_retry_at.is_none_or(|at| at <= now)
    }
}

/// When "there is nothing" is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbsenceRule {
    /// How often the remote must have said so,
    pub confirmations: u32,
    /// and over how long a time at least.
    pub over: Duration,
    /// What is then said of the key.
    pub reason: &'static str,
}

impl AbsenceRule {
    /// Room between two looks, so that the last confirmation falls no sooner than `over` after the first.
    pub fn spacing(&self) -> Duration {
        self.over / (self.confirmations.max(2) - 1)
    }

    fn is_confirmed(&self, history: &History, now: Timestamp) -> bool {
        let since = history.first_absent_at.unwrap_or(now);
        (history.absences >= self.confirmations && now.since(since) >= self.over) || planted(Bug::FirstNullFinal)
    }
}

/// Whether an absence may be final, or the object may merely not be published yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    Settled,
    Head,
}

/// Whether a failure counts against the key, or is the fault of everything at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    Counts,
    Outage,
}

/// Judges keys; the one place where an answer becomes a verdict.
#[derive(Clone, Copy, Debug)]
pub struct Judge {
    pub retry: RetryPolicy,
    pub absence: AbsenceRule,
    pub now: Timestamp,
    /// In `[0, 1)`, given from outside.
    pub jitter: f64,
}

impl Judge {
    pub fn absence(&self, key: Key, before: &History, region: Region) -> Settlement {
        let history = self.seen_absent(before);
        let spacing = self.absence.spacing();
        let (verdict, reason) = match region {
            Region::Settled if self.absence.is_confirmed(&history, self.now) => (Verdict::Missing, self.absence.reason),
            Region::Settled => (Verdict::Retry { at: self.now + spacing }, self.absence.reason),
            Region::Head => (Verdict::Retry { at: self.now + spacing }, Pending::Unpublished.as_str()),
        };
        Settlement { key, verdict, history, reason, last_error: None }
    }

    /// A stored object of which the remote still holds content back: looked at again a few times, ever later.
    pub fn delayed(&self, key: Key, before: &History, looks: u32) -> Settlement {
        let history = self.seen_absent(before);
        let wait = DELAYED_FIRST_LOOK * 2u32.saturating_pow(history.absences.saturating_sub(1).min(16));
        let verdict = if history.absences > looks {
            Verdict::Stored
        } else {
            Verdict::Retry { at: self.now + wait.min(DELAYED_LOOK_MAX) }
        };
        Settlement { key, verdict, history, reason: Pending::Delayed.as_str(), last_error: None }
    }

    pub fn failure(&self, key: Key, before: &History, failure: &Failure, strike: Strike) -> Settlement {
        // Whoever cannot even be connected to has not seen the key.
        let is_unseen = failure.kind == FailureKind::Connect;
        let is_blameless = failure.kind.is_about_account() || is_unseen || strike == Strike::Outage;
        let attempts = if is_blameless { before.attempts } else { before.attempts + 1 };
        let history = History { attempts, ..before.clone() };
        let verdict = if attempts >= self.retry.attempts || failure.kind.is_final() {
            Verdict::Dead
        } else {
            let least = if is_unseen { UNSEEN_AS } else { 1 };
            Verdict::Retry { at: self.now + self.retry.delay(attempts.max(least), self.jitter) }
        };
        let last_error = Some(failure.message.clone());
        Settlement { key, verdict, history, reason: failure.kind.as_str(), last_error }
    }

    fn seen_absent(&self, before: &History) -> History {
        History {
            attempts: before.attempts,
            absences: before.absences + 1,
            first_absent_at: before.first_absent_at.or(Some(self.now)),
        }
    }
}

/// Hidden comments were seen hidden for three to five minutes; looks at 2, 4, 8… s find the short ones soon.
/// A connection that failed is tried again as late as after so many attempts: the next may fail as well, and so on for
/// all keys.
const UNSEEN_AS: u32 = 3;
const DELAYED_FIRST_LOOK: Duration = Duration::from_secs(2);
const DELAYED_LOOK_MAX: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(now: i64) -> Judge {
        Judge {
            retry: RetryPolicy { attempts: 3, base: Duration::from_millis(500), max: Duration::from_secs(300) },
            absence: AbsenceRule { confirmations: 3, over: Duration::from_secs(5), reason: "null" },
            now: Timestamp::from_millis(now),
            jitter: 0.0,
        }
    }

    #[test]
    fn null_is_missing_only_after_three_looks_over_five_seconds() {
        let first = judge(0).absence(Key::Number(1), &History::default(), Region::Settled);
        assert_eq!(first.verdict, Verdict::Retry { at: Timestamp::from_millis(2500) });
        let second = judge(2500).absence(Key::Number(1), &first.history, Region::Settled);
        let early = judge(4999).absence(Key::Number(1), &second.history, Region::Settled);
        assert!(matches!(early.verdict, Verdict::Retry { .. }));
        let third = judge(5000).absence(Key::Number(1), &second.history, Region::Settled);
        assert_eq!(third.verdict, Verdict::Missing);
    }

    #[test]
    fn null_near_the_head_is_never_final() {
        let mut history = History::default();
        for look in 0..20 {
            let seen = judge(look * 10_000).absence(Key::Number(1), &history, Region::Head);
            assert_eq!((seen.reason, matches!(seen.verdict, Verdict::Retry { .. })), ("unpublished", true));
            history = seen.history;
        }
    }

    #[test]
    fn a_key_dies_after_its_attempts_but_never_of_throttling_or_an_outage() {
        let fails = |kind, strike, times| {
            let mut last = judge(0).failure(Key::Number(1), &History::default(), &Failure::new(kind, ""), strike);
            for _ in 1..times {
                last = judge(0).failure(Key::Number(1), &last.history, &Failure::new(kind, ""), strike);
            }
            last.verdict
        };
        assert!(matches!(fails(FailureKind::Server, Strike::Counts, 2), Verdict::Retry { .. }));
        assert_eq!(fails(FailureKind::Server, Strike::Counts, 3), Verdict::Dead);
        assert!(matches!(fails(FailureKind::Server, Strike::Outage, 50), Verdict::Retry { .. }));
        assert!(matches!(fails(FailureKind::Throttled, Strike::Counts, 50), Verdict::Retry { .. }));
        assert!(matches!(fails(FailureKind::Credentials, Strike::Counts, 50), Verdict::Retry { .. }));
    }

    #[test]
    fn held_back_content_is_looked_at_ever_later_and_then_taken_as_it_is() {
        let mut history = History::default();
        let mut waits = Vec::new();
        loop {
            let seen = judge(0).delayed(Key::Number(1), &history, 3);
            history = seen.history;
            match seen.verdict {
                Verdict::Retry { at } => waits.push(at.as_millis()),
                verdict => break assert_eq!(verdict, Verdict::Stored),
            }
        }
        assert_eq!(waits, [2000, 4000, 8000]);
    }
}
