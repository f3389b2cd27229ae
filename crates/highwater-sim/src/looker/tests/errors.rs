//! Errors, as Looker words them, and the quota.

use std::time::Duration;

use serde_json::json;

use super::Bench;
use crate::answer::{Reply, Verb};

#[test]
fn errors_have_the_shape_of_looker() {
    let bench = Bench::new(3, "");
    let (status, body) = bench.ask(Verb::Get, "/api/4.0/dashboards/999", "");
    let url = "https://docs.cloud.google.com/looker/docs/r/err/4.0/404/get/dashboards/:dashboard_id";
    assert_eq!((status, body), (404, json!({ "message": "Not found", "documentation_url": url })));
    let (status, body) = bench.ask(Verb::Get, "/api/4.0/looks/search?limit=many", "");
    assert_eq!(
        (status, &body["message"], &body["errors"][0]["field"]),
        (422, &json!("Validation Failed"), &json!("limit"))
    );
    assert!(body["errors"][0]["documentation_url"].is_string());
    for bad in ["/dashboards/search?sorts=updated_at", "/looks?limit=5", "/content_metadata", "/users?fields=("] {
        assert_eq!(bench.status(bad), 422, "{bad}");
    }
    assert_eq!(bench.status("/looks/search?sorts=updated_at"), 200);
    assert_eq!(bench.status("/queries/17"), 404);
    assert_eq!(bench.sim.counts(bench.now).invalid, 5);
}

#[test]
fn a_type_is_forbidden_as_the_plan_or_an_order_says() {
    let bench = Bench::new(20, "[forbidden]\nalerts = '403'\nprojects = '404'");
    assert_eq!([bench.status("/alerts/search?all_owners=true"), bench.status("/alerts/1")], [403, 403]);
    assert_eq!([bench.status("/projects"), bench.status("/projects/project_1")], [404, 404]);
    bench.tell("forbid", &json!({ "type": "lookml_dashboards", "status": 404 }));
    assert!(bench.ids("/dashboards").iter().all(|id| !id.contains("::")));
    assert_eq!(bench.status("/dashboards/lookml/search"), 404);
    bench.tell("allow", &json!({ "type": "alerts" }));
    assert_eq!(bench.status("/alerts/search"), 200);
    assert_eq!(bench.sim.truth(bench.now)["forbidden"], json!({ "lookml_dashboards": "404", "projects": "404" }));
}

#[test]
fn the_quota_refuses_with_and_without_a_time() {
    let mut bench = Bench::new(3, "[quota]\nper_second = 2\nretry_after = 1.0");
    assert_eq!([0; 3].map(|_| bench.status("/user")), [200, 200, 429]);
    let Reply::Full(message) = bench.reply(Verb::Get, "/api/4.0/user", "") else { panic!() };
    assert_eq!(message.headers.retry_after.unwrap().0, 1);
    bench.now = Duration::from_millis(500);
    assert_eq!(bench.status("/user"), 429);
    assert_eq!(bench.status("/versions"), 200, "what is free is not counted");
    bench.now = Duration::from_secs(1);
    assert_eq!(bench.status("/user"), 200);
    let counts = bench.sim.counts(bench.now);
    assert_eq!((counts.refused_by_quota, counts.requests_in_closed_period), (3, 2));
}

#[test]
fn activities_are_counted_as_looker_sorts_them() {
    let bench = Bench::new(10, "");
    for path in ["/dashboards", "/looks", "/scheduled_plans?all_users=true", "/versions"] {
        bench.get(path);
    }
    let counts = bench.sim.counts(bench.now);
    assert_eq!(json!(counts.by_activity), json!({ "none": 2, "non_query": 2, "query": 1 }));
    assert_eq!(counts.by_path["GET /scheduled_plans"], 1);
    assert_eq!(counts.objects_served["looks"], bench.true_ids("looks", false).len() as u64);
}
