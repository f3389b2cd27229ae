//! Faults by rate and by script.

use serde_json::json;

use super::Bench;
use crate::answer::{Declared, Reply, Verb};

#[test]
fn every_fault_looks_as_it_should() {
    let reply = |fault: &str| {
        let bench = Bench::new(3, &format!("[[script]]\npath = '/looks'\nreplies = ['{fault}']"));
        bench.reply(Verb::Get, "/api/4.0/looks", "")
    };
    let full = |fault: &str| match reply(fault) {
        Reply::Full(message) => (
            message.status.as_u16(),
            message.headers.content_type.starts_with("text/html"),
            message.headers.retry_after,
        ),
        other => panic!("{fault}: {other:?}"),
    };
    for (fault, status, html) in [
        ("500", 500, false),
        ("502", 502, true),
        ("503", 503, false),
        ("504", 504, true),
        ("429", 429, false),
        ("401", 401, false),
        ("403", 403, false),
        ("404", 404, false),
        ("422", 422, false),
        ("html", 200, true),
    ] {
        assert_eq!(full(fault), (status, html, None), "{fault}");
    }
    assert_eq!(full("429-retry-after").2.unwrap().0, 1);
    assert!(matches!(reply("reset"), Reply::Reset));
    assert!(matches!(reply("reset-body"), Reply::ResetBody { .. }));
    assert!(matches!(reply("truncated"), Reply::Truncated { declared: Declared::Whole, .. }));
    assert!(matches!(reply("cut-json"), Reply::Truncated { declared: Declared::Sent, .. }));
    assert!(matches!(reply("slow"), Reply::Slow { .. }));
    assert!(matches!(reply("hang"), Reply::Hang));
}

#[test]
fn a_401_ends_the_token_and_a_504_comes_late() {
    let mut bench = Bench::new(3, "[[script]]\npath = '/looks'\nreplies = ['401', '504']");
    assert_eq!([bench.status("/looks"), bench.status("/user")], [401, 401]);
    bench.login();
    let authorization = format!("token {}", bench.token);
    let request = crate::answer::SimRequest::get("/api/4.0/looks").authorized(&authorization);
    assert_eq!(bench.sim.answer(&request, bench.now).delay.as_millis(), 1_000);
    assert_eq!(bench.status("/looks"), 200);
}

#[test]
fn an_object_that_cannot_be_had_spoils_every_page_it_is_on() {
    let plan = "[instance]\ntrash = 0\n[[script]]\ntype = 'dashboards'\nids = ['17']\nthen = '500'\nin_lists = true";
    let bench = Bench::new(40, plan);
    let page =
        |offset: u64, limit: u64| bench.status(&format!("/dashboards/search?sorts=id&limit={limit}&offset={offset}"));
    assert_eq!([page(0, 10), page(10, 10), page(16, 1), page(17, 10)], [200, 500, 500, 200]);
    assert_eq!([bench.status("/dashboards/17"), bench.status("/dashboards/16")], [500, 200]);
    assert_eq!([bench.status("/dashboards"), bench.status("/dashboards/search?fields=id")], [200, 200]);
    assert_eq!(bench.truth("dashboards")["17"]["broken"], "500");
}

#[test]
fn a_page_can_fail_for_good() {
    let plan = "[[script]]\npath = '/dashboards/search'\noffset = 10\nthen = '500'";
    let bench = Bench::new(40, plan);
    let page = |offset: u64| bench.status(&format!("/dashboards/search?sorts=id&limit=10&offset={offset}"));
    assert_eq!([page(0), page(10), page(10), page(11), page(20)], [200, 500, 500, 200, 200]);
}

#[test]
fn rates_heal_and_replay() {
    let run = || {
        let bench = Bench::new(40, "heal_after = 2\n[rates]\n500 = 0.5\n503 = 0.3");
        let of = |id: u64| [0; 3].map(|_| bench.status(&format!("/users/{id}")));
        (1..12).map(of).collect::<Vec<_>>()
    };
    let seen = run();
    assert!(seen.iter().all(|statuses| statuses[2] == 200), "{seen:?}");
    assert!(seen.iter().any(|statuses| statuses[0] == 500) && seen.iter().any(|statuses| statuses[0] == 503));
    assert_eq!(seen, run());
}

#[test]
fn while_it_is_down_every_request_is_reset() {
    let bench = Bench::new(3, "");
    bench.tell("down", &json!({ "for_ms": 1_000 }));
    assert!(matches!(bench.reply(Verb::Get, "/api/4.0/user", ""), Reply::Reset));
}
