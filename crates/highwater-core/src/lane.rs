//! Who asks for a request. Lanes share one throttle per account; the order is the priority.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    Live,
    Retry,
    Backfill,
}

impl Lane {
    /// Highest priority first.
    pub const ALL: [Lane; 3] = [Lane::Live, Lane::Retry, Lane::Backfill];

    pub const fn as_str(self) -> &'static str {
        match self {
            Lane::Live => "live",
            Lane::Retry => "retry",
            Lane::Backfill => "backfill",
        }
    }

    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
