//! Metrics of the whole service, without labels: alert rules need not know which sources there are. Counts add up, ages
//! and lags are the worst of all sources.

use std::time::Duration;

use super::{
    Family, family,
    text::Kind::{Counter, Gauge, Histogram},
};
use crate::{HistogramView, LiveView, RescanView, ServiceView, StreamView};

pub(super) const FAMILIES: &[Family] = &[
    family(
        "realtime_listener_connected",
        Gauge,
        "Whether every feed this process listens to is connected; absent while others listen.",
        |view, page| {
            let connected = listeners(view).map(|live| live.connected).reduce(|all, one| all && one);
            page.number(&[], connected.map(|all| f64::from(u8::from(all))));
        },
    ),
    family("realtime_last_event_age_seconds", Gauge, "Seconds since the quietest feed told anything.", |view, page| {
        page.number(&[], worst(listeners(view).map(|live| live.last_event_age)))
    }),
    family(
        "realtime_worker_alive_count",
        Gauge,
        "Workers that fetch what feeds name; absent while others listen.",
        |view, page| page.number(&[], sum(listeners(view).map(|live| live.workers_alive))),
    ),
    family("realtime_queue_depth", Gauge, "Named changes that wait to be fetched.", |view, page| {
        page.number(&[], sum(lives(view).map(|live| live.queue_depth)));
    }),
    family(
        "realtime_reconnects_total",
        Counter,
        "Times the feeds were connected anew; those lost together count once.",
        |view, page| {
            page.number(&[], sum(lives(view).map(|live| live.reconnects)));
        },
    ),
    family("realtime_items_updated_total", Counter, "Items stored because a feed named them.", |view, page| {
        page.number(&[], sum(lives(view).map(|live| live.items_updated)));
    }),
    family(
        "realtime_update_age_seconds",
        Histogram,
        "How old items were when they were found changed.",
        |view, page| {
            let mut ages = HistogramView::default();
            lives(view).for_each(|live| ages.merge(&live.update_ages));
            page.histogram(&[], &ages);
        },
    ),
    family(
        "realtime_blind_windows_open",
        Gauge,
        "Times without a feed whose changes have not been looked up yet.",
        |view, page| page.number(&[], sum(lives(view).map(|live| live.blind_windows_open))),
    ),
    family("catchup_dead_letters_total", Gauge, "Dead letters there are now.", |view, page| {
        page.number(&[], sum(streams(view).map(|stream| stream.dead_letters)));
    }),
    family("catchup_frontier_lag", Gauge, "Positions the slowest frontier is behind its head.", |view, page| {
        page.number(&[], mains(view).map(|stream| stream.lag as f64).reduce(f64::max));
    }),
    family("catchup_progress_percent", Gauge, "How far the slowest catch-up is.", |view, page| {
        page.number(&[], mains(view).map(|stream| stream.percent).reduce(f64::min));
    }),
    family(
        "rescan_last_run_age_seconds",
        Gauge,
        "Seconds since the longest past rescan of a source ended.",
        |view, page| page.number(&[], worst(rescans(view).map(|rescan| rescan.last_run_age))),
    ),
    family("rescan_items_processed_total", Counter, "Items looked at again.", |view, page| {
        page.number(&[], sum(rescans(view).map(|rescan| rescan.items_processed)));
    }),
    family("rescan_items_changed_total", Counter, "Items that differed when looked at again.", |view, page| {
        page.number(&[], sum(rescans(view).map(|rescan| rescan.items_changed)));
    }),
];

fn lives(view: &ServiceView) -> impl Iterator<Item = &LiveView> {
    view.sources.iter().filter_map(|source| source.live.as_ref())
}

fn listeners(view: &ServiceView) -> impl Iterator<Item = &LiveView> {
    lives(view).filter(|live| live.is_listener)
}

fn rescans(view: &ServiceView) -> impl Iterator<Item = &RescanView> {
    view.sources.iter().filter_map(|source| source.rescan.as_ref())
}

fn streams(view: &ServiceView) -> impl Iterator<Item = &StreamView> {
    view.sources.iter().flat_map(|source| &source.catchup)
}

/// What a source is there for; other streams follow from it.
fn mains(view: &ServiceView) -> impl Iterator<Item = &StreamView> {
    view.sources.iter().filter_map(|source| source.catchup.first())
}

/// None of nothing, which is not zero.
fn sum(counts: impl Iterator<Item = u64>) -> Option<f64> {
    counts.reduce(|sum, count| sum + count).map(|sum| sum as f64)
}

fn worst(ages: impl Iterator<Item = Option<Duration>>) -> Option<f64> {
    ages.flatten().max().map(|age| age.as_secs_f64())
}
