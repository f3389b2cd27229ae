//! Declared quotas over sliding windows, in bounded memory: units are counted by slices of the window, and a slice
//! counts until all of it has left. That errs by one slice, on the safe side.

use super::settings::Window;
use crate::Moment;
use std::time::Duration;

const SLICES: u64 = 64;
/// The slice that is filled now, and those that reach into the window before it.
const KEPT: usize = SLICES as usize + 1;
/// Sums of costs come back to a little less or more than what went in.
const ROUNDING: f64 = 1e-9;

#[derive(Debug)]
pub(super) struct SlidingWindow {
    limit: f64,
    slice: Duration,
    /// Number of the newest slice, counted from the start of time; the ring holds it and those before.
    newest: u64,
    ring: [f64; KEPT],
    total: f64,
}

impl SlidingWindow {
    pub(super) fn new(window: &Window) -> Self {
        SlidingWindow { limit: window.limit, slice: slice_of(window.length), newest: 0, ring: [0.0; KEPT], total: 0.0 }
    }

    pub(super) fn is_of(&self, length: Duration) -> bool {
        self.slice == slice_of(length)
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.limit *= factor;
    }

    /// When a request of `cost` fits. One that is larger than the whole window fits when the window is empty.
    pub(super) fn ready_at(&self, cost: f64, now: Moment) -> Moment {
        let most = (self.limit - cost).max(0.0) + ROUNDING;
        let mut left = self.total;
        let mut ready = now;
        for number in self.newest.saturating_sub(SLICES)..=self.newest {
            if left <= most {
                break;
            }
            left -= self.ring[place(number)];
            ready = ready.max(self.leaves_at(number));
        }
        ready
    }

    pub(super) fn record(&mut self, cost: f64, now: Moment) {
        self.advance(self.number(now));
        self.ring[place(self.newest)] += cost;
        self.total += cost;
    }

    fn advance(&mut self, number: u64) {
        if number <= self.newest {
            return;
        }
        let passed = (number - self.newest).min(KEPT as u64);
        (0..passed).for_each(|back| self.ring[place(number - back)] = 0.0);
        self.newest = number;
        // A running difference would drift; this is once per slice.
        self.total = self.ring.iter().sum();
    }

    fn number(&self, now: Moment) -> u64 {
        u64::try_from(now.since_start().as_nanos() / self.slice.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The end of the slice, one window later.
    fn leaves_at(&self, number: u64) -> Moment {
        let nanos = self.slice.as_nanos().saturating_mul(u128::from(number) + u128::from(SLICES) + 1);
        Moment::after_start(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }
}

fn slice_of(length: Duration) -> Duration {
    (length / SLICES as u32).max(Duration::from_nanos(1))
}

fn place(number: u64) -> usize {
    (number % KEPT as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(limit: f64) -> SlidingWindow {
        SlidingWindow::new(&Window { length: Duration::from_secs(60), limit })
    }

    fn at(seconds: f64) -> Moment {
        Moment::after_start(Duration::from_secs_f64(seconds))
    }

    #[test]
    fn what_left_counts_for_the_length_of_the_window_and_a_slice_at_most() {
        let mut window = minute(100.0);
        window.record(60.0, at(10.0));
        window.record(40.0, at(30.0));
        assert_eq!(window.ready_at(0.0, at(31.0)), at(31.0));
        let (first, both) = (window.ready_at(50.0, at(31.0)), window.ready_at(61.0, at(31.0)));
        assert!((at(70.0)..at(71.0)).contains(&first), "{first:?}");
        assert!((at(90.0)..at(91.0)).contains(&both), "{both:?}");
        assert_eq!(window.ready_at(100.0, both), both);
    }

    #[test]
    fn a_request_above_the_limit_waits_for_an_empty_window_and_then_fits() {
        let mut window = minute(10.0);
        assert_eq!(window.ready_at(25.0, at(5.0)), at(5.0));
        window.record(1.0, at(5.0));
        let ready = window.ready_at(25.0, at(6.0));
        assert!((at(65.0)..at(66.0)).contains(&ready), "{ready:?}");
        window.record(25.0, ready);
        assert!(window.ready_at(1.0, ready) >= ready + Duration::from_secs(60));
    }

    #[test]
    fn a_long_silence_empties_the_window() {
        let mut window = minute(10.0);
        window.record(10.0, at(5.0));
        window.record(10.0, at(5_000.0));
        assert_eq!(window.total, 10.0);
    }
}
