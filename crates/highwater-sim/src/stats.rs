//! What a simulator saw, in counters that tests and rehearsals assert on. Counting only; it decides nothing.

use std::{
    collections::BTreeMap,
    sync::atomic::{
        AtomicU16, AtomicU64,
        Ordering::{self, Relaxed},
    },
};

use http::StatusCode;
use serde::Serialize;

use crate::fault::Fault;

/// Every status a simulator sends.
const STATUSES: [StatusCode; 12] = [
    StatusCode::OK,
    StatusCode::NOT_MODIFIED,
    StatusCode::TEMPORARY_REDIRECT,
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::BAD_GATEWAY,
    StatusCode::SERVICE_UNAVAILABLE,
];

#[derive(Debug)]
pub struct Stats {
    endpoints: &'static [&'static str],
    by_endpoint: Vec<AtomicU64>,
    by_status: [AtomicU64; STATUSES.len()],
    by_fault: [AtomicU64; Fault::ALL.len()],
    pub(crate) refused_by_quota: AtomicU64,
    pub(crate) unpublished: AtomicU64,
    pub(crate) retry_after_violations: AtomicU64,
    pub(crate) refused_while_down: AtomicU64,
    pub(crate) not_modified: AtomicU64,
    pub(crate) mutations: AtomicU64,
    pub(crate) mutations_published: AtomicU64,
    pub(crate) stream_events: AtomicU64,
    pub(crate) stream_keep_alives: AtomicU64,
    pub(crate) streams: Gauge,
    ids_repeated: AtomicU64,
    requests_per_id_max: AtomicU64,
    /// Connections, for whoever accepts them.
    pub connections: Gauge,
    /// Requests between arrival and the end of the reply, streams left out, for whoever carries them out.
    pub in_flight: Gauge,
}

impl Stats {
    pub(crate) fn new(endpoints: &'static [&'static str]) -> Self {
        Stats {
            endpoints,
            by_endpoint: endpoints.iter().map(|_| AtomicU64::new(0)).collect(),
            by_status: Default::default(),
            by_fault: Default::default(),
            refused_by_quota: AtomicU64::new(0),
            unpublished: AtomicU64::new(0),
            retry_after_violations: AtomicU64::new(0),
            refused_while_down: AtomicU64::new(0),
            not_modified: AtomicU64::new(0),
            mutations: AtomicU64::new(0),
            mutations_published: AtomicU64::new(0),
            stream_events: AtomicU64::new(0),
            stream_keep_alives: AtomicU64::new(0),
            streams: Gauge::default(),
            ids_repeated: AtomicU64::new(0),
            requests_per_id_max: AtomicU64::new(0),
            connections: Gauge::default(),
            in_flight: Gauge::default(),
        }
    }

    pub(crate) fn count_endpoint(&self, endpoint: usize) {
        self.by_endpoint[endpoint].fetch_add(1, Relaxed);
    }

    pub(crate) fn count_reply(&self, status: Option<StatusCode>, fault: Option<Fault>) {
        if let Some(at) = status.and_then(|status| STATUSES.iter().position(|known| *known == status)) {
            self.by_status[at].fetch_add(1, Relaxed);
        }
        if let Some(fault) = fault {
            self.by_fault[fault.index()].fetch_add(1, Relaxed);
        }
    }

    /// `nth` counts from 0.
    pub(crate) fn count_request_of_id(&self, nth: u32) {
        if nth == 1 {
            self.ids_repeated.fetch_add(1, Relaxed);
        }
        let requests = u64::from(nth) + 1;
        if requests > self.requests_per_id_max.load(Relaxed) {
            self.requests_per_id_max.fetch_max(requests, Relaxed);
        }
    }

    pub fn report(&self) -> StatsReport {
        let by_endpoint = self.endpoints.iter().copied().zip(self.by_endpoint.iter().map(load));
        StatsReport {
            requests: self.by_endpoint.iter().map(load).sum(),
            by_endpoint: by_endpoint.collect(),
            by_status: present(STATUSES.iter().map(StatusCode::as_u16).zip(&self.by_status)),
            by_fault: present(Fault::ALL.iter().map(|fault| fault.as_str()).zip(&self.by_fault)),
            refused_by_quota: load(&self.refused_by_quota),
            unpublished: load(&self.unpublished),
            retry_after_violations: load(&self.retry_after_violations),
            ids_repeated: load(&self.ids_repeated),
            requests_per_id_max: load(&self.requests_per_id_max),
            connections: load(&self.connections.total),
            connections_peak: load(&self.connections.peak),
            in_flight_peak: load(&self.in_flight.peak),
            refused_while_down: load(&self.refused_while_down),
            not_modified: load(&self.not_modified),
            mutations: load(&self.mutations),
            mutations_published: load(&self.mutations_published),
            streams_opened: load(&self.streams.total),
            streams_open: self.streams.now(),
            stream_events: load(&self.stream_events),
            stream_keep_alives: load(&self.stream_keep_alives),
        }
    }
}

/// A reading of [`Stats`]. Requests for the simulator's own pages count only as connections and in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatsReport {
    pub requests: u64,
    pub by_endpoint: BTreeMap<&'static str, u64>,
    pub by_status: BTreeMap<u16, u64>,
    pub by_fault: BTreeMap<&'static str, u64>,
    pub refused_by_quota: u64,
    /// Nulls for ids whose body is not out yet, or that are outside the world.
    pub unpublished: u64,
    /// Requests in a period that a `Retry-After` had closed.
    pub retry_after_violations: u64,
    /// Ids asked for more than once; requests refused by the quota do not count, here and below.
    pub ids_repeated: u64,
    pub requests_per_id_max: u64,
    pub connections: u64,
    pub connections_peak: u64,
    pub in_flight_peak: u64,
    /// Requests reset because the API was told to be down.
    pub refused_while_down: u64,
    /// Answers 304.
    pub not_modified: u64,
    /// Of items and profiles, planned and by hand.
    pub mutations: u64,
    /// Those of them that `updates` names.
    pub mutations_published: u64,
    pub streams_opened: u64,
    pub streams_open: u64,
    /// Events that were sent to the end, keep-alives not among them.
    pub stream_events: u64,
    pub stream_keep_alives: u64,
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}

fn present<'a, K: Ord>(counters: impl Iterator<Item = (K, &'a AtomicU64)>) -> BTreeMap<K, u64> {
    counters.map(|(key, counter)| (key, load(counter))).filter(|(_, count)| *count > 0).collect()
}

/// How many there are, ever were, and were at once.
#[derive(Debug, Default)]
pub struct Gauge {
    now: AtomicU64,
    total: AtomicU64,
    peak: AtomicU64,
}

impl Gauge {
    /// Counts one until the guard is dropped.
    pub fn enter(&self) -> Entered<'_> {
        self.join();
        Entered(self)
    }

    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Acquire)
    }

    /// How many there ever were, and how many at once.
    pub(crate) fn readings(&self) -> [u64; 2] {
        [load(&self.total), load(&self.peak)]
    }

    /// For those that cannot hold a guard; [`Gauge::leave`] must follow.
    pub(crate) fn join(&self) {
        self.total.fetch_add(1, Relaxed);
        let now = self.now.fetch_add(1, Ordering::AcqRel) + 1;
        if now > self.peak.load(Relaxed) {
            self.peak.fetch_max(now, Relaxed);
        }
    }

    pub(crate) fn leave(&self) {
        self.now.fetch_sub(1, Ordering::AcqRel);
    }
}

#[must_use]
#[derive(Debug)]
pub struct Entered<'a>(&'a Gauge);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Requests so far for each of a row of ids: two bytes an id, so that fifty million ids cost 100 MB.
#[derive(Debug)]
pub(crate) struct Tally {
    counts: Vec<AtomicU16>,
}

impl Tally {
    pub(crate) fn new(len: usize) -> Self {
        Tally { counts: (0..len).map(|_| AtomicU16::new(0)).collect() }
    }

    /// The number of earlier requests, up to 65,535; `None` for an index outside.
    pub(crate) fn next(&self, index: usize) -> Option<u32> {
        let count = self.counts.get(index)?;
        let before = count.fetch_update(Relaxed, Relaxed, |count| Some(count.saturating_add(1)));
        Some(u32::from(before.unwrap_or(u16::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_keeps_its_peak() {
        let gauge = Gauge::default();
        let first = gauge.enter();
        drop(gauge.enter());
        drop(first);
        drop(gauge.enter());
        assert_eq!([gauge.now(), load(&gauge.total), load(&gauge.peak)], [0, 3, 2]);
    }

    #[test]
    fn a_tally_saturates_instead_of_starting_over() {
        let tally = Tally::new(2);
        (0..70_000).for_each(|_| assert!(tally.next(1).is_some()));
        assert_eq!(tally.next(1), Some(65_535));
        assert_eq!([tally.next(0), tally.next(2)], [Some(0), None]);
    }

    #[test]
    fn repeated_ids_are_counted_once() {
        let stats = Stats::new(&["item"]);
        [0, 0, 1, 2, 0].into_iter().for_each(|nth| stats.count_request_of_id(nth));
        let report = stats.report();
        assert_eq!([report.ids_repeated, report.requests_per_id_max], [1, 3]);
    }
}
