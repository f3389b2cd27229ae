//! Metrics of single sources, labelled with their names, and of the process.

use highwater_core::Severity;

use super::{
    Family, family,
    text::Kind::{Counter, Gauge, Histogram},
};
use crate::{ServiceView, SourceView, StoreView};

pub(super) const FAMILIES: &[Family] = &[
    family(
        "highwater_requests_total",
        Counter,
        "Requests answered, by who asked and what came of it.",
        |view, page| {
            for (source, name) in sources(view) {
                for request in &source.traffic.requests {
                    let labels = [("source", name), ("lane", request.lane.as_str()), ("outcome", request.outcome)];
                    page.count(&labels, request.count);
                }
            }
        },
    ),
    family(
        "highwater_request_duration_seconds",
        Histogram,
        "From a request to the end of its answer.",
        |view, page| {
            sources(view).for_each(|(source, name)| page.histogram(&[("source", name)], &source.traffic.latency));
        },
    ),
    family("highwater_rate_limit", Gauge, "Requests a second that may leave now.", |view, page| {
        sources(view).for_each(|(source, name)| page.number(&[("source", name)], source.traffic.rate_limit));
    }),
    family("highwater_in_flight", Gauge, "Requests under way.", |view, page| {
        sources(view).for_each(|(source, name)| page.count(&[("source", name)], source.traffic.in_flight));
    }),
    family("highwater_throttled_seconds_total", Counter, "Time in which no request could leave.", |view, page| {
        for (source, name) in sources(view) {
            for throttled in &source.traffic.throttled {
                let seconds = throttled.time.as_secs_f64();
                page.number(&[("source", name), ("reason", throttled.reason)], Some(seconds));
            }
        }
    }),
    family("highwater_retries_total", Counter, "Items put off to be fetched again.", |view, page| {
        sources(view).for_each(|(source, name)| page.count(&[("source", name)], source.work.retries));
    }),
    family("highwater_splits_total", Counter, "Jobs halved because they failed as a whole.", |view, page| {
        sources(view).for_each(|(source, name)| page.count(&[("source", name)], source.work.splits));
    }),
    family("highwater_commits_total", Counter, "Jobs made durable.", |view, page| {
        sources(view).for_each(|(source, name)| page.count(&[("source", name)], source.work.commits));
    }),
    family("highwater_commit_duration_seconds", Histogram, "From a commit to its being on disk.", |view, page| {
        sources(view).for_each(|(source, name)| page.histogram(&[("source", name)], &source.work.commit_latency));
    }),
    family("highwater_rows_total", Counter, "Rows written, by whether they were known.", |view, page| {
        for (source, name) in sources(view) {
            let work = &source.work;
            let changes = [("new", work.rows_new), ("changed", work.rows_changed), ("unchanged", work.rows_unchanged)];
            for (change, rows) in changes {
                page.count(&[("source", name), ("change", change)], rows);
            }
        }
    }),
    family("highwater_frontier", Gauge, "Everything below this position is accounted for.", |view, page| {
        for (source, name) in sources(view) {
            for stream in &source.catchup {
                page.number(&[("source", name), ("stream", &stream.stream)], Some(stream.frontier as f64));
            }
        }
    }),
    family("highwater_target", Gauge, "The position the frontier is to reach.", |view, page| {
        for (source, name) in sources(view) {
            for stream in &source.catchup {
                page.number(&[("source", name), ("stream", &stream.stream)], Some(stream.target as f64));
            }
        }
    }),
    family("highwater_database_bytes", Gauge, "Size of the whole database.", |view, page| {
        stores(view).for_each(|(store, name)| page.number(&[("source", name)], bytes(store.database_bytes)));
    }),
    family("highwater_control_bytes", Gauge, "Size of the books about the mirror.", |view, page| {
        stores(view).for_each(|(store, name)| page.number(&[("source", name)], bytes(store.control_bytes)));
    }),
    family("highwater_blob_bytes", Gauge, "Size of bodies kept outside the database.", |view, page| {
        stores(view).for_each(|(store, name)| page.number(&[("source", name)], bytes(store.blob_bytes)));
    }),
    family("highwater_build_info", Gauge, "Always 1; the version is in the label.", |view, page| {
        page.count(&[("version", view.build.version)], 1);
    }),
    family("highwater_alerts_open", Gauge, "Alerts that are not resolved.", |view, page| {
        for severity in Severity::ALL {
            let open = view.alerts.iter().filter(|alert| alert.severity == *severity).count();
            page.count(&[("severity", severity.as_str())], open as u64);
        }
    }),
];

fn sources(view: &ServiceView) -> impl Iterator<Item = (&SourceView, &str)> {
    view.sources.iter().map(|source| (source, source.name.as_str()))
}

fn stores(view: &ServiceView) -> impl Iterator<Item = (&StoreView, &str)> {
    sources(view).map(|(source, name)| (&source.store, name))
}

fn bytes(size: Option<u64>) -> Option<f64> {
    size.map(|size| size as f64)
}
