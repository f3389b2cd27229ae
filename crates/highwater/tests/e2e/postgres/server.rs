//! A server that is restarted, connections that are cut, and somebody who reads for a long time.

use std::time::Duration;

use highwater_pg_server::{Durability, Server, Stop};

use crate::support::{Home, Schema, Sim, Tables, assert_mirrors, until};

const ITEMS: u32 = 6000;
const LIMITS: &str = "rate = 1000\nsegment = 100\njob = 10";

/// Calls `trouble` so often, at even distances through the work of a sync that must then end well.
fn sync_amid(home: &Home, sim: &Sim, times: u32, mut trouble: impl FnMut(u32)) {
    let mut running = home.start(&["sync", "hn"]);
    for time in 0..times {
        let enough = u64::from(ITEMS * (time + 1) / (times + 2));
        until("requests", Duration::from_secs(60), || (sim.item_requests() >= enough).then_some(()));
        assert!(!running.has_ended(), "the sync ended before its troubles: {}", running.err());
        trouble(time);
    }
    running.wait().exits(0);
}

#[test]
fn a_server_that_is_restarted_is_waited_for_and_nothing_is_lost() {
    // The middle of a crash is what is tested: commits must be on disk when they are answered.
    let server = Server::start(Durability::Full).unwrap();
    let (schema, sim) = (Schema::on(&server.url()), Sim::start(ITEMS, "none"));
    let home = Home::with_store(&schema.url(), &sim.url(), LIMITS);
    sync_amid(&home, &sim, 4, |time| {
        server.stop([Stop::Fast, Stop::Immediate][time as usize % 2]).unwrap();
        server.resume().unwrap();
    });
    let session = schema.session();
    assert_mirrors(&session, &sim, 1, i64::from(ITEMS));
    assert_eq!(session.checked_frontier(), i64::from(ITEMS) + 1);
    assert_eq!(session.number("SELECT stored FROM ingest_streams"), i64::from(ITEMS));
    let requests = sim.item_requests();
    println!("{requests} requests for {ITEMS} items, 4 restarts");
    assert!(requests <= u64::from(ITEMS) * 110 / 100, "{requests} requests for {ITEMS} items");
    home.run(&["verify", "hn"]).exits(0);
}

#[test]
fn connections_that_are_cut_again_and_again_cost_nothing_stored() {
    let (schema, sim) = (Schema::new(), Sim::start(ITEMS, "none"));
    let cut = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = '{}'",
        schema.name()
    );
    let url = schema.url_and(&format!("application_name={}", schema.name()));
    let home = Home::with_store(&url, &sim.url(), LIMITS);
    let session = schema.session();
    let mut cuts = 0;
    sync_amid(&home, &sim, 30, |_| cuts += session.number(&cut));
    assert!(cuts >= 30, "{cuts}");
    assert_mirrors(&session, &sim, 1, i64::from(ITEMS));
    assert_eq!(session.checked_frontier(), i64::from(ITEMS) + 1);
    assert_eq!(session.number("SELECT stored FROM ingest_streams"), i64::from(ITEMS));
    let requests = sim.item_requests();
    println!("{requests} requests for {ITEMS} items, {cuts} connections cut");
    assert!(requests <= u64::from(ITEMS) * 110 / 100, "{requests} requests for {ITEMS} items");
    home.run(&["verify", "hn"]).exits(0);
}

#[test]
fn who_reads_for_a_long_time_sees_one_moment_and_holds_nobody_up() {
    let (schema, sim) = (Schema::new(), Sim::start(ITEMS, "none"));
    let home = Home::with_store(&schema.url(), &sim.url(), LIMITS);
    let reader = schema.session();
    let count = "SELECT count(*) FROM hn_items";
    let mut seen = 0;
    sync_amid(&home, &sim, 1, |_| {
        reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
        seen = reader.number(count);
    });
    home.run(&["sync", "hn", "--force"]).exits(0);
    assert_eq!(reader.number(count), seen);
    reader.run("COMMIT");
    assert!(seen > 0 && seen < i64::from(ITEMS), "{seen}");
    assert_mirrors(&reader, &sim, 1, i64::from(ITEMS));
}
