//! Real time, for the tools only: they measure other programs.
#![expect(clippy::disallowed_methods, reason = "no simulated clock reaches another process")]

use std::time::Instant;

pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Stopwatch(Instant::now())
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
