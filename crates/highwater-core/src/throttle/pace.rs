//! A limited rate at work: the rate, the bucket that spends it, and what the source accepted since the gate last
//! opened. It keeps the bucket settled before every change of the rate; it decides nothing about the gate.

use super::{bucket::Bucket, rate::AdaptiveRate, settings::Learned};
use crate::Moment;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Pace {
    pub(super) rate: AdaptiveRate,
    bucket: Bucket,
    cycle: Cycle,
}

/// From one opening of the gate to the next. Time in which nobody waited is left out: a quiet night must not make
/// the rate look low.
#[derive(Debug, Default)]
struct Cycle {
    accepted: f64,
    wanted: Duration,
}

/// A cycle that ended within a second of work is nearly all pause, and says little of what the source takes in the long
/// run: no more than this part of the rate is given up for it.
const BRIEF_LEAST: f64 = 0.25;

impl Cycle {
    fn accepted_rate(&self, rate: f64) -> f64 {
        let accepted = self.accepted / self.wanted.as_secs_f64();
        if self.accepted < rate { accepted.max(rate * BRIEF_LEAST) } else { accepted }
    }
}

impl Pace {
    pub(super) fn new(rate: AdaptiveRate, burst: f64, now: Moment) -> Self {
        Pace { rate, bucket: Bucket::new(burst, now), cycle: Cycle::default() }
    }

    pub(super) fn ready_at(&self, cost: f64, now: Moment) -> Moment {
        self.bucket.ready_at(cost, self.rate.current(), now)
    }

    pub(super) fn spend(&mut self, cost: f64, now: Moment) {
        self.bucket.spend(cost, self.rate.current(), now);
    }

    /// Somebody waited, for whatever reason that lies with the source or with this throttle.
    pub(super) fn wanted(&mut self, elapsed: Duration) {
        self.cycle.wanted = self.cycle.wanted.saturating_add(elapsed);
    }

    pub(super) fn succeeded(&mut self, cost: f64, now: Moment) {
        self.bucket.settle(self.rate.current(), now);
        self.cycle.accepted += cost;
        self.rate.succeeded(now);
    }

    pub(super) fn cut(&mut self, now: Moment) {
        self.bucket.settle(self.rate.current(), now);
        self.rate.cut();
    }

    pub(super) fn scale(&mut self, factor: f64, now: Moment) {
        self.bucket.settle(self.rate.current(), now);
        self.rate.scale(factor);
        self.cycle.accepted *= factor;
    }

    pub(super) fn keep_below(&mut self, most: f64, now: Moment) {
        self.bucket.settle(self.rate.current(), now);
        self.rate.keep_below(most);
    }

    pub(super) fn recall(&mut self, learned: Learned, now: Moment) {
        self.bucket.settle(self.rate.current(), now);
        self.rate.recall(learned);
    }

    pub(super) fn reopened(&mut self, now: Moment) {
        self.bucket.settle(self.rate.current(), now);
        let cycle = std::mem::take(&mut self.cycle);
        if !cycle.wanted.is_zero() {
            self.rate.resumed(cycle.accepted_rate(self.rate.current()), now);
        }
    }
}
