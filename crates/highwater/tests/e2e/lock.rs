//! One process writes; everybody may read meanwhile.

use std::time::Duration;

use crate::support::{Home, Sim, assert_mirrors, until};

#[test]
fn a_second_sync_is_refused_at_once_while_readers_are_welcome() {
    let sim = Sim::planned(2000, "[latency]\nfixed_ms = 10\n");
    let home = Home::new(&sim.url(), "rate = 300\nsegment = 100");
    let mut running = home.start(&["sync", "hn"]);
    until("the first items", Duration::from_secs(30), || (sim.item_requests() >= 300).then_some(()));

    let pid = running.id().to_string();
    home.run(&["sync", "hn"]).exits(1).complains(&[&format!("process {pid}"), "hint: "]);
    home.run(&["dead-letters", "replay", "hn"]).exits(1).complains(&[&pid]);

    let status = home.status();
    assert_eq!((status["complete"].as_bool(), status["target"].as_i64()), (Some(false), Some(2001)));
    home.run(&["ledger", "hn"]).exits(0);
    home.run(&["ledger", "hn", "--verify"]).exits(0);
    home.run(&["dead-letters", "list"]).exits(0);
    let proof = home.run(&["verify", "hn", "--sample", "50", "--json"]).exits(3).json();
    let stream = &proof["streams"][0];
    assert_eq!((&stream["unexplained"], &stream["differs"]), (&0.into(), &0.into()), "{stream}");
    let stored: i64 = home.database().one("SELECT count(*) FROM hn_items");
    assert!(stored > 0);
    assert!(!running.has_ended(), "the readers came too late to meet the writer");

    running.wait().exits(0);
    assert_mirrors(&home.database(), &sim, 1, 2000);
}
