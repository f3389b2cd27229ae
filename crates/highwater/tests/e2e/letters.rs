//! Items that never answer: named, held or passed by, and put back to work.

use serde_json::Value as Json;

use crate::support::{Home, Sim, assert_mirrors};

/// One of each kind of refusal, amid faults that heal. Segments of 500 begin at 1, 501, 1001, …
const PLAN: &str = r#"
heal_after = 2
[rates]
500 = 0.01
401 = 0.005
html = 0.005
cut-json = 0.005
reset = 0.005
[[script]]
id = 700
then = "500"
[[script]]
id = 701
then = "404"
[[script]]
id = 1200
then = "wrong-id"
[[script]]
id = 1201
then = "oversized"
[[script]]
id = 1202
then = "html"
"#;
const DEAD: [i64; 5] = [700, 701, 1200, 1201, 1202];
const ITEMS: u32 = 2500;

fn limits(policy: &str) -> String {
    format!("rate = \"unlimited\"\nattempts = 3\nsegment = 500\ndead_letters = \"{policy}\"")
}

fn listed(home: &Home) -> Vec<(i64, String)> {
    let list = home.run(&["dead-letters", "list", "hn", "--json"]).exits(0).json();
    let letter = |letter: &Json| {
        (letter["key"].as_str().unwrap().parse().unwrap(), letter["reason"].as_str().unwrap().to_owned())
    };
    list["dead_letters"].as_array().unwrap().iter().map(letter).collect()
}

#[test]
fn dead_letters_hold_the_frontier_until_they_are_replayed() {
    let sim = Sim::planned(ITEMS, PLAN);
    let home = Home::new(&sim.url(), &limits("hold"));
    let done = home.run(&["sync", "hn"]).exits(3);
    assert!(done.out.contains("5 dead letters"), "{}", done.out);
    assert_eq!(assert_mirrors(&home.database(), &sim, 1, i64::from(ITEMS)).unreachable, DEAD);
    let status = home.status();
    assert_eq!((status["frontier"].as_i64(), status["complete"].as_bool()), (Some(501), Some(false)));
    assert_eq!((status["target"].as_i64(), status["dead_letters"].as_u64()), (Some(2501), Some(5)));
    let reasons = ["server", "not_found", "wrong_identity", "too_large", "malformed"];
    let mut expected: Vec<_> = DEAD.into_iter().zip(reasons.map(str::to_owned)).collect();
    let mut letters = listed(&home);
    letters.sort();
    expected.sort();
    assert_eq!(letters, expected);
    home.run(&["verify", "hn"]).exits(3);

    let shown = home.run(&["dead-letters", "show", "hn", "700", "--json"]).exits(0).json();
    assert_eq!((shown["state"].as_str(), shown["attempts"].as_u64()), (Some("dead_letter"), Some(3)));
    assert!(shown["last_error"].as_str().unwrap().contains("500"), "{shown}");
    home.run(&["dead-letters", "show", "hn", "699"]).exits(1).complains(&["699", "hint: "]);

    let healthy = Sim::start(ITEMS, "none");
    home.configure(&healthy.url(), &limits("hold"));
    home.run(&["dead-letters", "replay", "hn", "702"]).exits(1).complains(&["no dead letter for 702", "hint: "]);
    home.run(&["dead-letters", "replay", "hn", "701", "--now"]).exits(3);
    assert_eq!(listed(&home).iter().map(|(key, _)| *key).collect::<Vec<_>>(), [700, 1200, 1201, 1202]);
    home.run(&["dead-letters", "replay", "hn"]).exits(0);
    assert_eq!(home.status()["retrying"], 4);
    let before = healthy.item_requests();
    home.run(&["sync", "hn"]).exits(0);
    assert_eq!(healthy.item_requests() - before, 4, "only what was replayed is fetched");
    assert_mirrors(&home.database(), &healthy, 1, i64::from(ITEMS));
    home.run(&["verify", "hn"]).exits(0);
}

#[test]
fn dead_letters_may_be_passed_by_and_still_count() {
    let sim = Sim::planned(ITEMS, PLAN);
    let home = Home::new(&sim.url(), &limits("pass"));
    home.run(&["sync", "hn"]).exits(3);
    assert_eq!(assert_mirrors(&home.database(), &sim, 1, i64::from(ITEMS)).unreachable, DEAD);
    let status = home.status();
    assert_eq!((status["frontier"].as_i64(), status["complete"].as_bool()), (Some(2501), Some(false)));
    assert_eq!(status["dead_letters"], 5);
    home.run(&["verify", "hn"]).exits(3);

    let healthy = Sim::start(ITEMS, "none");
    home.configure(&healthy.url(), &limits("pass"));
    home.run(&["dead-letters", "replay", "hn", "700"]).exits(0);
    let proof = home.run(&["verify", "hn", "--json"]).exits(3).json()["streams"][0].clone();
    assert_eq!((&proof["book_errors"], &proof["unexplained"]), (&Json::Array(Vec::new()), &0.into()), "{proof}");
    assert_eq!((&proof["reopened"], &proof["complete"]), (&1.into(), &false.into()));
    home.run(&["dead-letters", "replay", "hn", "--now"]).exits(0);
    assert_eq!((home.status()["complete"].as_bool(), listed(&home).len()), (Some(true), 0));
    home.run(&["verify", "hn"]).exits(0);
}

#[test]
fn a_replay_at_once_fetches_what_was_replayed_and_nothing_else() {
    const BEGUN: u32 = 1000;
    let sim = Sim::planned(ITEMS, PLAN);
    let home = Home::new(&sim.url(), &limits("pass"));
    home.run(&["sync", "hn", "--to", &BEGUN.to_string()]).exits(3);
    assert_eq!(listed(&home).len(), 2);

    let healthy = Sim::start(ITEMS, "none");
    home.configure(&healthy.url(), &limits("pass"));
    let replayed = home.run(&["dead-letters", "replay", "hn", "--now", "--json"]).exits(0).json();
    let stream = &replayed["streams"][0];
    assert_eq!((&replayed["replayed"], &stream["run"]["stored"]), (&2.into(), &2.into()), "{replayed}");
    assert_eq!((healthy.item_requests(), stream["target"].as_u64()), (2, Some(u64::from(BEGUN) + 1)), "{replayed}");
    home.run(&["sync", "hn"]).exits(0);
    assert_mirrors(&home.database(), &healthy, 1, i64::from(ITEMS));
}
