//! Tells an outage from bad items: when everything fails the same way, a key known to be good is asked before any
//! failing key is blamed. Pauses and probes are carried out by the caller.

use std::time::Duration;

use crate::{FailureKind, Moment, Timestamp};

/// Failures in a row, of kinds that can befall everything, that raise the suspicion.
const SUSPICIOUS: u32 = 20;
/// No connection is never the fault of one key.
const SUSPICIOUS_CONNECTS: u32 = 3;
/// After a canary has answered, failures are the items' own for this long.
const CLEARED: Duration = Duration::from_secs(30);
const PROBE_WAIT: Duration = Duration::from_secs(1);
const PROBE_WAIT_MAX: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Healthy,
    /// Everything fails; a canary must be asked before anything else is.
    Suspect,
    /// The canary failed too; it is asked again at the given time.
    Out {
        since: Moment,
        probe_at: Moment,
    },
}

#[derive(Clone, Debug)]
pub struct OutageWatch {
    health: Health,
    failures_in_row: u32,
    kind: Option<FailureKind>,
    cleared_until: Moment,
    failed_probes: u32,
    /// When the remote last gave a sound answer to anybody.
    answered_at: Option<Timestamp>,
}

impl Default for OutageWatch {
    fn default() -> Self {
        OutageWatch {
            health: Health::Healthy,
            failures_in_row: 0,
            kind: None,
            cleared_until: Moment::START,
            failed_probes: 0,
            answered_at: None,
        }
    }
}

impl OutageWatch {
    pub fn health(&self) -> Health {
        self.health
    }

    pub fn kind(&self) -> Option<FailureKind> {
        self.kind
    }

    /// Any sound answer about any key: the remote is there.
    pub fn saw_success(&mut self, at: Timestamp) {
        self.answered_at = Some(at);
        self.failures_in_row = 0;
        if self.health == Health::Suspect {
            self.health = Health::Healthy;
        }
    }

    pub fn saw_failure(&mut self, kind: FailureKind, now: Moment) {
        if !kind.is_systemic() || self.health != Health::Healthy {
            return;
        }
        self.failures_in_row += 1;
        self.kind = Some(kind);
        let enough = if kind == FailureKind::Connect { SUSPICIOUS_CONNECTS } else { SUSPICIOUS };
        if self.failures_in_row >= enough && now >= self.cleared_until {
            self.health = Health::Suspect;
        }
    }

    /// A key is about to be given up. If nobody has been answered since it was tried before, that alone is suspicious;
    /// says so.
    pub fn doubts_a_death(&mut self, kind: FailureKind, tried_before: Option<Timestamp>) -> bool {
        let evidence = self.answered_at.is_some_and(|answered| tried_before.is_none_or(|tried| answered >= tried));
        let doubtful = kind.is_systemic() && !evidence;
        if doubtful && self.health == Health::Healthy {
            self.health = Health::Suspect;
        }
        doubtful
    }

    /// The canary answered: what failed is the items' own fault.
    pub fn probe_succeeded(&mut self, now: Moment, at: Timestamp) {
        *self = OutageWatch { cleared_until: now + CLEARED, answered_at: Some(at), ..OutageWatch::default() };
    }

    /// The canary failed too; returns when to ask it again.
    pub fn probe_failed(&mut self, now: Moment) -> Moment {
        let wait = PROBE_WAIT.saturating_mul(1 << self.failed_probes.min(10)).min(PROBE_WAIT_MAX);
        self.failed_probes += 1;
        let since = match self.health {
            Health::Out { since, .. } => since,
            Health::Healthy | Health::Suspect => now,
        };
        let probe_at = now + wait;
        self.health = Health::Out { since, probe_at };
        probe_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::after_start(Duration::from_secs(seconds))
    }

    fn wall(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn suspect() -> OutageWatch {
        let mut watch = OutageWatch::default();
        for _ in 0..SUSPICIOUS {
            watch.saw_failure(FailureKind::Server, at(1));
        }
        watch
    }

    #[test]
    fn a_storm_raises_suspicion_and_one_success_lays_it() {
        let mut watch = suspect();
        assert_eq!(watch.health(), Health::Suspect);
        watch.saw_success(wall(1));
        assert_eq!(watch.health(), Health::Healthy);
    }

    #[test]
    fn the_last_key_left_is_given_up_only_after_a_canary_has_answered() {
        let mut watch = OutageWatch::default();
        watch.saw_success(wall(1));
        assert!(!watch.doubts_a_death(FailureKind::Server, Some(wall(1))), "others were answered meanwhile");
        assert!(watch.doubts_a_death(FailureKind::Server, Some(wall(5))));
        assert_eq!(watch.health(), Health::Suspect);
        watch.probe_succeeded(at(6), wall(6));
        assert!(!watch.doubts_a_death(FailureKind::Server, Some(wall(5))));
        assert!(OutageWatch::default().doubts_a_death(FailureKind::Server, None), "nobody was ever answered");
    }

    #[test]
    fn two_broken_items_are_no_outage() {
        let mut watch = OutageWatch::default();
        for _ in 0..16 {
            watch.saw_failure(FailureKind::Denied, at(1));
        }
        assert_eq!(watch.health(), Health::Healthy);
    }

    #[test]
    fn faults_of_our_own_never_look_like_an_outage() {
        let mut watch = OutageWatch::default();
        for _ in 0..1000 {
            watch.saw_failure(FailureKind::Internal, at(1));
        }
        assert_eq!(watch.health(), Health::Healthy);
    }

    #[test]
    fn a_canary_that_answers_clears_the_remote_for_a_while() {
        let mut watch = suspect();
        watch.probe_succeeded(at(2), wall(2));
        for _ in 0..100 {
            watch.saw_failure(FailureKind::Server, at(10));
        }
        assert_eq!(watch.health(), Health::Healthy);
        watch.saw_failure(FailureKind::Server, at(40));
        assert_eq!(watch.health(), Health::Suspect);
    }

    #[test]
    fn an_outage_is_probed_ever_less_often_and_remembers_when_it_began() {
        let mut watch = suspect();
        let mut now = at(2);
        let mut waits = Vec::new();
        for _ in 0..7 {
            let next = watch.probe_failed(now);
            waits.push(next.since(now).as_secs());
            now = next;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        assert!(matches!(watch.health(), Health::Out { since, .. } if since == at(2)));
    }
}
