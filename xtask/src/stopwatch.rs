//! Real time, for the tools only: they measure other programs and may wait for them.
#![expect(clippy::disallowed_methods, reason = "no simulated clock reaches another process")]

use std::{
    thread,
    time::{Duration, Instant},
};

pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Stopwatch(Instant::now())
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

pub(crate) fn pause(duration: Duration) {
    thread::sleep(duration);
}
