//! More news at once than anybody can fetch: nothing is dropped, and the memory does not grow with it.

use std::time::Duration;

use super::{caught_up, home, limits, plan};
use crate::support::{Service, Sim, Tables, assert_mirrors};

const ITEMS: u32 = 55_000;
const BURST: u32 = 50_000;

#[test]
fn a_burst_is_worked_off_within_bounds() {
    let sim = Sim::planned(ITEMS, &plan("[latency]\nfixed_ms = 10"));
    let home = home(&sim, &limits("rate = \"unlimited\"\nin_flight = 128", ""));
    let mut service = Service::start(&home);
    let database = home.database_when_there();
    caught_up(&mut service, i64::from(ITEMS));
    let before = service.metric("realtime_items_updated_total").unwrap();
    let ids = sim.act(&format!("burst?count={BURST}"))["ids"].as_array().unwrap().len();
    assert_eq!(ids, BURST as usize);
    let mut depth = 0.0;
    service.wait_for("the burst", Duration::from_secs(120), |service| {
        depth = service.metric("realtime_queue_depth").unwrap().max(depth);
        service.metric("realtime_items_updated_total").unwrap() >= before + f64::from(BURST)
    });
    assert!(depth <= 4096.0, "{depth} in the queue");
    let peak = service.peak_memory().unwrap();
    println!("at most {depth} in the queue, {peak} bytes at most");
    assert!(peak < 160 << 20, "{peak} bytes");
    service.wait_for("the rest of the queue", Duration::from_secs(30), |service| {
        service.metric("realtime_queue_depth") == Some(0.0)
    });
    assert_mirrors(&database, &sim, 1, i64::from(ITEMS));
    assert_eq!(database.number("SELECT count(*) FROM ingest_exceptions"), 0);
}
