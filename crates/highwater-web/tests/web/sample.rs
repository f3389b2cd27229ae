//! A service with two sources that do everything a source can do.

use std::time::Duration;

use highwater_core::{Ages, Condition, Lane, Severity};
use highwater_web::{
    AlertView, BuildView, HistogramView, LiveView, RequestCount, RescanView, ServiceView, SourceView, StoreView,
    StreamView, ThrottledView, TrafficView, WorkView,
};

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn service() -> ServiceView {
    ServiceView {
        build: BuildView { version: "1.2.3" },
        uptime: secs(60),
        dead_loops: Vec::new(),
        sources: vec![source("hn", 1), source("news", 10)],
        alerts: vec![alert(Severity::Critical), alert(Severity::Critical)],
    }
}

fn alert(severity: Severity) -> AlertView {
    AlertView {
        source: "hn".into(),
        condition: Condition::ListenerDown,
        severity,
        message: "the feed has been down for 75 s".into(),
        age: secs(15),
    }
}

/// Every figure is another, and so many times as large.
pub(crate) fn source(name: &str, times: u64) -> SourceView {
    SourceView {
        name: name.into(),
        kind: "hn".into(),
        traffic: traffic(times),
        work: work(times),
        catchup: vec![stream(times)],
        live: Some(live(times)),
        rescan: Some(RescanView {
            last_run_age: Some(secs(21 * times)),
            items_processed: 22 * times,
            items_changed: 23 * times,
            running: false,
        }),
        store: StoreView { database_bytes: Some(31 * times), control_bytes: Some(32 * times), ..StoreView::default() },
        ..SourceView::default()
    }
}

fn traffic(times: u64) -> TrafficView {
    let count = |outcome, count| RequestCount { lane: Lane::Live, outcome, count: count * times };
    TrafficView {
        requests: vec![count("served", 100), count("failed", 3)],
        latency: HistogramView { bounds: vec![0.1, 1.0], counts: vec![5, 3, 2], sum: Some(7.5) },
        rate_limit: Some(250.0),
        in_flight: 7 * times,
        throttled: vec![ThrottledView { reason: "gate", time: Duration::from_millis(1500) }],
        ..TrafficView::default()
    }
}

fn work(times: u64) -> WorkView {
    WorkView {
        retries: 41 * times,
        splits: 42 * times,
        commits: 43 * times,
        commit_latency: HistogramView { bounds: vec![0.01], counts: vec![1, 0], sum: Some(0.005) },
        rows_new: 44 * times,
        rows_changed: 45 * times,
        rows_unchanged: 46 * times,
        ..WorkView::default()
    }
}

fn stream(times: u64) -> StreamView {
    StreamView {
        stream: "items".into(),
        origin: 1,
        frontier: 48_000_001,
        target: 48_000_501,
        dead_letters: 2 * times,
        lag: 500 * times,
        percent: 100.0 - times as f64,
        ..StreamView::default()
    }
}

fn live(times: u64) -> LiveView {
    let mut ages = Ages::default();
    ages.add(secs(59 * times));
    LiveView {
        connected: true,
        is_listener: true,
        last_event_age: Some(secs(times)),
        workers_alive: 8 * times,
        queue_depth: 11 * times,
        reconnects: 12 * times,
        items_updated: 13 * times,
        update_ages: ages.into(),
        blind_windows_open: times,
        oldest_window_age: None,
        last_commit_age: Some(secs(times)),
    }
}
