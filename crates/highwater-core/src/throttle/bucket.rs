//! The token bucket: when the next permit is due at a given rate. It never books ahead: a permit is paid when it
//! leaves, so that a change of rate moves everybody who still waits.

use crate::{
    Moment,
    planted::{Bug, planted},
};
use std::time::Duration;

/// Lateness of a driver's timer that is made up for: a 1 ms timer fires up to 2 ms late on a busy machine.
pub(super) const CATCH_UP: Duration = Duration::from_millis(5);

/// A longer silence was idleness or a suspended machine, and earns no more than one unit.
const IDLE_AFTER: Duration = Duration::from_secs(5);

const UNIT: f64 = 1.0;

/// Rounding of a level is far below this, and a billionth of a request is none.
const ROUNDING: f64 = 1e-9;

#[derive(Debug)]
pub(super) struct Bucket {
    /// Below zero after a heavy request: the debt is earned back before the next one leaves.
    level: f64,
    burst: f64,
    settled: Moment,
}

impl Bucket {
    pub(super) fn new(burst: f64, now: Moment) -> Self {
        Bucket { level: UNIT, burst: burst.max(UNIT), settled: now }
    }

    /// Must be called with the old rate before the rate changes.
    pub(super) fn settle(&mut self, rate: f64, now: Moment) {
        self.level = self.level_at(rate, now);
        self.settled = self.settled.max(now);
    }

    pub(super) fn spend(&mut self, cost: f64, rate: f64, now: Moment) {
        self.settle(rate, now);
        self.level -= cost;
    }

    /// When a request of `cost` may leave if nothing else happens; not after `now` when it is due.
    pub(super) fn ready_at(&self, cost: f64, rate: f64, now: Moment) -> Moment {
        let missing = entry(cost) - self.level_at(rate, now);
        if missing <= ROUNDING {
            return now;
        }
        let wait = Duration::try_from_secs_f64(missing / rate).unwrap_or(Duration::MAX);
        now + wait.saturating_add(Duration::from_nanos(1))
    }

    fn level_at(&self, rate: f64, now: Moment) -> f64 {
        let elapsed = now.since(self.settled);
        let most = if elapsed > IDLE_AFTER { UNIT } else { self.burst + rate * CATCH_UP.as_secs_f64() };
        let level = self.level + rate * elapsed.as_secs_f64();
        // Slots booked ahead pile up behind a closed gate and leave it together.
        if planted(Bug::ReservationLimiter) { level } else { level.min(most) }
    }
}

/// A heavy request goes into debt instead of waiting for a level that the bucket may never reach.
fn entry(cost: f64) -> f64 {
    cost.min(UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Moment {
        Moment::after_start(Duration::from_secs_f64(seconds))
    }

    #[test]
    fn a_heavy_request_leaves_and_its_debt_delays_the_next() {
        let mut bucket = Bucket::new(1.0, at(0.0));
        assert_eq!(bucket.ready_at(20.0, 10.0, at(0.0)), at(0.0));
        bucket.spend(20.0, 10.0, at(0.0));
        let due = bucket.ready_at(1.0, 10.0, at(0.0)).since(at(2.0));
        assert!(due <= Duration::from_nanos(2), "{due:?}");
    }

    #[test]
    fn a_change_of_rate_moves_what_is_already_waited_for() {
        let mut bucket = Bucket::new(1.0, at(0.0));
        bucket.spend(11.0, 10.0, at(0.0));
        bucket.settle(10.0, at(0.5));
        let due = bucket.ready_at(1.0, 1.0, at(0.5)).since(at(0.0)).as_secs_f64();
        assert!((due - 6.5).abs() < 1e-6, "{due}");
    }

    #[test]
    fn a_suspended_machine_wakes_with_one_unit() {
        let bucket = Bucket::new(100.0, at(0.0));
        assert!(bucket.level_at(50.0, at(4.0)) > 99.0);
        assert_eq!(bucket.level_at(50.0, at(3_600.0)), UNIT);
    }
}
