//! Tokens: how they are had, shown, and lost.

use std::time::Duration;

use super::Bench;
use crate::answer::{SimRequest, Verb};

#[test]
fn both_forms_of_the_header_and_both_places_of_credentials_will_do() {
    let bench = Bench::new(3, "");
    for scheme in ["token", "Bearer", "bearer"] {
        let shown = format!("{scheme} {}", bench.token);
        let request = SimRequest::get("/api/4.0/user").authorized(&shown);
        assert_eq!(bench.sim.answer(&request, bench.now).reply.status().unwrap(), 200, "{scheme}");
    }
    let query = "/api/4.0/login?client_id=sim-client&client_secret=sim-secret";
    let (status, body) = bench.ask(Verb::Post, query, "");
    assert_eq!((status, &body["expires_in"]), (200, &3_600.into()));
    assert!(body["refresh_token"].is_null() && body["token_type"].is_string());
}

#[test]
fn tokens_end_by_time_by_logout_and_by_order() {
    let mut bench = Bench::new(3, "[login]\nlifetime_s = 100");
    assert_eq!(bench.status("/user"), 200);
    bench.now = Duration::from_secs(100);
    assert_eq!(bench.status("/user"), 401);
    for logout in ["/api/logout", "/api/4.0/logout"] {
        bench.login();
        assert_eq!(bench.ask(Verb::Delete, logout, "").0, 204);
        assert_eq!(bench.status("/user"), 401);
    }
    bench.login();
    bench.tell("revoke", &serde_json::json!({}));
    assert_eq!(bench.status("/user"), 401);
    let counts = bench.sim.counts(bench.now);
    assert_eq!((counts.logins, counts.logouts, counts.rejected), (4, 2, 4));
}

#[test]
fn tokens_are_revoked_in_mid_run_and_the_oldest_of_too_many_ends() {
    let mut bench = Bench::new(3, "[login]\nrevoke_every = 3");
    assert_eq!([0; 5].map(|_| bench.status("/user")), [200, 200, 200, 401, 401]);
    bench.login();
    assert_eq!(bench.status("/user"), 200);
    let mut bench = Bench::new(3, "[login]\ntokens_max = 1");
    let first = bench.token.clone();
    bench.login();
    assert_eq!(bench.status("/user"), 200);
    bench.token = first;
    assert_eq!(bench.status("/user"), 401);
}

#[test]
fn wrong_credentials_are_refused_as_the_plan_says() {
    for (plan, expected) in [("", 404), ("[login]\nrefused_status = 401", 401)] {
        let bench = Bench::new(3, plan);
        let (status, body) = bench.ask(Verb::Post, "/api/4.0/login", "client_id=sim-client&client_secret=wrong");
        assert_eq!(status, expected, "{body}");
        assert!(body["documentation_url"].as_str().unwrap().ends_with(&format!("/{expected}/post/login")));
    }
    let bench = Bench::new(3, "");
    bench.tell("credentials", &serde_json::json!({ "client_secret": "other" }));
    assert_eq!(bench.ask(Verb::Post, "/api/4.0/login", "client_id=sim-client&client_secret=sim-secret").0, 404);
    assert_eq!(bench.status("/user"), 200, "tokens from before live on");
}
