//! What requests cost, in Gmail's units: as data, because projects differ.

highwater_core::word! {
    /// Projects made since May 2026 pay more, and have less.
    pub enum Quota {
        /// Costs as for new projects; how much there is shows by itself.
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

    /// What a message costs.
    pub fn get_cost(self) -> f64 {
        self.costs().get
    }

    /// Units a minute for one user.
    pub fn per_minute(self) -> Option<f64> {
        match self {
            Quota::Auto => None,
            Quota::New => Some(6_000.0),
            Quota::Old => Some(15_000.0),
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
