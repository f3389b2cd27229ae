//! How many requests may be in flight: what the rate needs at the latency seen, within the configured bounds, less
//! when a source slows down. It counts permits; it does not pace them.

use super::{
    latency::{Health, Latency},
    losses::{Advice, Losses},
    settings::{InFlight, OnSlow},
};
use crate::Moment;
use std::time::Duration;

/// Room above what the rate needs on average, so that a slow answer does not hold up the next request.
const HEADROOM: f64 = 2.0;
const CAP_LEAST: f64 = 2.0;
const SHRINK: f64 = 0.9;
/// Healthy rounds of a second that take a shrunk limit back to its maximum, at most.
const REGROWTH_ROUNDS: f64 = 16.0;
/// What is left of the requests under way when it is tried whether fewer are lost, at first, and once it is known that
/// only so many are taken.
const TRIED: f64 = 0.25;
const TRIED_AGAIN: f64 = 0.7;
/// As much a round where more than a source takes are lost: a larger step would go far beyond.
const REGROWTH_SHARE: f64 = 0.1;
const COST_WEIGHT: f64 = 0.05;

#[derive(Debug)]
pub(super) struct Concurrency {
    in_flight: u32,
    bounds: InFlight,
    on_slow: OnSlow,
    /// What latency and refusals left of the maximum.
    limit: f64,
    /// The cap was met since the last round: without that a larger one proves nothing.
    met: bool,
    losses: Losses,
    /// It was lowered because of losses, and has not been at its maximum since.
    was_lossy: bool,
    latency: Latency,
    mean_cost: Option<f64>,
}

impl Concurrency {
    pub(super) fn new(bounds: InFlight, on_slow: OnSlow, now: Moment) -> Self {
        let max = bounds.max.max(1);
        let bounds = InFlight { start: bounds.start.clamp(1, max), max };
        let (limit, latency) = (f64::from(max), Latency::new(now));
        let losses = Losses::new(now);
        Concurrency {
            in_flight: 0,
            bounds,
            on_slow,
            limit,
            met: false,
            losses,
            was_lossy: false,
            latency,
            mean_cost: None,
        }
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The cap at `rate` units a second; without a rate nothing but the limit applies.
    pub(super) fn cap(&self, rate: Option<f64>) -> u32 {
        let needed = match (rate, self.latency.typical()) {
            (None, _) => self.limit,
            (Some(_), None) => f64::from(self.bounds.start),
            (Some(rate), Some(seconds)) => rate / self.mean_cost.unwrap_or(1.0) * seconds * HEADROOM,
        };
        // The cast saturates, and the bounds are whole numbers of u32.
        needed.max(self.least()).min(self.limit).ceil() as u32
    }

    /// However fast the answers: a few that never come must not use up all there is.
    fn least(&self) -> f64 {
        (f64::from(self.bounds.start) / 4.0).max(CAP_LEAST)
    }

    pub(super) fn met_cap(&mut self) {
        self.met = true;
    }

    pub(super) fn take(&mut self) {
        self.in_flight += 1;
    }

    pub(super) fn release(&mut self) {
        debug_assert!(self.in_flight > 0, "a permit came back that was never given");
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    pub(super) fn succeeded(&mut self, latency: Duration, cost: f64, now: Moment) {
        let mean = self.mean_cost.unwrap_or(cost);
        self.mean_cost = Some((mean + COST_WEIGHT * (cost - mean)).max(f64::MIN_POSITIVE));
        match self.latency.record(latency, now) {
            Some(Health::Slow) if self.on_slow == OnSlow::Shrink => self.shrink(SHRINK),
            Some(Health::Normal) if self.met && !self.losses.is_trying() => self.grow(),
            Some(_) => self.met = false,
            None => {}
        }
    }

    /// Whether an answer came at all, whatever it says, or the connection was refused or lost.
    pub(super) fn ended(&mut self, is_lost: bool, started: Moment, now: Moment) {
        let limits = (self.limit, CAP_LEAST.min(f64::from(self.bounds.max)));
        match self.losses.record(is_lost, started, limits, now) {
            Advice::None => {}
            Advice::Try => {
                self.limit = self.limit.min(f64::from(self.in_flight + 1));
                self.shrink(if self.was_lossy { TRIED_AGAIN } else { TRIED });
            }
            Advice::Keep => self.was_lossy = true,
            Advice::Restore(limit) => self.limit = limit,
        }
    }

    /// Nothing was asked for a while.
    pub(super) fn paused(&mut self, now: Moment) {
        if let Some(limit) = self.losses.forget(now) {
            self.limit = limit;
        }
    }

    pub(super) fn shrink(&mut self, factor: f64) {
        self.limit = (self.limit * factor).max(CAP_LEAST.min(f64::from(self.bounds.max)));
        self.met = false;
    }

    /// After a stop, and without a rate that would spread them, everybody who waits must not leave together.
    pub(super) fn restart(&mut self) {
        self.limit = f64::from(self.bounds.start);
    }

    fn grow(&mut self) {
        let max = f64::from(self.bounds.max);
        let step = if self.was_lossy { self.limit * REGROWTH_SHARE } else { max / REGROWTH_ROUNDS };
        self.limit = (self.limit + step.max(1.0)).min(max);
        self.was_lossy &= self.limit < max;
        self.met = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: InFlight = InFlight { start: 4, max: 64 };

    fn rounds(concurrency: &mut Concurrency, millis: u64, seconds: std::ops::Range<u64>) {
        for second in seconds {
            let now = Moment::after_start(Duration::from_secs(second));
            concurrency.met_cap();
            (0..20).for_each(|_| concurrency.succeeded(Duration::from_millis(millis), 5.0, now));
        }
    }

    #[test]
    fn the_cap_follows_rate_latency_and_cost_within_its_bounds() {
        let mut concurrency = Concurrency::new(BOUNDS, OnSlow::Ignore, Moment::START);
        assert_eq!((concurrency.cap(Some(250.0)), concurrency.cap(None)), (4, 64));
        rounds(&mut concurrency, 100, 1..3);
        let cap = concurrency.cap(Some(250.0));
        assert!((10..=11).contains(&cap), "{cap}");
        assert_eq!((concurrency.cap(Some(0.1)), concurrency.cap(Some(1e9))), (2, 64));
    }

    #[test]
    fn slow_answers_shrink_the_limit_and_healthy_ones_give_it_back() {
        let mut concurrency = Concurrency::new(BOUNDS, OnSlow::Shrink, Moment::START);
        rounds(&mut concurrency, 100, 1..10);
        rounds(&mut concurrency, 300, 10..12);
        assert!(concurrency.cap(None) < 60, "{}", concurrency.cap(None));
        rounds(&mut concurrency, 100, 12..40);
        assert_eq!(concurrency.cap(None), 64);
    }

    #[test]
    fn a_maximum_of_one_stays_one() {
        let mut concurrency = Concurrency::new(InFlight { start: 8, max: 1 }, OnSlow::Shrink, Moment::START);
        concurrency.shrink(0.5);
        assert_eq!((concurrency.cap(None), concurrency.cap(Some(9.0))), (1, 1));
    }
}
