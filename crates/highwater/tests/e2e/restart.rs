//! A restart amid a great deal of unfinished work.

use std::time::Duration;

use crate::support::{Database, Home, Reply, Server, Signal, item};

/// Tables of 60,000 segments and 10,000 exceptions do not keep a restarted run from its first request.
#[test]
fn a_restart_finds_its_work_among_many_segments_and_exceptions() {
    let server = Server::start(|asked, _| Some(Reply::ok(asked.map_or_else(|| "60000".to_owned(), item))));
    let home = Home::new(&server.url(), "rate = 50\nsegment = 1");
    let first = home.start(&["sync", "hn"]);
    server.wait_for_items(5);
    first.kill();
    let path = home.path("highwater.db");
    let waiting = "UPDATE ingest_segments SET status = 'retry_wait', lease_owner = NULL, next_retry_at = 4102444800000
        WHERE start_pos > 50000";
    assert_eq!(Database::meddle(&path, waiting), 10_000);
    let exceptions = "INSERT INTO ingest_exceptions
        (source, stream, item_key, item_number, segment_id, state, attempts, absences, first_seen_at, last_tried_at,
            next_retry_at, reason)
        SELECT source, stream, CAST(start_pos AS TEXT), start_pos, segment_id, 'retry_wait', 1, 0, 0, 0,
            4102444800000, 'server'
        FROM ingest_segments WHERE status = 'retry_wait'";
    assert_eq!(Database::meddle(&path, exceptions), 10_000);
    let stored: i64 = home.database().one("SELECT count(*) FROM hn_items");

    let before = server.items_asked();
    let second = home.start(&["sync", "hn"]);
    server.wait_for_items(before + 20);
    second.signal(Signal::Terminate);
    second.wait_within(Duration::from_secs(5)).exits(143);
    let after: i64 = home.database().one("SELECT count(*) FROM hn_items");
    assert!(after >= stored + 20, "{stored} then {after}");
    assert_eq!(home.status()["retrying"], 10_000);
    home.database().checked_frontier();
}
