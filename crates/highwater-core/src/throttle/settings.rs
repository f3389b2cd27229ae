//! What a throttle is told before it starts: limits and policy, as plain data. Nothing here decides anything.

use std::time::Duration;

/// Everything one account's throttle needs to know. Costs and rates are in cost units; a plain request costs one.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub rate: Rate,
    /// Units that may leave at once. A unit is the least: below it nothing could ever leave.
    pub burst: f64,
    pub in_flight: InFlight,
    pub windows: Vec<Window>,
    pub policy: Policy,
}

impl Settings {
    pub fn new(rate: Rate, in_flight: InFlight) -> Self {
        Settings { rate, burst: 1.0, in_flight, windows: Vec::new(), policy: Policy::default() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// No bucket at all: requests in flight, windows and the gate are the only limits.
    Unlimited,
    /// Units per second. `max` may be infinite when the source declares no ceiling.
    Limited { start: f64, max: f64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    pub start: u32,
    pub max: u32,
}

/// A declared quota: at most `limit` units within any `length`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    pub length: Duration,
    pub limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// What the rate is multiplied by when the source says it is too high: Gmail 0.5, Looker 1 / 1.5.
    pub cut: f64,
    pub growth: Growth,
    pub on_slow: OnSlow,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { cut: 0.85, growth: Growth::Additive, on_slow: OnSlow::Ignore }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Growth {
    /// Slow start up to the first throttle, then steps that are a share of the last rate found too high.
    Additive,
    /// The delay between requests is multiplied by `delay_factor` after `count` successes: Looker 10 and 0.9.
    AfterSuccesses { count: u32, delay_factor: f64 },
}

/// What to make of answers that became much slower than they used to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSlow {
    Ignore,
    /// Fewer requests in flight: for sources that have no quota to tell them when it is enough.
    Shrink,
}

/// What is worth keeping over a restart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learned {
    pub rate: f64,
    /// The last rate the source refused; none while it never did.
    pub ceiling: Option<f64>,
}
