//! What requests cost, in Gmail's units: as data, because projects differ.

use std::time::Duration;

use highwater_core::throttle::Window;

const MINUTE: Duration = Duration::from_secs(60);
const NEW_PER_MINUTE: f64 = 6_000.0;
const OLD_PER_MINUTE: f64 = 15_000.0;

highwater_core::word! {
    /// Projects made since May 2026 pay more, and have less.
    pub enum Quota {
        /// As for new projects, until the first refusal tells.
        Auto = "auto",
        New = "new",
        Old = "old",
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Costs {
    pub(super) profile: f64,
    pub(super) labels: f64,
    pub(super) history: f64,
    pub(super) list: f64,
    pub(super) get: f64,
}

impl Quota {
    pub(super) fn costs(self) -> Costs {
        let get = match self {
            Quota::Auto | Quota::New => 20.0,
            Quota::Old => 5.0,
        };
        Costs { profile: 1.0, labels: 1.0, history: 2.0, list: 5.0, get }
    }

    /// What requests cost, by what the remote has told.
    pub(super) fn costs_by(self, told: Option<Window>) -> Costs {
        match (self, told) {
            (Quota::Auto, Some(Window { length: MINUTE, limit })) if limit >= OLD_PER_MINUTE => Quota::Old.costs(),
            _ => self.costs(),
        }
    }

    /// What a message costs.
    pub fn get_cost(self) -> f64 {
        self.costs().get
    }

    /// Units a minute for one user.
    pub fn per_minute(self) -> Option<f64> {
        match self {
            Quota::Auto => None,
            Quota::New => Some(NEW_PER_MINUTE),
            Quota::Old => Some(OLD_PER_MINUTE),
        }
    }

    /// Units a second: to begin with, and at most.
    pub fn rate(self) -> (f64, f64) {
        match self {
            // A project with the old quota gives fifty messages a second, which are a thousand units by the new costs.
            Quota::Auto => (100.0, 1_000.0),
            Quota::New => (100.0, 100.0),
            Quota::Old => (250.0, 250.0),
        }
    }
}
