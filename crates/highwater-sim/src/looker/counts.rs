//! What the simulated Looker saw, in counters that tests and rehearsals assert on.

use std::collections::BTreeMap;

use serde::Serialize;

use super::fault::LookerFault;

/// A reading; requests for the simulator's own pages do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LookerCounts {
    pub requests: u64,
    /// By method and path, with names for what varies: `GET /dashboards/:dashboard_id`.
    pub by_path: BTreeMap<String, u64>,
    /// As the published document sorts operations: `query`, `non_query`, `none`.
    pub by_activity: BTreeMap<&'static str, u64>,
    /// `200`; what has no status by its fault.
    pub by_answer: BTreeMap<String, u64>,
    pub by_fault: BTreeMap<&'static str, u64>,
    pub logins: u64,
    pub logins_refused: u64,
    pub logouts: u64,
    pub tokens_live: u64,
    pub tokens_live_peak: u64,
    /// Requests without a good token.
    pub rejected: u64,
    /// Requests with parameters that nobody knows, or that make no sense.
    pub invalid: u64,
    pub refused_by_quota: u64,
    /// Answers 429: those of the quota and those that a plan throws in.
    pub throttled: u64,
    /// Requests after a `Retry-After` had reached the client and before its time.
    pub requests_in_closed_period: u64,
    /// In lists and alone, by type.
    pub objects_served: BTreeMap<&'static str, u64>,
    /// Objects that were asked for alone, and how often at most.
    pub objects_got: u64,
    pub gets_per_object_max: u64,
    pub mutations: BTreeMap<&'static str, u64>,
    pub body_bytes: u64,
    pub connections: u64,
    pub connections_peak: u64,
    pub in_flight_peak: u64,
}

impl LookerCounts {
    pub(super) fn count_request(&mut self, path: String, activity: &'static str) {
        self.requests += 1;
        *self.by_path.entry(path).or_default() += 1;
        *self.by_activity.entry(activity).or_default() += 1;
    }

    pub(super) fn count_answer(&mut self, answer: String) {
        *self.by_answer.entry(answer).or_default() += 1;
    }

    pub(super) fn count_fault(&mut self, fault: LookerFault) {
        *self.by_fault.entry(fault.as_str()).or_default() += 1;
    }

    pub(super) fn count_objects(&mut self, kind: &'static str, objects: usize) {
        *self.objects_served.entry(kind).or_default() += objects as u64;
    }

    pub(super) fn count_mutation(&mut self, kind: &'static str) {
        *self.mutations.entry(kind).or_default() += 1;
    }
}
