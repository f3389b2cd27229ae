//! Looker's own client (looker-sdk) calls every simulated operation as it calls Looker, and understands what it is
//! told. It is installed from PyPI on first use, into the target folder.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod carried;
mod client;
#[path = "../clients/python.rs"]
mod python;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use highwater_sim::{LookerPlan, LookerSim, Seed, server};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(180);

/// 1 January 2026.
const START: i64 = 1_767_225_600_000;

#[tokio::test(flavor = "multi_thread")]
async fn the_vendors_client_calls_every_operation_and_learns_the_truth() {
    if std::env::var_os("HIGHWATER_SKIP_CLIENTS").is_some() {
        eprintln!("skipped: HIGHWATER_SKIP_CLIENTS is set");
        return;
    }
    let python = client::install();
    let plan = LookerPlan::parse("[instance]\ntrash = 0.2\nown_access = 0.3").unwrap();
    let sim = Arc::new(LookerSim::new(Seed(4), 20, plan, START));
    let truth = sim.truth(Duration::ZERO);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(server::serve(listener, Arc::clone(&sim), shutdown.clone()));
    let found = tokio::time::timeout(PATIENCE, client::report(&python, address)).await.expect("the client ends");
    shutdown.cancel();
    serving.await.unwrap().unwrap();
    lists_are_true(&found, &truth["types"]);
    members_are_true(&found, &truth["types"]);
    errors_are_understood(&found["errors"]);
    assert_eq!(found["alone"], json!([]), "what was asked for alone is what was asked for");
    assert_eq!(found["strange"], json!([]), "no name or type that the client's models do not have");
    // The client has `deleted` as a text because Looker takes both words; credentials may still come in the query.
    let differ = json!({ "get /dashboards/search": ["deleted"], "post /login": ["client_id", "client_secret"] });
    assert_eq!(found["parameters"], differ, "the client's parameters, and no other");
    let operations = sim.counts(Duration::ZERO).by_path.len();
    assert_eq!(operations, 68, "every operation was called");
}

fn set(ids: &Value) -> BTreeSet<&str> {
    ids.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect()
}

fn there<'a>(truth: &'a Value, kind: &str, deleted: bool) -> BTreeSet<&'a str> {
    let objects = truth[kind].as_object().unwrap().iter();
    objects.filter(|(_, entry)| entry["deleted"] == deleted).map(|(id, _)| id.as_str()).collect()
}

fn lists_are_true(found: &Value, truth: &Value) {
    for (list, kind) in [
        ("dashboards", "dashboards"),
        ("lookml_dashboards", "lookml_dashboards"),
        ("lookml", "lookml_dashboards"),
        ("looks", "looks"),
        ("all_looks", "looks"),
        ("folder_looks", "looks"),
        ("folder_dashboards", "dashboards"),
        ("folders", "folders"),
        ("folder_search", "folders"),
        ("boards", "boards"),
        ("board_search", "boards"),
        ("users", "users"),
        ("user_search", "users"),
        ("groups", "groups"),
        ("group_search", "groups"),
        ("roles", "roles"),
        ("role_search", "roles"),
        ("permission_sets", "permission_sets"),
        ("permission_set_search", "permission_sets"),
        ("model_sets", "model_sets"),
        ("model_set_search", "model_sets"),
        ("lookml_models", "lookml_models"),
        ("explores", "explores"),
        ("scheduled_plans", "scheduled_plans"),
        ("alerts", "alerts"),
        ("themes", "themes"),
        ("theme_search", "themes"),
        ("connections", "connections"),
        ("projects", "projects"),
        ("datagroups", "datagroups"),
        ("user_attributes", "user_attributes"),
    ] {
        assert_eq!(set(&found[list]), there(truth, kind, false), "{list}");
    }
    assert_eq!(set(&found["trash"]), there(truth, "dashboards", true));
    assert_eq!(set(&found["trashed_looks"]), there(truth, "looks", true));
    let census = &there(truth, "dashboards", false) | &there(truth, "lookml_dashboards", false);
    assert_eq!(set(&found["all_dashboards"]), census);
    assert!(set(&found["queries"]).is_subset(&there(truth, "queries", false)));
    assert_eq!(set(&found["merge_queries"]), there(truth, "merge_queries", false));
    assert!(set(&found["content_metadata"]).is_subset(&there(truth, "content_metadata", false)));
    assert!(set(&found["grants"]).is_subset(&there(truth, "content_access", false)));
    assert_eq!(set(&found["elements"]), set(&found["elements_of"]));
    assert_eq!(found["some_users"], json!(["1", "2"]));
    assert_eq!(found["nested"][1], Value::Null);
    assert_eq!(found["nested"][3], true);
    let roots = ["1", "2", "lookml"];
    let children: BTreeSet<&str> =
        there(truth, "folders", false).into_iter().filter(|id| !roots.contains(id)).collect();
    assert_eq!(set(&found["folder_children"]), children);
}

fn members_are_true(found: &Value, truth: &Value) {
    for (list, kind) in [("members", "groups"), ("holders", "roles")] {
        for (id, entry) in truth[kind].as_object().unwrap() {
            let members = &entry["members"];
            assert_eq!(set(&found[list][id][0]), set(&members["users"]), "{kind} {id}");
            assert_eq!(set(&found[list][id][1]), set(&members["groups"]), "{kind} {id}");
        }
    }
    assert!(set(&found["own_plans"]).len() < set(&found["scheduled_plans"]).len());
}

fn errors_are_understood(errors: &Value) {
    for name in ["gone", "number", "parent"] {
        assert_eq!(errors[name], json!(["Not found", []]), "{name}");
    }
    assert_eq!(errors["sorts"], json!(["Validation Failed", [["sorts", "invalid"]]]));
}
