//! What changes by hand, as time goes by, and as requests come in.

use std::time::Duration;

use serde_json::json;

use super::{Bench, order, still};
use crate::answer::Verb;

#[test]
fn an_edit_changes_the_title_and_the_time() {
    let bench = Bench::new(20, "[instance]\ntrash = 0");
    let before = bench.get("/dashboards/7");
    bench.tell("edit", &order("dashboards", "7"));
    let after = bench.get("/dashboards/7");
    assert_ne!(before["title"], after["title"]);
    assert!(before["updated_at"].as_str() < after["updated_at"].as_str());
    let once_more =
        bench.tell("edit", &json!({ "type": "dashboards", "id": "7", "set": { "description": "set", "deep": [1] } }));
    let now = bench.get("/dashboards/7");
    assert_eq!([&now["description"], &now["deep"]], [&json!("set"), &json!([1])]);
    assert_eq!(still(now.clone()), still(once_more["body"].clone()));
    assert!(after["updated_at"].as_str() < now["updated_at"].as_str(), "also within a millisecond");
}

#[test]
fn every_type_but_queries_can_be_edited() {
    let bench = Bench::new(20, "");
    for (kind, objects) in bench.sim.truth(bench.now)["types"].as_object().unwrap() {
        let (id, entry) = objects.as_object().unwrap().iter().next().unwrap();
        let (status, answer) = bench.ask(Verb::Post, "/_sim/edit", &order(kind, id).to_string());
        if kind.ends_with("queries") {
            assert_eq!(status, 400);
        } else {
            assert_ne!(still(answer["body"].clone()), still(entry["body"].clone()), "{kind} {id}");
        }
    }
}

#[test]
fn what_is_trashed_is_listed_as_deleted_and_what_is_purged_is_gone() {
    let bench = Bench::new(20, "[instance]\ntrash = 0");
    bench.tell("delete", &order("dashboards", "7"));
    assert!(!bench.ids("/dashboards/search").contains(&"7".to_owned()));
    assert_eq!(bench.ids("/dashboards/search?deleted=true"), ["7"]);
    let body = bench.get("/dashboards/7");
    assert!(body["deleted"] == true && body["deleted_at"].is_string() && body["deleter_id"] == "1");
    let metadata = body["content_metadata_id"].as_str().unwrap().to_owned();
    bench.tell("restore", &order("dashboards", "7"));
    assert!(bench.ids("/dashboards/search").contains(&"7".to_owned()));
    bench.tell("purge", &order("dashboards", "7"));
    assert_eq!([bench.status("/dashboards/7"), bench.status(&format!("/content_metadata/{metadata}"))], [404, 404]);
    assert_eq!(bench.sim.truth(bench.now)["purged"]["dashboards"], json!(["7"]));
    bench.tell("delete", &order("boards", "1"));
    assert!(!bench.ids("/boards").contains(&"1".to_owned()));
    assert!(bench.get("/boards/1")["deleted_at"].is_string());
}

#[test]
fn new_objects_of_every_type_that_can_be_made() {
    let bench = Bench::new(10, "");
    for kind in [
        "dashboards",
        "lookml_dashboards",
        "looks",
        "folders",
        "boards",
        "users",
        "groups",
        "roles",
        "permission_sets",
        "model_sets",
        "lookml_models",
        "scheduled_plans",
        "alerts",
        "themes",
        "connections",
        "projects",
        "datagroups",
        "user_attributes",
    ] {
        let before = bench.true_ids(kind, false);
        let made = bench.tell("insert", &json!({ "type": kind, "count": 2 }))["ids"].clone();
        let after = bench.true_ids(kind, false);
        assert_eq!(after.len(), before.len() + 2, "{kind}");
        assert!(made.as_array().unwrap().iter().all(|id| after.contains(id.as_str().unwrap())), "{kind}");
    }
}

#[test]
fn a_group_or_role_that_is_purged_is_named_by_nobody() {
    let bench = Bench::new(60, "");
    bench.tell("purge", &order("groups", "2"));
    bench.tell("purge", &order("roles", "2"));
    for user in bench.get("/users").as_array().unwrap() {
        assert!(!user["group_ids"].as_array().unwrap().contains(&json!("2")));
        assert!(!user["role_ids"].as_array().unwrap().contains(&json!("2")));
    }
}

#[test]
fn grants_go_and_come_with_inheritance() {
    let bench = Bench::new(20, "");
    let metadata = bench.get("/folders/5")["content_metadata_id"].as_str().unwrap().to_owned();
    let grants = || bench.ids(&format!("/content_metadata_access?content_metadata_id={metadata}")).len();
    for _ in 0..2 {
        let after = bench.tell("edit", &order("content_metadata", &metadata))["body"]["inherits"].clone();
        assert_eq!(after == false, grants() > 0);
    }
}

#[test]
fn what_is_made_is_of_now() {
    let bench = Bench::new(5, "");
    let made = bench.tell("insert", &json!({ "type": "dashboards" }))["ids"][0].as_str().unwrap().to_owned();
    assert_eq!(bench.get(&format!("/dashboards/{made}"))["created_at"], "2026-01-01T00:00:00.000+00:00");
}

#[test]
fn an_instance_lives_by_the_clock_and_by_requests() {
    let mut bench = Bench::new(60, "[mutations]\nevery_ms = 1000\nstop_after_ms = 50000");
    bench.now = Duration::from_secs(100);
    let counts = bench.sim.counts(bench.now);
    let changes = counts.mutations.values().sum::<u64>();
    assert!((40..=50).contains(&changes), "{changes}: few find nothing to change");
    assert_eq!(counts.mutations.len(), 4, "{:?}", counts.mutations);
    let bench = Bench::new(60, "[mutations]\nevery_requests = 5\nmost = 3\ntypes = ['looks']\nedit = 0");
    (0..100).for_each(|_| drop(bench.get("/user")));
    assert_eq!(bench.sim.counts(bench.now).mutations.values().sum::<u64>(), 3);
}

#[test]
fn the_same_seed_lives_the_same_life() {
    let run = || {
        let mut bench = Bench::new(60, "[mutations]\nevery_ms = 100");
        bench.now = Duration::from_secs(10);
        bench.sim.truth(bench.now)
    };
    assert_eq!(run(), run());
}

#[test]
fn a_change_comes_just_before_the_request_it_is_planned_for() {
    let cue = |after, deed, id| {
        format!(
            "[[change]]\npath = '/dashboards/search'\noffset = 10\nafter = {after}\ndo = '{deed}'\ntype = 'dashboards'\nid = '{id}'\n"
        )
    };
    let plan = format!("{}{}[instance]\ntrash = 0", cue(0, "purge", "3"), cue(1, "delete", "4"));
    let bench = Bench::new(40, &plan);
    let page = |offset: u64| bench.ids(&format!("/dashboards/search?sorts=id&limit=10&offset={offset}"));
    assert_eq!(page(0).last().unwrap(), "10");
    assert_eq!(page(10).first().unwrap(), "12", "11 has moved to the page before");
    assert_eq!(page(10).first().unwrap(), "13");
    assert_eq!(page(10).first().unwrap(), "13", "only once");
}

#[test]
fn logins_fail_by_scripts() {
    let bench = Bench::new(3, "[[script]]\npath = '/login'\nreplies = ['normal', '502', '429']");
    let login = || bench.ask(Verb::Post, "/api/4.0/login", "client_id=sim-client&client_secret=sim-secret").0;
    assert_eq!([login(), login(), login()], [502, 429, 200]);
}
