//! Four processes on one database, and one of them killed every second for a minute.

use std::time::Duration;

use crate::support::{Home, Running, Schema, Session, Sim, Tables, assert_mirrors, pause, until};

const ITEMS: u32 = 30_000;
const KILLS: usize = 60;
/// Fixed, so that the work outlasts the kills; small jobs, so that no process has all of it in hand.
const LIMITS: &str = "rate = 600\njob = 2\nsegment = 50";
const PLAN: &str = r#"
[latency]
fixed_ms = 20
[[script]]
share = 0.0005
replies = ["null"]
[[script]]
share = 0.0005
then = "null"
"#;

#[test]
fn four_processes_of_which_one_is_killed_every_second_finish_the_work_once() {
    let (schema, sim) = (Schema::new(), Sim::planned(ITEMS, PLAN));
    let home = Home::with_store(&schema.url(), &sim.url(), LIMITS);
    let session = schema.session();
    let mut crowd: Vec<_> = (0..4).map(|_| start(&home)).collect();
    until("the first requests", Duration::from_secs(30), || (sim.item_requests() > 0).then_some(()));
    let mut frontier = 0;
    for kill in 0..KILLS {
        pause(Duration::from_secs(1));
        let newcomer = start(&home);
        std::mem::replace(&mut crowd[kill % 4], newcomer).kill();
        let reached = session.checked_frontier();
        assert!(reached >= frontier, "the frontier went back from {frontier} to {reached}");
        frontier = reached;
    }
    let stored = session.number("SELECT count(*) FROM hn_items");
    println!("{stored} of {ITEMS} are stored after {KILLS} kills, the frontier stands at {frontier}");
    assert!(frontier > 1 && frontier <= i64::from(ITEMS), "the kills did not meet the work: {frontier}");
    for survivor in crowd {
        survivor.wait().exits(0);
    }
    let requests = sim.item_requests();
    let truth = assert_mirrors(&session, &sim, 1, i64::from(ITEMS));
    assert_books(&session, i64::from(ITEMS) + 1);
    println!("{requests} requests for {ITEMS} items, {} of them missing, {KILLS} kills", truth.missing);
    assert!(requests <= u64::from(ITEMS) * 110 / 100, "{requests} requests for {ITEMS} items");
    home.run(&["ledger", "hn", "--verify"]).exits(0);
    home.run(&["verify", "hn"]).exits(0);
}

/// With leases that end while the test still runs.
fn start(home: &Home) -> Running {
    let mut command = home.command(&["sync", "hn", "--quiet"]);
    command.env("HIGHWATER_LEASE_TTL", "3s");
    home.launch(command)
}

/// Nothing was done twice, and what was counted is what is there.
fn assert_books(session: &Session, end: i64) {
    let stream = session.cells("SELECT origin, frontier, target, stored FROM ingest_streams").remove(0);
    let stored = session.number("SELECT count(*) FROM hn_items");
    assert_eq!(stream, [1, end, end, stored]);
    let segments = session.number("SELECT count(*) FROM ingest_segments");
    let sealed = session.number("SELECT count(*) FROM ingest_segments WHERE status = 'sealed'");
    let counted = session.number("SELECT sum(stored_count)::bigint FROM ingest_segments");
    assert_eq!((sealed, counted), (segments, stored));
    let told = "SELECT count(*), count(DISTINCT entity_id) FROM ledger WHERE event_type = 'SEGMENT_SEALED'";
    assert_eq!(session.cells(told), [[segments, segments]], "each segment is sealed once");
    assert_eq!(session.number("SELECT count(*) FROM ingest_workers"), 0, "who leaves in order says so");
}
