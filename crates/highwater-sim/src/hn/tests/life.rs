//! Mutations over time: they replay, they are named in `updates`, and the truth follows them.

use std::collections::{HashMap, HashSet};

use super::*;
use crate::hn::Publicity::{Published, Unpublished};

const PLAN: &str = "[mutations]\nevery_ms = 100\nwindow_ids = 300\nunpublished = 0.25\nstop_after_ms = 60000";
const END: Duration = Duration::from_secs(70);

const fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn bodies(sim: &HnSim, time: Duration) -> Vec<Option<Bytes>> {
    (1..=1_000).map(|id| sim.item_at(id, time)).collect()
}

#[test]
fn bodies_over_time_are_the_same_however_often_somebody_looks() {
    let (watched, unwatched) = (sim(1_000, PLAN), sim(1_000, PLAN));
    for millis in (0..70_000).step_by(7) {
        item(&watched, 1 + millis % 1_000, at(millis));
    }
    for millis in [70_000, 60_000, 59_999, 31_234, 100, 99] {
        assert_eq!(bodies(&watched, at(millis)), bodies(&unwatched, at(millis)), "at {millis} ms");
    }
    let changed = bodies(&watched, END).iter().zip(bodies(&watched, at(0))).filter(|(now, then)| *now != then).count();
    assert!((100..=300).contains(&changed), "{changed}");
    assert_eq!(bodies(&watched, at(99)), (1..=1_000).map(|id| watched.world().item(id)).collect::<Vec<_>>());
}

#[test]
fn who_fetches_after_the_last_mutation_has_the_truth() {
    let sim = sim(1_000, PLAN);
    for id in 1..=1_000 {
        let seen = good(item(&sim, id, END));
        assert_eq!(Expected::Body(seen.clone()), sim.expected_at(id, END));
        assert_eq!(Some(seen), sim.item_at(id, END), "the replay agrees with what is served");
    }
    let page = good(ask(&sim, "/_sim/truth/users", END));
    let users: Vec<Value> =
        page.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert!(users.len() > 5);
    for user in users {
        let name = user["name"].as_str().unwrap();
        assert_eq!(json(ask(&sim, &format!("/v0/user/{name}.json"), END)), user["body"]);
        assert_ne!(serde_json::from_slice::<Value>(&sim.world().user(name).unwrap()).unwrap(), user["body"]);
    }
    let report = sim.stats().report();
    assert_eq!(report.mutations, 600);
    assert!((400..500).contains(&report.mutations_published), "{report:?}");
}

#[test]
fn updates_name_every_published_change_once_it_is_written() {
    let sim = sim(1_000, PLAN);
    let mut bodies: HashMap<u64, Bytes> = (1..=1_000).map(|id| (id, sim.world().item(id).unwrap())).collect();
    let (mut named, mut unnamed) = (0, 0);
    for second in 1..=61 {
        let now = Duration::from_secs(second);
        let updates = json(ask(&sim, "/v0/updates.json", now));
        let told: HashSet<u64> = updates["items"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        for (id, known) in &mut bodies {
            let body = good(item(&sim, *id, now));
            if body != *known {
                *(if told.contains(id) { &mut named } else { &mut unnamed }) += 1;
                *known = body;
            }
        }
    }
    assert!(named > 300 && unnamed > 50, "{named} named, {unnamed} not");
}

#[test]
fn a_hand_changes_one_item_and_publishes_it_at_once() {
    let sim = sim(1_000, "");
    let kind = MutationKind::Delete;
    let body = sim.mutate(990, Some(kind), Published, at(5)).unwrap();
    assert_eq!(json(ask(&sim, "/v0/updates.json", at(5))), serde_json::json!({"items": [990]}));
    assert_eq!(good(item(&sim, 990, at(5))), body);
    assert_eq!(sim.expected(990), Expected::Body(body));
    sim.mutate(991, None, Unpublished, at(6)).unwrap();
    assert_eq!(json(ask(&sim, "/v0/updates.json", at(6))), serde_json::json!({"items": [990]}));
    let name = sim.world().author(7).unwrap();
    let profile = sim.mutate_profile(&name, Published, at(7)).unwrap();
    assert_eq!(json(ask(&sim, "/v0/updates.json", at(7))), serde_json::json!({"profiles": [name]}));
    assert_eq!(sim.expected_user(&name, at(7)), Some(profile));
    assert_eq!(sim.mutate(1_001, None, Published, at(8)), Err(CannotMutate::Item));
    assert_eq!(sim.mutate(990, Some(kind), Published, at(8)), Err(CannotMutate::Kind));
    assert_eq!(sim.mutate_profile("nobody", Published, at(8)), Err(CannotMutate::Profile));
}

#[test]
fn pages_do_what_the_methods_do() {
    let sim = sim(1_000, "head = { behind = 100, every_ms = 4000000000 }");
    let page = |target: &str| json(ask(&sim, target, at(1)));
    let changed = page("/_sim/mutate?id=900&kind=delete");
    assert_eq!(changed["body"], json(item(&sim, 900, at(1))));
    assert_eq!(changed["body"]["deleted"], true);
    assert_eq!(page("/_sim/grow?by=30"), serde_json::json!({"maxitem": 930}));
    assert_eq!(good(ask(&sim, "/v0/maxitem.json", at(1))), "930");
    assert_eq!(page("/_sim/grow?by=500"), serde_json::json!({"maxitem": 1_000}));
    let burst = page("/_sim/burst?count=40");
    assert_eq!(burst["ids"].as_array().unwrap().len(), 40);
    let mut named: Vec<u64> =
        page("/v0/updates.json")["items"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    named.sort_unstable();
    assert_eq!(named, (961..=1_000).collect::<Vec<_>>());
    for wrong in
        ["mutate", "mutate?id=5&kind=x", "mutate?id=2000", "grow?by=x", "stream?do=x", "stream", "profile?name="]
    {
        let reply = ask(&sim, &format!("/_sim/{wrong}"), at(1));
        assert_eq!(reply.status(), Some(StatusCode::BAD_REQUEST), "{wrong}");
    }
    page("/_sim/down?for_ms=10");
    assert_eq!(ask(&sim, "/v0/maxitem.json", at(10)), Reply::Reset);
    assert_eq!(good(ask(&sim, "/v0/maxitem.json", at(11))), "1000");
    assert_eq!(page("/_sim/stats")["refused_while_down"], 1);
}

#[test]
fn mutations_strike_only_what_is_out_and_in_the_window() {
    let sim =
        sim(1_000, "head = { behind = 500, every_ms = 4000000000 }\nmutations = { every_ms = 10, window_ids = 50 }");
    let changed = |time| (1..=1_000).filter(|id| sim.item_at(*id, time) != sim.world().item(*id)).collect::<Vec<_>>();
    assert!(changed(at(20_000)).iter().all(|id| (451..=500).contains(id)), "{:?}", changed(at(20_000)));
    sim.grow(500, at(20_000));
    assert!(changed(at(40_000)).iter().any(|id| (951..=1_000).contains(id)));
}

#[test]
fn items_are_as_young_as_the_clock_says() {
    let sim = sim(1_000, "head.behind = 10\nclock = { now = 1700000000, seconds_per_id = 3 }");
    let time = |id| json(Reply::Full(Message::json(sim.world().item(id).unwrap())))["time"].as_i64();
    assert_eq!([980, 990, 1_000].map(time), [Some(1_699_999_970), Some(1_700_000_000), Some(1_700_000_030)]);
}

#[test]
fn a_known_body_is_not_sent_again() {
    let sim = sim(1_000, "");
    let ask = |tag| {
        let request = SimRequest { tag, ..SimRequest::get("/v0/item/7.json") };
        let Reply::Full(message) = sim.answer(&request, at(1)).reply else { panic!() };
        message
    };
    assert_eq!(ask(IfNoneMatch::Unasked).headers.etag, None);
    let tag = ask(IfNoneMatch::Wished).headers.etag.unwrap();
    let again = ask(IfNoneMatch::Shown(tag.as_str()));
    assert_eq!((again.status, again.body.len(), again.headers.etag), (StatusCode::NOT_MODIFIED, 0, Some(tag)));
    assert_eq!(sim.stats().report().not_modified, 1);
    let body = sim.mutate(7, None, Unpublished, at(1)).unwrap();
    let changed = ask(IfNoneMatch::Shown(tag.as_str()));
    assert_eq!((changed.status, changed.body), (StatusCode::OK, body));
    assert_ne!(changed.headers.etag, Some(tag));
}

#[test]
fn tags_can_be_turned_off() {
    let sim = sim(1_000, "body.etag = false");
    let request = SimRequest { tag: IfNoneMatch::Wished, ..SimRequest::get("/v0/item/7.json") };
    let Reply::Full(message) = sim.answer(&request, at(1)).reply else { panic!() };
    assert_eq!(message.headers.etag, None);
}
