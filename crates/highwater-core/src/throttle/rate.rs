//! The rate that finds an unknown quota: it grows while permits are waited for and is cut when the source refuses.
//! It does not know who waits, nor whether the gate is closed.

use super::settings::{Growth, Learned, Policy};
use crate::Moment;
use std::time::Duration;

/// Growth per second before the first refusal.
const SLOW_START: f64 = 0.5;
/// Steps per second as a share of the ceiling: half of `STEP` right after a refusal, doubling every `STEP_DOUBLES`.
const STEP: f64 = 0.01;
const STEP_MAX: f64 = 0.05;
const STEP_DOUBLES: Duration = Duration::from_secs(30);
/// Below this share of the ceiling the steps are larger: most of the way back was accepted before. In simulation that
/// lifts the use of a sliding second from 89 % to 91 %.
const NEAR: f64 = 0.95;
const FAR_FACTOR: f64 = 3.0;
/// Keeps very low rates moving, in units per second per second.
const STEP_LEAST: f64 = 0.01;
/// One success proves at most this much waiting: the rest of a long gap may have been a suspended machine.
const PROVEN_MAX: Duration = Duration::from_secs(1);
/// A restart does not trust a rate found some time ago in full.
const RESTART_SHARE: f64 = 0.8;
const RESUMED_CEILING: f64 = 0.5;
/// Cuts end here; when even this is refused, the gate closes.
const FLOOR_SHARE: f64 = 0.01;

#[derive(Debug)]
pub(super) struct AdaptiveRate {
    current: f64,
    /// The last rate that was refused; none during slow start.
    ceiling: Option<f64>,
    floor: f64,
    max: f64,
    policy: Policy,
    evidence: Evidence,
}

#[derive(Debug)]
struct Evidence {
    waited: Duration,
    successes: u32,
    last_refused: Moment,
}

impl AdaptiveRate {
    pub(super) fn new(start: f64, max: f64, policy: Policy, now: Moment) -> Self {
        assert!(start > 0.0 && max > 0.0, "a limited rate must be above zero");
        let floor = start.min(max) * FLOOR_SHARE;
        let evidence = Evidence { waited: Duration::ZERO, successes: 0, last_refused: now };
        AdaptiveRate { current: start.min(max), ceiling: None, floor, max, policy, evidence }
    }

    pub(super) fn current(&self) -> f64 {
        self.current
    }

    pub(super) fn ceiling(&self) -> Option<f64> {
        self.ceiling
    }

    pub(super) fn learned(&self) -> Learned {
        Learned { rate: self.current, ceiling: self.ceiling }
    }

    /// Somebody waited for the rate alone. Without this a success grows nothing: unused room proves nothing.
    pub(super) fn waited(&mut self, elapsed: Duration) {
        self.evidence.waited = self.evidence.waited.saturating_add(elapsed).min(PROVEN_MAX);
    }

    pub(super) fn succeeded(&mut self, now: Moment) {
        let proven = std::mem::take(&mut self.evidence.waited).as_secs_f64();
        if proven == 0.0 {
            return;
        }
        self.current = match self.policy.growth {
            Growth::Additive => self.grown(proven, now),
            Growth::AfterSuccesses { count, delay_factor } => self.recovered(count, delay_factor),
        }
        .min(self.max);
    }

    pub(super) fn refused(&mut self, now: Moment) {
        self.evidence.last_refused = now;
        self.evidence.successes = 0;
    }

    pub(super) fn cut(&mut self) {
        self.ceiling = Some(self.current);
        self.current = (self.current * self.policy.cut).max(self.floor);
    }

    /// The gate closed: the rate is kept for its end, slow start is over.
    pub(super) fn stopped(&mut self) {
        self.ceiling = Some(self.current);
        self.evidence.waited = Duration::ZERO;
    }

    /// The gate opened again after the source had accepted `accepted` units per second, pauses included.
    ///
    /// The ceiling follows, by half at most: steps of its old size would overshoot again, and a single cycle that went
    /// badly must not take the way back.
    pub(super) fn resumed(&mut self, accepted: f64, now: Moment) {
        self.current = self.current.min(accepted).max(self.floor);
        self.ceiling = self.ceiling.map(|ceiling| self.current.max(ceiling * RESUMED_CEILING));
        self.evidence.last_refused = now;
    }

    pub(super) fn keep_below(&mut self, most: f64) {
        self.max = self.max.min(most);
        self.current = self.current.min(self.max);
    }

    /// The account is shared with more or fewer others from now on.
    pub(super) fn scale(&mut self, factor: f64) {
        self.current *= factor;
        self.ceiling = self.ceiling.map(|ceiling| ceiling * factor);
        self.floor *= factor;
        self.max *= factor;
    }

    /// What an earlier process found out, taken up before the first request.
    pub(super) fn recall(&mut self, learned: Learned) {
        if learned.rate.is_finite() && learned.rate > 0.0 {
            self.current = (learned.rate * RESTART_SHARE).clamp(self.floor, self.max);
            self.ceiling = learned.ceiling.filter(|ceiling| ceiling.is_finite());
        }
    }

    fn grown(&self, seconds: f64, now: Moment) -> f64 {
        let Some(ceiling) = self.ceiling else {
            return self.current * (1.0 + SLOW_START * seconds);
        };
        let quiet = now.since(self.evidence.last_refused).as_secs_f64() / STEP_DOUBLES.as_secs_f64();
        let step = if self.current > ceiling * NEAR { STEP } else { STEP * FAR_FACTOR };
        let share = (step * (quiet - 1.0).exp2()).min(STEP_MAX);
        self.current + (share * ceiling).max(STEP_LEAST) * seconds
    }

    fn recovered(&mut self, count: u32, delay_factor: f64) -> f64 {
        self.evidence.successes += 1;
        if self.evidence.successes < count {
            return self.current;
        }
        self.evidence.successes = 0;
        self.current / delay_factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Moment {
        Moment::after_start(Duration::from_secs(seconds))
    }

    fn rate(start: f64, max: f64, policy: Policy) -> AdaptiveRate {
        AdaptiveRate::new(start, max, policy, Moment::START)
    }

    #[test]
    fn slow_start_ends_at_the_first_cut() {
        let mut rate = rate(2.0, 1e3, Policy::default());
        rate.waited(SECOND);
        rate.succeeded(at(1));
        assert_eq!(rate.current(), 3.0);
        rate.refused(at(1));
        rate.cut();
        assert_eq!((rate.current(), rate.ceiling()), (3.0 * 0.85, Some(3.0)));
        rate.waited(SECOND);
        rate.succeeded(at(31));
        assert!((rate.current() - (3.0 * 0.85 + 3.0 * 0.03)).abs() < 1e-9, "{}", rate.current());
    }

    #[test]
    fn unused_room_grows_nothing_and_a_long_gap_proves_one_second() {
        let mut rate = rate(10.0, 1e3, Policy::default());
        rate.succeeded(at(100));
        assert_eq!(rate.current(), 10.0);
        rate.waited(Duration::from_secs(28_800));
        rate.succeeded(at(28_900));
        assert_eq!(rate.current(), 15.0);
    }

    #[test]
    fn the_rate_stays_between_its_floor_and_its_maximum() {
        let mut rate = rate(10.0, 12.0, Policy::default());
        rate.waited(SECOND);
        rate.succeeded(at(1));
        assert_eq!(rate.current(), 12.0);
        (0..200).for_each(|_| rate.cut());
        assert_eq!(rate.current(), 0.1);
    }

    #[test]
    fn looker_slows_by_one_and_a_half_and_recovers_after_ten_successes() {
        let growth = Growth::AfterSuccesses { count: 10, delay_factor: 0.9 };
        let mut rate = rate(9.0, 1e3, Policy { cut: 1.0 / 1.5, growth, ..Policy::default() });
        rate.cut();
        assert_eq!(rate.current(), 6.0);
        for _ in 0..10 {
            assert_eq!(rate.current(), 6.0);
            rate.waited(SECOND);
            rate.succeeded(at(1));
        }
        assert_eq!(rate.current(), 6.0 / 0.9);
    }

    #[test]
    fn a_restart_begins_below_what_was_learned_and_without_slow_start() {
        let mut rate = rate(2.0, 1e3, Policy::default());
        rate.recall(Learned { rate: 50.0, ceiling: Some(55.0) });
        assert_eq!(rate.current(), 40.0);
        rate.waited(SECOND);
        rate.succeeded(at(1));
        assert!(rate.current() < 41.0);
    }
}
