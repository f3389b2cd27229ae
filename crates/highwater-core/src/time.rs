//! Time as plain values. The core never reads a clock: whoever calls it passes `now`.

use std::{fmt, ops::Add, time::Duration};

/// A point of wall-clock time, in milliseconds since the Unix epoch: what the tables keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const EPOCH: Timestamp = Timestamp(0);

    pub const fn from_millis(millis: i64) -> Self {
        Timestamp(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    pub fn minus(self, time: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Time passed since `earlier`; zero when the wall clock was set back.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, wait: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A point of monotonic time, counted from an arbitrary start: what rates and deadlines are measured on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    pub const START: Moment = Moment(Duration::ZERO);

    pub const fn after_start(elapsed: Duration) -> Self {
        Moment(elapsed)
    }

    pub const fn since_start(self) -> Duration {
        self.0
    }

    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, wait: Duration) -> Moment {
        Moment(self.0.saturating_add(wait))
    }
}
