//! A process that dies while the remote asks for silence: whoever comes next keeps the silence.

use std::time::Duration;

use crate::support::{Home, Reply, Running, Schema, Server, Tables, item, until};

const ITEMS: usize = 400;
const CLOSED: &str = "SELECT count(*) FROM ingest_accounts WHERE gate_until IS NOT NULL";

fn remote() -> Server {
    Server::start(|asked, before| match before {
        100 => Some(Reply { headers: "Retry-After: 5\r\n", ..Reply::status(429) }),
        _ => Some(Reply::ok(asked.map_or_else(|| ITEMS.to_string(), item))),
    })
}

/// `is_noted` tells whether the store knows that the gate is closed.
fn killed_behind_a_closed_gate(server: &Server, home: &Home, is_noted: impl Fn() -> bool) {
    let first = start(home);
    let patience = Duration::from_secs(30);
    let refused = until("a refusal", patience, || server.hits().into_iter().find(|hit| hit.status == 429));
    until("the store to know", patience, || is_noted().then_some(()));
    first.kill();
    let before = server.hits().len();
    start(home).wait().exits(0);
    assert_eq!(home.status()["stored"], ITEMS);
    let over = refused.answered.unwrap() + Duration::from_secs(5);
    let early = server.hits()[before..].iter().filter(|hit| hit.arrived < over).count();
    assert_eq!(early, 0, "the second process asked before the time that the first was given");
}

/// With leases that do not outlast the gate.
fn start(home: &Home) -> Running {
    let mut command = home.command(&["sync", "hn"]);
    command.env("HIGHWATER_LEASE_TTL", "2s");
    home.launch(command)
}

#[test]
fn a_gate_outlives_the_process_that_met_it_in_sqlite() {
    let server = remote();
    let home = Home::new(&server.url(), "rate = 500\nin_flight = 8");
    killed_behind_a_closed_gate(&server, &home, || home.database().number(CLOSED) > 0);
}

#[test]
fn a_gate_outlives_the_process_that_met_it_in_postgres() {
    let (schema, server) = (Schema::new(), remote());
    let home = Home::with_store(&schema.url(), &server.url(), "rate = 500\nin_flight = 8");
    let session = schema.session();
    killed_behind_a_closed_gate(&server, &home, || session.number(CLOSED) > 0);
}

#[test]
fn a_gate_that_closes_just_before_the_end_holds_for_a_sync_and_a_verification() {
    let server = Server::start(|asked, before| match before {
        20 => Some(Reply { headers: "Retry-After: 600\r\n", ..Reply::status(429) }),
        _ => Some(Reply::ok(asked.map_or_else(|| ITEMS.to_string(), item))),
    });
    let home = Home::new(&server.url(), "rate = 500\nin_flight = 1\nretry_patience = \"2s\"");
    home.run(&["sync", "hn"]).exits(3);
    let before = server.hits().len();
    home.run(&["sync", "hn"]).exits(3);
    home.run(&["verify", "hn"]).exits(1).complains(&["left alone for longer than retry_patience"]);
    assert_eq!(server.hits().len(), before, "somebody asked although the remote wants to be left alone");
}
