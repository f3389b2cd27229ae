//! The gate that stops the whole account: after `Retry-After`, after a row of refusals, or from outside. While it is
//! closed nothing leaves; then one probe at a time asks whether it may open. It knows nothing of rates.

use crate::{
    Moment,
    planted::{Bug, planted},
};
use std::time::Duration;

/// A shorter `Retry-After` is a hiccup: it is waited out, but needs no probe.
const BRIEF: Duration = Duration::from_secs(1);
/// Refusals in a row, over at least `ROW_LASTS`, that close the gate when no header says how long.
const ROW: u32 = 8;
const ROW_LASTS: Duration = Duration::from_secs(1);
const BACKOFF_FIRST: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// Processes that were told the same time come back spread over this share of the wait, always after it.
const JITTER_SHARE: f64 = 0.05;
const JITTER_MAX: Duration = Duration::from_secs(1);

crate::word! {
    /// Why nothing leaves.
    pub enum PauseReason {
        RetryAfter = "retry_after",
        /// The source refuses everything and does not say for how long.
        Refusals = "refusals",
        Outage = "outage",
        Operator = "operator",
    }
}

impl PauseReason {
    const fn is_quota(self) -> bool {
        matches!(self, PauseReason::RetryAfter | PauseReason::Refusals)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateState {
    Open,
    Closed {
        until: Moment,
        reason: PauseReason,
    },
    /// The wait is over, and a single request finds out whether the source accepts again.
    Probing,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Moment,
    reason: PauseReason,
}

#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Ends by itself at its time.
    brief: Option<Hold>,
    /// These two outlast their time: only a successful probe lifts them.
    quota: Option<Hold>,
    outside: Option<Hold>,
    probe_out: bool,
    closings: u32,
    row: Row,
}

/// Refusals since the last success.
#[derive(Debug, Default)]
struct Row {
    count: u32,
    first: Moment,
}

/// What a success did to the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    None,
    AfterQuota,
    AfterOutside,
}

impl Gate {
    pub(super) fn state(&self, now: Moment) -> GateState {
        let holds = [self.brief, self.quota, self.outside];
        match holds.into_iter().flatten().max_by_key(|hold| hold.until) {
            Some(Hold { until, reason }) if now < until => GateState::Closed { until, reason },
            _ if self.quota.is_some() || self.outside.is_some() => GateState::Probing,
            _ => GateState::Open,
        }
    }

    /// When a request may pass: none when only the answer to the probe can tell.
    pub(super) fn ready_at(&self, now: Moment) -> Option<Moment> {
        match self.state(now) {
            GateState::Open => Some(now),
            GateState::Closed { .. } | GateState::Probing if self.probe_out => None,
            GateState::Closed { until, .. } => Some(until),
            GateState::Probing => Some(now),
        }
    }

    /// Says whether the request that leaves now is the probe.
    pub(super) fn pass(&mut self, now: Moment) -> bool {
        let probe = self.state(now) == GateState::Probing;
        self.probe_out |= probe;
        probe
    }

    pub(super) fn probe_returned(&mut self) {
        self.probe_out = false;
    }

    pub(super) fn is_closed_by_quota(&self) -> bool {
        self.quota.is_some()
    }

    pub(super) fn is_held_outside(&self) -> bool {
        self.outside.is_some()
    }

    pub(super) fn succeeded(&mut self, probe: bool, now: Moment) -> Opening {
        self.row.count = 0;
        if !probe || self.state(now) != GateState::Probing {
            return Opening::None;
        }
        self.closings = 0;
        self.outside = None;
        match self.quota.take() {
            Some(_) => Opening::AfterQuota,
            None => Opening::AfterOutside,
        }
    }

    pub(super) fn refused(&mut self, probe: bool, retry_after: Option<Duration>, now: Moment, jitter: f64) {
        let retry_after = retry_after.filter(|_| !planted(Bug::RetryAfterIgnored));
        match retry_after {
            Some(wait) if wait > BRIEF => {
                extend(&mut self.quota, now + wait, late(wait, jitter), PauseReason::RetryAfter);
            }
            _ => self.refused_briefly(probe, retry_after.unwrap_or_default(), now, jitter),
        }
    }

    pub(super) fn pause(&mut self, until: Moment, reason: PauseReason) {
        let hold = if reason.is_quota() { &mut self.quota } else { &mut self.outside };
        extend(hold, until, Duration::ZERO, reason);
    }

    /// Lifts what was closed from outside. What the source itself asked for stays.
    pub(super) fn resume(&mut self) {
        self.outside = None;
    }

    fn refused_briefly(&mut self, probe: bool, wait: Duration, now: Moment, jitter: f64) {
        if !wait.is_zero() {
            extend(&mut self.brief, now + wait, late(wait, jitter), PauseReason::RetryAfter);
        }
        let since_first = self.row.add(now);
        if probe && self.quota.is_some() {
            let backoff = self.next_backoff();
            self.close(backoff.max(wait), now, jitter);
        } else if self.quota.is_none() && self.row.count >= ROW {
            // Sending on until the row has lasted would only make it longer: what is left of that time is waited.
            let rest = ROW_LASTS.saturating_sub(since_first);
            let rest = if rest.is_zero() { self.next_backoff() } else { rest };
            self.close(rest.max(wait), now, jitter);
        }
    }

    fn close(&mut self, wait: Duration, now: Moment, jitter: f64) {
        self.row.count = 0;
        extend(&mut self.quota, now + wait, late(wait, jitter), PauseReason::Refusals);
    }

    fn next_backoff(&mut self) -> Duration {
        let doubled = BACKOFF_FIRST * 2_u32.saturating_pow(self.closings.min(8));
        self.closings += 1;
        doubled.min(BACKOFF_MAX)
    }
}

impl Row {
    /// Counts one more, and says how long the row lasts by now.
    fn add(&mut self, now: Moment) -> Duration {
        if self.count == 0 {
            self.first = now;
        }
        self.count = self.count.saturating_add(1);
        now.since(self.first)
    }
}

/// Moves a hold to a later end, never to an earlier one. The jitter comes on top only when the hold really moves:
/// else every answer of a flight would add its own.
fn extend(hold: &mut Option<Hold>, until: Moment, late: Duration, reason: PauseReason) {
    if hold.is_none_or(|hold| hold.until < until) {
        *hold = Some(Hold { until: until + late, reason });
    }
}

fn late(wait: Duration, jitter: f64) -> Duration {
    wait.mul_f64(JITTER_SHARE).min(JITTER_MAX).mul_f64(jitter.clamp(0.0, 1.0))
}
