//! Faults, quota, truth and counters, as a client meets them.

use super::*;
use crate::answer::{Declared, RetryAfter};

/// The head of every preset has stopped growing by then.
const LATE: Duration = Duration::from_secs(600);

/// Requests a patient client spends on one id.
const PATIENCE: u64 = 12;

/// What a client sees that asks for one id again and again, slowly enough for any quota.
fn history(sim: &HnSim, id: u64) -> Vec<Reply> {
    (0..PATIENCE).map(|nth| item(sim, id, LATE + Duration::from_millis(10 * (id * PATIENCE + nth)))).collect()
}

fn is_body(reply: &Reply, body: &Bytes) -> bool {
    match reply {
        Reply::Full(message) | Reply::Slow { message, .. } => message.status == StatusCode::OK && message.body == *body,
        _ => false,
    }
}

#[test]
fn every_preset_heals_into_its_truth() {
    for preset in Preset::ALL {
        let sim = HnSim::new(World::generated(Seed(9), 3_000), preset.plan());
        for id in 1..=3_000 {
            let seen = history(&sim, id);
            match sim.expected(id) {
                Expected::Body(body) => check_body(&seen, &body, preset, id),
                Expected::Missing => assert!(seen.iter().all(|reply| is_body(reply, &NULL)), "{preset} {id}"),
                Expected::Unreachable(fault) => {
                    let body = sim.world().item(id).unwrap();
                    assert!(!seen.iter().any(|reply| is_body(reply, &body)), "{preset} {id} {fault}");
                }
            }
        }
    }
}

/// A client that gives up after eight tries, or believes the third null, must still come to the body.
fn check_body(seen: &[Reply], body: &Bytes, preset: Preset, id: u64) {
    let first = seen.iter().position(|reply| is_body(reply, body)).expect("the body comes");
    assert!(first < 8, "{preset} {id}: {first} faults first");
    let nulls = seen[..first].iter().filter(|reply| is_body(reply, &NULL)).count();
    assert!(nulls <= 2, "{preset} {id}: {nulls} nulls first");
    let mut spoiled = 0;
    for reply in seen {
        spoiled = if is_body(reply, body) { 0 } else { spoiled + 1 };
        assert!(spoiled <= 5, "{preset} {id}: more than five faults in a row");
    }
}

#[test]
fn chaos_has_every_state_and_nearly_every_fault() {
    let sim = HnSim::new(World::generated(Seed(9), 20_000), Preset::Chaos.plan());
    let mut states = [0; 3];
    for id in 1..=20_000 {
        let at = match sim.expected(id) {
            Expected::Body(_) => 0,
            Expected::Missing => 1,
            Expected::Unreachable(_) => 2,
        };
        states[at] += 1;
        (0..4).for_each(|nth| drop(item(&sim, id, LATE + Duration::from_millis(id * 10 + nth))));
    }
    assert!(states.iter().all(|count| *count > 10), "{states:?}");
    let report = sim.stats().report();
    let lacking: Vec<Fault> = Fault::ALL.into_iter().filter(|f| !report.by_fault.contains_key(f.as_str())).collect();
    assert!(lacking.iter().all(|fault| *fault == Fault::Oversized), "{lacking:?}");
}

#[test]
fn the_same_seed_and_plan_replay_the_same_answers() {
    let run = || {
        let sim = HnSim::new(World::generated(Seed(9), 500), Preset::Chaos.plan());
        (1..=500).map(|id| history(&sim, id)).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn each_fault_has_its_form() {
    let sim = sim(
        200,
        "[[script]]\nid = 3\nreplies = ['401', '404', '502', '429-retry-after', '503', 'html', 'reset', 'reset-body', 'truncated', 'cut-json', 'slow', 'hang', 'oversized', 'wrong-id']",
    );
    let body = sim.world().item(3).unwrap();
    let full = |reply| if let Reply::Full(message) = reply { message } else { panic!("{reply:?}") };
    let next = || item(&sim, 3, LATE);
    let denied = full(next());
    assert_eq!((denied.status.as_u16(), denied.body.len()), (401, 36), "the size a real one was seen with");
    assert_eq!(full(next()).status, 404);
    assert!(full(next()).body.starts_with(b"<!DOCTYPE"));
    assert_eq!(full(next()).headers.retry_after, Some(RetryAfter(1)));
    assert_eq!(full(next()).headers.retry_after, None);
    assert_eq!(full(next()).status, 200);
    assert_eq!(next(), Reply::Reset);
    assert!(matches!(next(), Reply::ResetBody { sent, .. } if sent == body.len() / 2));
    assert!(matches!(next(), Reply::Truncated { declared: Declared::Whole, .. }));
    assert!(matches!(next(), Reply::Truncated { declared: Declared::Sent, .. }));
    assert!(matches!(next(), Reply::Slow { chunk: 64, .. }));
    assert_eq!(next(), Reply::Hang);
    let oversized = full(next()).body;
    assert!(oversized.len() > 8 << 20 && oversized.starts_with(b"{\"id\":3,"));
    assert_eq!(full(next()).body, sim.world().item(4).unwrap());
    assert_eq!(full(next()).body, body);
}

#[test]
fn delayed_touches_only_comments_with_a_text() {
    let sim = sim(2_000, "[[script]]\nshare = 1\nreplies = ['delayed']");
    let mut delayed = 0;
    for id in 1..=1_900 {
        let truth: Value = serde_json::from_slice(&sim.world().item(id).unwrap()).unwrap();
        let first = json(item(&sim, id, LATE));
        if first["text"] == "[delayed]" {
            delayed += 1;
            assert!(truth["type"] == "comment" && truth["dead"].is_null());
            assert_eq!((&first["parent"], &first["kids"]), (&truth["parent"], &truth["kids"]));
        } else {
            assert_eq!(first, truth);
        }
        assert_eq!(json(item(&sim, id, LATE)), truth, "heals");
    }
    assert_eq!(sim.stats().report().by_fault["delayed"], delayed);
}

#[test]
fn pages_fail_too_but_never_lie() {
    let sim = sim(1_000, "[rates]\n500 = 0.3\nnull = 0.2\n401 = 0.1\ncut-json = 0.1\nwrong-id = 0.1");
    let replies: Vec<Reply> = (0..200).map(|_| ask(&sim, "/v0/maxitem.json", LATE)).collect();
    let errors = replies.iter().filter(|reply| reply.status() == Some(StatusCode::INTERNAL_SERVER_ERROR)).count();
    assert!((20..80).contains(&errors), "{errors}");
    let truthful = replies.iter().filter(|reply| is_body(reply, &Bytes::from_static(b"1000"))).count();
    assert_eq!(truthful + errors, 200);
}

#[test]
fn over_quota_is_refused_and_calling_on_is_noticed() {
    let sim = sim(100, "[quota]\nper_second = 10\nburst = 2\nretry_after_s = 1");
    let status = |id, millis| item(&sim, id, Duration::from_millis(millis)).status().unwrap().as_u16();
    assert_eq!([status(1, 0), status(2, 0), status(3, 0)], [200, 200, 429]);
    assert_eq!(sim.stats().report().retry_after_violations, 0, "on the wire before the client could know");
    assert_eq!(status(3, 500), 200);
    assert_eq!(status(3, 1_000), 200);
    let report = sim.stats().report();
    assert_eq!([report.requests, report.refused_by_quota, report.retry_after_violations], [5, 1, 1]);
    assert_eq!([report.ids_repeated, report.requests_per_id_max], [1, 2]);
    assert_eq!((report.by_status[&200], report.by_status[&429], report.by_endpoint["item"]), (4, 1, 5));
}

#[test]
fn the_truth_page_tells_every_state_and_counts_nothing() {
    let sim = sim(20_000, "[[script]]\nid = 2\nthen = 'null'\n[[script]]\nid = 3\nthen = '404'");
    let lines = |target: &str| -> Vec<Value> {
        let text = good(ask(&sim, target, LATE));
        text.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    };
    let some = lines("/_sim/truth?from=1&to=3");
    let body: Value = serde_json::from_slice(&sim.world().item(1).unwrap()).unwrap();
    assert_eq!(some[0], serde_json::json!({"id": 1, "state": "body", "body": body}));
    assert_eq!(some[1], serde_json::json!({"id": 2, "state": "missing"}));
    assert_eq!(some[2], serde_json::json!({"id": 3, "state": "unreachable", "reason": "404"}));
    assert_eq!(lines("/_sim/truth").len(), TRUTH_LINES_MAX);
    assert_eq!(lines("/_sim/truth?from=19990").len(), 11);
    assert_eq!(json(ask(&sim, "/_sim/stats", LATE))["requests"], 0);
}

#[test]
fn latency_is_part_of_the_answer() {
    let sim = sim(100, "[latency]\nfixed_ms = 20");
    assert_eq!(sim.answer(&SimRequest::get("/v0/item/1.json"), LATE).delay, Duration::from_millis(20));
    assert_eq!(sim.answer(&SimRequest::get("/_sim/stats"), LATE).delay, Duration::ZERO);
}
