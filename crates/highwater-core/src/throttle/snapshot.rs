//! What a throttle shows of itself, for progress displays and metrics. Nothing in the throttle reads it.

use std::time::Duration;

use super::gate::{GateState, PauseReason};
use crate::Lane;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// Units per second; none when the rate is unlimited.
    pub rate: Option<f64>,
    /// The last rate the source refused.
    pub ceiling: Option<f64>,
    pub in_flight: u32,
    pub in_flight_cap: u32,
    /// By `Lane::index`.
    pub waiting: [usize; Lane::ALL.len()],
    pub gate: GateState,
    pub limit: Limit,
    pub totals: Totals,
}

/// What keeps the next request from leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Nothing,
    Gate,
    InFlight,
    Window,
    Rate,
}

impl Limit {
    pub const fn as_str(self) -> &'static str {
        match self {
            Limit::Nothing => "nothing",
            Limit::Gate => "gate",
            Limit::InFlight => "in_flight",
            Limit::Window => "window",
            Limit::Rate => "rate",
        }
    }
}

/// Counts since the throttle was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub granted: u64,
    pub throttled: u64,
    pub cuts: u64,
    pub closed: ClosedFor,
}

/// For how long the gate kept everything back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClosedFor([Duration; PauseReason::ALL.len()]);

impl ClosedFor {
    pub fn because(&self, reason: PauseReason) -> Duration {
        self.0[reason as usize]
    }

    pub(super) fn add(&mut self, reason: PauseReason, time: Duration) {
        let sum = &mut self.0[reason as usize];
        *sum = sum.saturating_add(time);
    }
}
