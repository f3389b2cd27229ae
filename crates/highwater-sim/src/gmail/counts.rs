//! What the simulated Gmail saw, in counters that tests and rehearsals assert on.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{fault::GmailFault, plan::Throttle};

/// A reading; requests for the simulator's own pages do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GmailCounts {
    pub requests: u64,
    pub by_method: BTreeMap<&'static str, u64>,
    /// HTTP requests with many calls in them; the calls are counted one by one.
    pub batches: u64,
    /// Of what was admitted.
    pub quota_units: u64,
    pub units_by_method: BTreeMap<&'static str, u64>,
    /// `200`, or status and reason: `403 rateLimitExceeded`; what has no status by its fault.
    pub by_answer: BTreeMap<String, u64>,
    pub by_fault: BTreeMap<&'static str, u64>,
    pub refused_by_quota: u64,
    /// Answers that ask to slow down, by their shape: those of the quota and those that a plan throws in.
    pub throttled: BTreeMap<&'static str, u64>,
    /// Requests after a "Retry after" had reached the client and before its time.
    pub requests_in_penalty: u64,
    pub body_bytes: u64,
    pub tokens_issued: u64,
    pub tokens_by_grant: BTreeMap<&'static str, u64>,
    pub tokens_denied: BTreeMap<&'static str, u64>,
    /// Messages that were asked for, those more than once, and how often at most; refused requests do not count.
    pub messages_got: u64,
    pub messages_got_again: u64,
    pub gets_per_message_max: u64,
    pub history_id: u64,
    pub messages_present: u64,
    pub connections: u64,
    pub connections_peak: u64,
    pub in_flight_peak: u64,
}

impl GmailCounts {
    pub(super) fn count_method(&mut self, method: &'static str) {
        self.requests += 1;
        *self.by_method.entry(method).or_default() += 1;
    }

    pub(super) fn count_answer(&mut self, answer: String) {
        *self.by_answer.entry(answer).or_default() += 1;
    }

    pub(super) fn count_units(&mut self, method: &'static str, units: u32) {
        self.quota_units += u64::from(units);
        *self.units_by_method.entry(method).or_default() += u64::from(units);
    }

    pub(super) fn count_throttled(&mut self, shape: &'static str) {
        self.refused_by_quota += 1;
        *self.throttled.entry(shape).or_default() += 1;
    }

    pub(super) fn count_fault(&mut self, fault: GmailFault) {
        *self.by_fault.entry(fault.as_str()).or_default() += 1;
        let shape = match fault {
            GmailFault::TooMany => Throttle::Backend,
            GmailFault::RateLimit => Throttle::Modern,
            _ => return,
        };
        *self.throttled.entry(shape.as_str()).or_default() += 1;
    }

    pub(super) fn count_token(&mut self, grant: &'static str) {
        self.tokens_issued += 1;
        *self.tokens_by_grant.entry(grant).or_default() += 1;
    }

    pub(super) fn count_denial(&mut self, error: &'static str) {
        *self.tokens_denied.entry(error).or_default() += 1;
    }
}
