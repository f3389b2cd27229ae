//! One line of progress: position, share, speed, time left, and what limits it just now.

use std::{
    fmt,
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use highwater_core::{
    Moment, Timestamp,
    throttle::{GateState, Limit, PauseReason, Snapshot},
};
use highwater_engine::Engine;

use super::Progress;
use crate::out;

/// Remembers the last reading, so that speed is of late and not of all time.
pub(crate) struct Line {
    last: (Moment, u64),
    rate: f64,
}

pub(crate) struct Shown {
    pub(crate) share: f64,
    text: String,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Line {
    pub(crate) fn new(began: Moment) -> Self {
        Line { last: (began, 0), rate: 0.0 }
    }

    pub(crate) fn read(&mut self, progress: &Progress, engine: &Engine) -> Shown {
        let now = engine.world.clock.moment();
        self.measure(now, progress.done.load(Ordering::Relaxed));
        let load = |number: &AtomicI64| number.load(Ordering::Relaxed);
        let positions = load(&progress.target).abs_diff(load(&progress.origin));
        let expected = progress.expected.load(Ordering::Relaxed);
        let settled = progress.settled_before.load(Ordering::Relaxed) + progress.settled.load(Ordering::Relaxed);
        // More may have come in since they were counted.
        let whole = if expected > 0 { expected.max(settled) } else { positions };
        let share = share(settled, whole);
        let snapshot = engine.source.gateway().snapshot();
        let mut parts = vec![counted(settled, whole)];
        if whole > 0 {
            parts.push(format!("frontier {}", place(load(&progress.frontier), expected > 0)));
            parts.push(format!("{} items/s", out::grouped(self.rate as u64)));
        }
        parts.extend(self.time_left(whole.saturating_sub(settled)));
        parts.push(limit(&snapshot, now));
        parts.extend(exceptions(progress));
        Shown { share, text: parts.join(" · ") }
    }

    fn measure(&mut self, now: Moment, settled: u64) {
        let seconds = now.since(self.last.0).as_secs_f64();
        if seconds > 0.0 {
            let fresh = (settled - self.last.1) as f64 / seconds;
            // Half the weight to the last reading: steady to look at, and never minutes behind.
            self.rate = if self.rate == 0.0 { fresh } else { (self.rate + fresh) / 2.0 };
            self.last = (now, settled);
        }
    }

    fn time_left(&self, positions: u64) -> Option<String> {
        (self.rate >= 1.0 && positions > 0)
            .then(|| format!("{} left", out::duration(Duration::from_secs_f64(positions as f64 / self.rate))))
    }
}

/// Of nothing, nothing is done: until the remote has said how much there is, all that is known is that it is asked.
fn share(settled: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (settled as f64 / whole as f64).min(1.0) }
}

fn counted(settled: u64, whole: u64) -> String {
    if whole == 0 {
        return "nothing counted yet".into();
    }
    format!("{} of {} ({})", out::grouped(settled), out::grouped(whole), out::percent(settled, whole, 1))
}

/// A position, which is a time where objects are counted otherwise.
fn place(position: i64, is_time: bool) -> String {
    if is_time { out::time(Timestamp::from_millis(position.saturating_mul(1000))) } else { position.to_string() }
}

/// The current limit, and why it is what it is.
fn limit(snapshot: &Snapshot, now: Moment) -> String {
    if let GateState::Closed { until, reason } = snapshot.gate {
        let why = match reason {
            PauseReason::RetryAfter => "by Retry-After",
            PauseReason::Refusals => "after refusals",
            PauseReason::Outage => "by an outage",
            PauseReason::Operator => "by the operator",
        };
        return match reason {
            PauseReason::Outage => format!("paused {why}"),
            _ => format!("paused {why} for {}", out::duration(until.since(now))),
        };
    }
    let rate = snapshot.rate.map_or("no rate limit".into(), |rate| format!("limit {}/s", out::grouped(rate as u64)));
    let flying = format!("{} of {} in flight", snapshot.in_flight, snapshot.in_flight_cap);
    match snapshot.limit {
        Limit::Window => format!("{rate}, {flying}, held by the per-minute limit"),
        _ if snapshot.totals.throttled > 0 => {
            format!("{rate}, {flying}, throttled {} times", out::grouped(snapshot.totals.throttled))
        }
        _ => format!("{rate}, {flying}"),
    }
}

fn exceptions(progress: &Progress) -> Option<String> {
    let retries = progress.retrying.load(Ordering::Relaxed);
    let dead = progress.dead.load(Ordering::Relaxed);
    (retries + dead > 0).then(|| format!("{} retries, {} dead letters", out::grouped(retries), out::grouped(dead)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_called_done() {
        assert_eq!((share(0, 0), counted(0, 0).as_str()), (0.0, "nothing counted yet"));
        assert_eq!((share(0, 7), counted(0, 7).as_str()), (0.0, "0 of 7 (0.0%)"));
        assert_eq!((share(7, 7), counted(7, 7).as_str()), (1.0, "7 of 7 (100.0%)"));
    }
}
