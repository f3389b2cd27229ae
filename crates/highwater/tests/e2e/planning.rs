//! All of Hacker News and more, planned at once.

use crate::support::{Home, Reply, Server, Signal, item};

const IDS: i64 = 50_000_000;

/// Segments are planned in pieces: the memory does not grow with the range.
#[test]
fn fifty_million_ids_are_planned_in_little_memory() {
    let server = Server::start(|asked, _| Some(Reply::ok(asked.map_or_else(|| IDS.to_string(), item))));
    let home = Home::new(&server.url(), "rate = 50");
    let sync = home.start(&["sync", "hn"]);
    server.wait_for_items(20);
    let planned: i64 = home.database().one("SELECT sum(end_pos - start_pos) FROM ingest_segments");
    let peak = sync.peak_memory().unwrap();
    println!("{peak} bytes for {planned} ids");
    assert_eq!(planned, IDS);
    assert!(peak < 100 << 20, "{peak} bytes");
    sync.signal(Signal::Terminate);
    sync.wait().exits(143);
    home.database().checked_frontier();
}
