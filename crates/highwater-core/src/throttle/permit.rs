//! What a driver holds while its request is under way, and what it says when it gives that back.

use crate::{Lane, Moment};
use std::time::Duration;

/// The right to send one request, once. It must come back through `Throttle::finish`, or its place in flight is lost.
#[derive(Debug, PartialEq)]
#[must_use]
pub struct Permit {
    pub(super) started: Moment,
    pub(super) cost: f64,
    pub(super) lane: Lane,
    pub(super) probe: bool,
}

impl Permit {
    pub fn started(&self) -> Moment {
        self.started
    }

    pub fn cost(&self) -> f64 {
        self.cost
    }

    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// The gate waits for the answer to this very request.
    pub fn is_probe(&self) -> bool {
        self.probe
    }
}

/// What the request showed about the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Success {
        latency: Duration,
    },
    /// The source said: too much.
    Throttled {
        retry_after: Option<Duration>,
    },
    /// An error that has nothing to do with the quota.
    Failed,
    /// No answer: the connection was refused, or ended before.
    Lost,
    /// The request was given up, and shows nothing.
    Abandoned,
}
