//! The metrics of a service, as a scraper reads them.

use std::collections::BTreeSet;

use highwater_web::{
    LiveView, ServiceView,
    metrics::{families, render},
};

use crate::{
    exposition::{Exposition, parse},
    sample::{service, source},
};

fn scrape(view: &ServiceView) -> Exposition {
    let text = render(view);
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn check(page: &Exposition, expected: &[(&str, f64)]) {
    for (series, value) in expected {
        assert_eq!(page.value(series), Some(*value), "{series}");
    }
}

#[test]
fn figures_of_all_sources_add_up_and_ages_are_the_worst() {
    let page = scrape(&service());
    let expected = [
        ("realtime_listener_connected", 1.0),
        ("realtime_last_event_age_seconds", 10.0),
        ("realtime_worker_alive_count", 88.0),
        ("realtime_queue_depth", 121.0),
        ("realtime_reconnects_total", 132.0),
        ("realtime_items_updated_total", 143.0),
        ("realtime_update_age_seconds_bucket{le=\"60\"}", 1.0),
        ("realtime_update_age_seconds_bucket{le=\"900\"}", 2.0),
        ("realtime_update_age_seconds_bucket{le=\"+Inf\"}", 2.0),
        ("realtime_update_age_seconds_sum", 649.0),
        ("realtime_update_age_seconds_count", 2.0),
        ("realtime_blind_windows_open", 11.0),
        ("catchup_dead_letters_total", 22.0),
        ("catchup_frontier_lag", 5_000.0),
        ("catchup_progress_percent", 90.0),
        ("rescan_last_run_age_seconds", 210.0),
        ("rescan_items_processed_total", 242.0),
        ("rescan_items_changed_total", 253.0),
    ];
    check(&page, &expected);
    assert_eq!(page.types["catchup_dead_letters_total"], "gauge");
    let unlabelled = page.samples.keys().filter(|series| !series.starts_with("highwater_"));
    assert!(unlabelled.filter(|series| !series.contains("_bucket{")).all(|series| !series.contains('{')));
}

#[test]
fn figures_of_one_source_carry_its_name() {
    let expected = [
        ("highwater_requests_total{source=\"hn\",lane=\"live\",outcome=\"served\"}", 100.0),
        ("highwater_requests_total{source=\"news\",lane=\"live\",outcome=\"failed\"}", 30.0),
        ("highwater_request_duration_seconds_bucket{source=\"hn\",le=\"1\"}", 8.0),
        ("highwater_request_duration_seconds_count{source=\"hn\"}", 10.0),
        ("highwater_request_duration_seconds_sum{source=\"hn\"}", 7.5),
        ("highwater_rate_limit{source=\"hn\"}", 250.0),
        ("highwater_in_flight{source=\"news\"}", 70.0),
        ("highwater_throttled_seconds_total{source=\"hn\",reason=\"gate\"}", 1.5),
        ("highwater_retries_total{source=\"hn\"}", 41.0),
        ("highwater_splits_total{source=\"hn\"}", 42.0),
        ("highwater_commits_total{source=\"hn\"}", 43.0),
        ("highwater_commit_duration_seconds_count{source=\"hn\"}", 1.0),
        ("highwater_rows_total{source=\"hn\",change=\"new\"}", 44.0),
        ("highwater_rows_total{source=\"hn\",change=\"changed\"}", 45.0),
        ("highwater_rows_total{source=\"hn\",change=\"unchanged\"}", 46.0),
        ("highwater_frontier{source=\"hn\",stream=\"items\"}", 48_000_001.0),
        ("highwater_target{source=\"hn\",stream=\"items\"}", 48_000_501.0),
        ("highwater_database_bytes{source=\"hn\"}", 31.0),
        ("highwater_control_bytes{source=\"hn\"}", 32.0),
        ("highwater_build_info{version=\"1.2.3\"}", 1.0),
        ("highwater_alerts_open{severity=\"critical\"}", 2.0),
        ("highwater_alerts_open{severity=\"warning\"}", 0.0),
    ];
    check(&scrape(&service()), &expected);
}

#[test]
fn what_has_not_happened_is_left_out() {
    let page = scrape(&ServiceView::default());
    let series: Vec<_> = page.samples.keys().map(String::as_str).collect();
    let always = [
        "highwater_alerts_open{severity=\"critical\"}",
        "highwater_alerts_open{severity=\"warning\"}",
        "highwater_build_info{version=\"\"}",
    ];
    assert_eq!(series, always);
    let mut quiet = service();
    quiet.sources[0].traffic.rate_limit = Some(f64::NAN);
    for source in &mut quiet.sources {
        source.live.as_mut().unwrap().last_event_age = None;
        source.rescan.as_mut().unwrap().last_run_age = None;
    }
    let page = scrape(&quiet);
    for absent in
        ["realtime_last_event_age_seconds", "rescan_last_run_age_seconds", "highwater_rate_limit{source=\"hn\"}"]
    {
        assert_eq!(page.value(absent), None, "{absent}");
    }
}

#[test]
fn one_feed_that_is_down_counts_but_one_that_others_listen_to_does_not() {
    let connected = |change: fn(&mut LiveView)| {
        let mut view = service();
        change(view.sources[1].live.as_mut().unwrap());
        scrape(&view).value("realtime_listener_connected")
    };
    assert_eq!(connected(|live| live.connected = false), Some(0.0));
    assert_eq!(connected(|live| (live.connected, live.is_listener) = (false, false)), Some(1.0));
}

#[test]
fn who_stands_by_has_no_workers_to_count() {
    let mut view = service();
    for source in &mut view.sources {
        let live = source.live.as_mut().unwrap();
        (live.is_listener, live.connected, live.workers_alive) = (false, false, 0);
    }
    assert_eq!(scrape(&view).value("realtime_worker_alive_count"), None);
}

#[test]
fn an_odd_name_stays_inside_its_label() {
    let odd = "a\"b\\c\nd";
    let page = scrape(&ServiceView { sources: vec![source(odd, 1)], ..ServiceView::default() });
    assert_eq!(page.value("highwater_in_flight{source=\"a\\\"b\\\\c\\nd\"}"), Some(7.0));
}

#[test]
fn every_metric_of_the_table_is_shown_by_a_service_that_does_everything() {
    let mut view = service();
    view.sources[0].store.blob_bytes = Some(33);
    let shown: BTreeSet<_> = scrape(&view).types.into_keys().collect();
    let listed: BTreeSet<_> = families().map(|family| family.name.to_owned()).collect();
    assert_eq!(shown, listed);
}
