//! One account used by several processes: who may spend how much of its quota, and what all of them must know at once.
//! Stores keep the rows and bring the clock; what follows from them is decided here.

use std::time::Duration;

use crate::{
    Timestamp,
    throttle::{Learned, PauseReason},
};

/// Refusals that come this soon after a cut are about the rate before it: one cut per flight, for all processes.
const CUT_EVERY: Duration = Duration::from_secs(1);
/// Rates move all the time: they are noted this often.
const NOTED_EVERY: Duration = Duration::from_secs(10);
/// A quota may have changed since.
const LEARNED_LASTS: Duration = Duration::from_secs(3600);
/// For no longer is a source left alone, whatever it says. What is noted to last longer was noted by a wrong clock.
pub const SILENCE_MAX: Duration = Duration::from_secs(24 * 3600);
/// A process that wants nothing keeps enough to show that it wants something again.
const DEMAND_LEAST: f64 = 0.02;
/// Never nothing at all: a rate of zero would have no next permit.
pub const SHARE_LEAST: f64 = 0.001;

/// What all processes of an account share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// How often the account's rate was cut, ever.
    pub cuts: u64,
    pub cut_at: Option<Timestamp>,
    pub closed: Option<Closed>,
    /// Of the whole account, not of one share.
    pub learned: Option<Learned>,
    pub heard_at: Option<Timestamp>,
}

/// The account's gate is closed until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    pub until: Timestamp,
    pub reason: PauseReason,
}

impl Closed {
    /// A minute is what clocks may differ by.
    fn holds(self, now: Timestamp) -> bool {
        now < self.until && self.until.since(now) <= SILENCE_MAX + Duration::from_secs(60)
    }
}

/// A pause as it is told: in time that is left, because clocks of machines differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    pub left: Duration,
    pub reason: PauseReason,
}

/// What a process tells about itself at each beat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccountReport {
    /// How much it could use, between 0 and 1.
    pub demand: f64,
    /// Units per second it may send now; none when unlimited.
    pub rate: Option<f64>,
    /// Cuts since its last report.
    pub cuts: u64,
    pub pause: Option<Pause>,
    pub learned: Option<Learned>,
}

/// Another process of the account, alive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sharer {
    pub demand: f64,
    /// Held until it says otherwise or dies.
    pub share: f64,
}

/// What a process hears back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccountView {
    /// Of the account's rate, above 0 and at most 1.
    pub share: f64,
    pub cuts: u64,
    pub pause: Option<Pause>,
    pub learned: Option<Learned>,
}

impl Account {
    /// Takes a report in. An account of which nothing new is heard stays as it is for a while: its row is spared.
    pub fn hear(&mut self, report: &AccountReport, now: Timestamp) {
        let mut heard = self.clone();
        heard.take_in(report, now);
        let is_urgent = heard.cuts != self.cuts || heard.closed != self.closed;
        if is_urgent || self.heard_at.is_none_or(|heard_at| now.since(heard_at) >= NOTED_EVERY) {
            *self = Account { heard_at: Some(now), ..heard };
        }
    }

    fn take_in(&mut self, report: &AccountReport, now: Timestamp) {
        if report.cuts > 0 && self.cut_at.is_none_or(|cut_at| now.since(cut_at) >= CUT_EVERY) {
            self.cuts += 1;
            self.cut_at = Some(now);
        }
        self.closed = self.closed.filter(|closed| closed.holds(now));
        if let Some(pause) = report.pause {
            let until = now + pause.left;
            if self.closed.is_none_or(|closed| closed.until < until) {
                self.closed = Some(Closed { until, reason: pause.reason }).filter(|closed| closed.holds(now));
            }
        }
        self.learned = report.learned.or(self.learned);
    }

    pub fn pause(&self, now: Timestamp) -> Option<Pause> {
        let closed = self.closed.filter(|closed| closed.holds(now))?;
        Some(Pause { left: closed.until.since(now), reason: closed.reason })
    }

    /// What a process with this report may do, beside the others.
    pub fn view(&self, report: &AccountReport, others: &[Sharer], now: Timestamp) -> AccountView {
        AccountView {
            share: share(report.demand, others),
            cuts: self.cuts,
            pause: self.pause(now),
            learned: self.learned.filter(|_| self.heard_at.is_some_and(|at| now.since(at) <= LEARNED_LASTS)),
        }
    }
}

/// By demand, out of what the others do not hold: all shares together are never more than the whole, also while one
/// process knows of a newcomer and another does not yet.
fn share(demand: f64, others: &[Sharer]) -> f64 {
    let weight = |demand: f64| demand.clamp(DEMAND_LEAST, 1.0);
    let all: f64 = weight(demand) + others.iter().map(|other| weight(other.demand)).sum::<f64>();
    let free = 1.0 - others.iter().map(|other| other.share).sum::<f64>();
    (weight(demand) / all).min(free).max(SHARE_LEAST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report(demand: f64) -> AccountReport {
        AccountReport { demand, rate: None, cuts: 0, pause: None, learned: None }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn two_refusals_of_one_flight_are_one_cut() {
        let mut account = Account::default();
        let refused = AccountReport { cuts: 1, ..report(1.0) };
        account.hear(&refused, at(0));
        account.hear(&refused, at(900));
        assert_eq!(account.cuts, 1);
        account.hear(&refused, at(1_000));
        assert_eq!(account.cuts, 2);
    }

    #[test]
    fn a_closed_gate_is_closed_for_all_until_the_latest_end() {
        let mut account = Account::default();
        let closed = |seconds| {
            let pause = Pause { left: Duration::from_secs(seconds), reason: PauseReason::RetryAfter };
            AccountReport { pause: Some(pause), ..report(1.0) }
        };
        account.hear(&closed(10), at(0));
        account.hear(&closed(3), at(1_000));
        account.hear(&report(1.0), at(2_000));
        let pause = account.view(&report(1.0), &[], at(2_000)).pause;
        assert_eq!(pause, Some(Pause { left: Duration::from_secs(8), reason: PauseReason::RetryAfter }));
        account.hear(&report(1.0), at(10_000));
        assert_eq!(account.view(&report(1.0), &[], at(10_000)).pause, None);
    }

    #[test]
    fn what_was_learned_is_noted_now_and_then_and_forgotten_after_an_hour() {
        let mut account = Account::default();
        let learned = |rate| AccountReport { learned: Some(Learned { rate, ceiling: None }), ..report(1.0) };
        account.hear(&learned(10.0), at(0));
        account.hear(&learned(11.0), at(9_999));
        assert_eq!(account.learned.map(|learned| learned.rate), Some(10.0));
        account.hear(&learned(12.0), at(10_000));
        assert_eq!(account.learned.map(|learned| learned.rate), Some(12.0));
        let view = |now| account.view(&report(1.0), &[], at(now)).learned;
        assert!(view(3_610_000).is_some() && view(3_610_001).is_none());
    }

    #[test]
    fn a_newcomer_gets_its_part_once_the_others_have_let_go() {
        let mut first = Sharer { demand: 1.0, share: share(1.0, &[]) };
        assert_eq!(first.share, 1.0);
        let mut second = Sharer { demand: 1.0, share: share(1.0, &[first]) };
        assert_eq!(second.share, SHARE_LEAST);
        first.share = share(first.demand, &[second]);
        second.share = share(second.demand, &[first]);
        assert_eq!((first.share, second.share), (0.5, 0.5));
    }

    #[test]
    fn who_wants_little_leaves_the_rest_to_the_others() {
        let idle = Sharer { demand: 0.0, share: 0.5 };
        let idle = Sharer { share: share(idle.demand, &[Sharer { demand: 1.0, share: 0.5 }]), ..idle };
        assert!(idle.share < 0.02);
        assert!(share(1.0, &[idle]) > 0.98);
    }

    proptest! {
        /// Processes beat in any order, come and change their minds: together they never hold more than the whole.
        #[test]
        fn shares_never_add_up_to_more_than_the_whole(beats in prop::collection::vec((0usize..5, 0.0f64..1.0), 1..60)) {
            let mut sharers: Vec<Option<Sharer>> = vec![None; 5];
            for (who, demand) in beats {
                let others: Vec<Sharer> = sharers.iter().enumerate()
                    .filter(|(index, _)| *index != who).filter_map(|(_, sharer)| *sharer).collect();
                sharers[who] = Some(Sharer { demand, share: share(demand, &others) });
                let sum: f64 = sharers.iter().flatten().map(|sharer| sharer.share).sum();
                prop_assert!(sum <= 1.0 + 5.0 * SHARE_LEAST, "{sum}");
            }
        }
    }
}
