//! The rules and the dashboard that come along ask only for metrics there are.

use std::{collections::BTreeSet, fs, path::Path};

use highwater_web::metrics::families;

fn deployed(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whatever looks like one of our metrics, without what histograms append.
fn metrics_in(text: &str) -> BTreeSet<String> {
    const PREFIXES: [&str; 4] = ["realtime_", "catchup_", "rescan_", "highwater_"];
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)));
    ours.map(|word| {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| word.strip_suffix(suffix));
        base.filter(|base| exported().contains(*base)).unwrap_or(word).to_owned()
    })
    .collect()
}

fn exported() -> BTreeSet<&'static str> {
    families().map(|family| family.name).collect()
}

#[test]
fn every_metric_asked_for_is_one_there_is() {
    for file in ["prometheus-rules.yml", "grafana-dashboard.json"] {
        let asked = metrics_in(&deployed(file));
        assert!(asked.len() >= 9, "{file} asks for hardly anything: {asked:?}");
        for metric in asked {
            assert!(exported().contains(metric.as_str()), "{file}: {metric}");
        }
    }
}

#[test]
fn every_metric_of_the_whole_service_is_on_the_dashboard() {
    let shown = metrics_in(&deployed("grafana-dashboard.json"));
    let missing: Vec<_> =
        exported().into_iter().filter(|name| !name.starts_with("highwater_") && !shown.contains(*name)).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn the_dashboard_can_be_imported_and_asks_which_data_source() {
    let board: serde_json::Value = serde_json::from_str(&deployed("grafana-dashboard.json")).unwrap();
    assert_eq!(board["id"], serde_json::Value::Null);
    assert_eq!(board["templating"]["list"][0]["type"], "datasource");
    let panels = board["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{}", panel["title"]);
    }
}

/// Every process on one store shows them, and a closed gate is closed for all.
#[test]
fn what_processes_share_is_not_added_up() {
    let board = deployed("grafana-dashboard.json");
    for shared in ["rescan_items_processed_total", "rescan_items_changed_total", "highwater_throttled_seconds_total"] {
        for (place, _) in board.match_indices(shared) {
            let expression = &board[board[..place].rfind("\"expr\"").unwrap()..place];
            assert!(expression.contains("max") && !expression.contains("sum"), "{expression}{shared}");
        }
    }
}

#[test]
fn the_rules_have_the_thresholds_of_our_own_alerts() {
    let rules = deployed("prometheus-rules.yml");
    for (expression, wait) in [
        ("realtime_listener_connected == 0", "60s"),
        ("realtime_last_event_age_seconds > 300", "0s"),
        ("realtime_worker_alive_count == 0", "1m"),
        ("catchup_dead_letters_total > 0", "0s"),
        ("catchup_frontier_lag > 50000", "5m"),
        ("realtime_queue_depth > 2000", "1m"),
        ("increase(realtime_reconnects_total[1h]) > 6", "0s"),
        ("rescan_last_run_age_seconds > 12 * 3600", "0s"),
        ("realtime_blind_windows_open > 0", "1h"),
    ] {
        let rule = format!("expr: {expression}\n        for: {wait}\n");
        assert!(rules.contains(&rule), "{rule}");
    }
}
