//! The one home of the clock. Everything else is handed a `Clock` or a time.
#![expect(clippy::disallowed_methods, reason = "this is where the clocks are read")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use highwater_core::{Moment, Timestamp};
use tokio::time::Instant;

#[derive(Clone, Debug)]
pub struct Clock {
    start: Instant,
    wall: Wall,
}

#[derive(Clone, Debug)]
enum Wall {
    System,
    /// Follows tokio's clock from here, also when that is paused.
    Simulated(Timestamp),
}

impl Clock {
    pub fn system() -> Self {
        Clock { start: Instant::now(), wall: Wall::System }
    }

    pub fn simulated(at: Timestamp) -> Self {
        Clock { start: Instant::now(), wall: Wall::Simulated(at) }
    }

    /// Wall-clock time: what is written down.
    pub fn now(&self) -> Timestamp {
        match self.wall {
            Wall::Simulated(base) => base + self.start.elapsed(),
            Wall::System => {
                let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
                Timestamp::EPOCH + elapsed
            }
        }
    }

    /// Monotonic time: what is measured with.
    pub fn moment(&self) -> Moment {
        Moment::after_start(self.start.elapsed())
    }

    pub async fn sleep_until(&self, moment: Moment) {
        tokio::time::sleep_until(self.start + moment.since_start()).await;
    }

    pub async fn sleep(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
    }
}
