//! A mirror from nothing to proven.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::support::{FAST, Home, Sim, Tables, assert_mirrors};

#[test]
fn a_calm_remote_is_mirrored_proven_and_then_asked_only_for_its_head() {
    let sim = Sim::start(CALM_ITEMS, "calm");
    let home = Home::new(&sim.url(), FAST);
    prove_calm(&home, || home.database(), &sim);
}

/// Items of a calm remote.
pub(crate) const CALM_ITEMS: u32 = 3500;

/// On any store: mirrored, told, proven, and asked for no more than its head afterwards.
pub(crate) fn prove_calm<T: Tables>(home: &Home, tables: impl Fn() -> T, sim: &Sim) {
    home.run(&["sync", "hn"]).exits(0);
    let truth = assert_mirrors(&tables(), sim, 1, i64::from(CALM_ITEMS));
    assert!(truth.missing > 0, "the plan has ids that are never there");

    let status = home.run(&["status", "--json"]).exits(0).json();
    let stream = json!({
        "name": "items", "axis": "id", "origin": 1, "frontier": 3501, "target": 3501,
        "stored": truth.stored, "missing": truth.missing, "excluded": 0, "retrying": 0, "dead_letters": 0,
        "complete": true,
        "segments": { "pending": 0, "in_progress": 0, "retry_wait": 0, "sealed": 4, "dead_letter": 0 },
    });
    assert_eq!(status, json!({ "sources": [{ "name": "hn", "kind": "hn", "alerts": [], "streams": [stream] }] }));

    let before = sim.requests();
    home.run(&["sync", "hn"]).exits(0);
    assert_eq!(sim.requests() - before, 1, "a complete mirror asks only for the head");

    let proof = home.run(&["verify", "hn", "--json"]).exits(0).json();
    let proven = &proof["streams"][0];
    let count = |name: &str| proven[name].as_u64().unwrap();
    assert_eq!([count("checked"), count("stored"), count("missing")], [3500, truth.stored, truth.missing]);
    for name in ["excluded", "dead_letters", "differs", "unexplained"] {
        assert_eq!(count(name), 0, "{name}");
    }
    assert_eq!((&proven["complete"], &proven["examples"]), (&Json::Bool(true), &json!([])));
    home.run(&["verify", "--store"]).exits(0);
    home.run(&["ledger", "hn", "--verify"]).exits(0);
}

#[test]
fn leases_are_renewed_while_more_is_claimed() {
    let sim = Sim::start(10_000, "none");
    // Renewals come four times in a stall timeout; small segments keep the claims coming.
    let home = Home::new(&sim.url(), "rate = \"unlimited\"\nsegment = 20\nstall_timeout = \"1s\"");
    home.start(&["sync", "hn"]).wait_within(Duration::from_secs(60)).exits(0);
    assert_mirrors(&home.database(), &sim, 1, 10_000);
}

#[test]
fn a_chaotic_remote_is_mirrored_but_for_what_never_answers() {
    let sim = Sim::start(2000, "chaos");
    let home = Home::new(&sim.url(), "rate = 1000\nrate_max = 4000\nattempts = 5");
    home.run(&["sync", "hn"]).exits(3);
    let target = home.status()["target"].as_i64().unwrap();
    assert!(target > 1800, "{target}");
    let truth = assert_mirrors(&home.database(), &sim, 1, target - 1);
    let letters = "SELECT item_number FROM ingest_exceptions WHERE state = 'dead_letter' ORDER BY item_number";
    assert_eq!(home.database().all::<i64>(letters), truth.unreachable);
    assert_eq!(sim.stats()["retry_after_violations"], 0);
}

#[test]
fn a_stormy_remote_is_mirrored_whole() {
    let sim = Sim::start(3000, "storm");
    let home = Home::new(&sim.url(), "rate = 1000\nrate_max = 4000");
    home.run(&["sync", "hn"]).exits(0);
    let truth = assert_mirrors(&home.database(), &sim, 1, 3000);
    assert_eq!(truth.unreachable, [0; 0]);
    assert_eq!(sim.stats()["retry_after_violations"], 0, "nothing is sent while the remote asks for silence");
}
