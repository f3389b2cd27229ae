//! Every way in which a feed can fail: the window is a row until everything that may have changed in it is made good.

use super::{CLOSED_WINDOWS, OPEN_WINDOWS, PATIENCE, caught_up, ends_equal, hears, home, limits, plan, same};
use crate::support::{Database, Home, Publish, Service, Sim, Tables};

const ITEMS: i64 = 500;
const LIMITS: &str = "rate = \"unlimited\"";

fn serving(more: &str) -> (Sim, Home, Service, Database) {
    let sim = Sim::planned(ITEMS as u32, &plan(more));
    let home = home(&sim, &limits(LIMITS, ""));
    let mut service = Service::start(&home);
    let database = home.database_when_there();
    caught_up(&mut service, ITEMS);
    (sim, home, service, database)
}

/// Told to nobody: the list that the feed shows is written anew before anybody listens again.
fn change_unheard(sim: &Sim, id: i64) -> (i64, serde_json::Value) {
    let changed = sim.edit(id, Publish::No);
    sim.edit(id + 50, Publish::Yes);
    changed
}

fn makes_good(sim: &Sim, service: &mut Service, database: &Database, lose: impl Fn(), regain: impl Fn()) {
    for id in [40, 250, 400] {
        let closed = database.number(CLOSED_WINDOWS);
        lose();
        service.wait_for("a window", PATIENCE, |_| {
            database.number(OPEN_WINDOWS) > 0 || database.number(CLOSED_WINDOWS) > closed
        });
        let (id, truth) = change_unheard(sim, id);
        regain();
        service.wait_for("what was missed", PATIENCE, |_| same(database, id, &truth));
        service.wait_for("the window to close", PATIENCE, |_| {
            database.number(OPEN_WINDOWS) == 0 && database.number(CLOSED_WINDOWS) > closed
        });
    }
    ends_equal(service, database, sim, ITEMS);
    let opened = "SELECT count(*) FROM ledger WHERE event_type = 'BLIND_WINDOW_OPENED'";
    let closed = "SELECT count(*) FROM ledger WHERE event_type = 'BLIND_WINDOW_CLOSED'";
    assert!(database.number(opened) >= 3);
    assert_eq!(database.number(opened), database.number(closed));
}

#[test]
fn a_feed_that_falls_silent_is_dead_and_what_it_kept_quiet_about_is_found() {
    let (sim, _home, mut service, database) = serving("");
    let silence = || drop(sim.act("stream?do=silence"));
    let restore = || drop(sim.act("stream?do=restore"));
    makes_good(&sim, &mut service, &database, silence, restore);
    assert!(service.metric("realtime_reconnects_total") >= Some(3.0));
}

#[test]
fn a_feed_that_breaks_is_connected_again_however_it_broke() {
    let (sim, _home, mut service, database) = serving("split = 7\nforms = [\"put-path\", \"patch\", \"put-index\"]");
    for order in ["drop", "cut", "cancel", "auth_revoked"] {
        let closed = database.number(CLOSED_WINDOWS);
        sim.act(&format!("stream?do={order}"));
        service.wait_for(order, PATIENCE, |_| {
            database.number(OPEN_WINDOWS) == 0 && database.number(CLOSED_WINDOWS) > closed
        });
        service.wait_to_listen();
        hears(&mut service, &database, &sim, 77);
    }
    ends_equal(&mut service, &database, &sim, ITEMS);
}

#[test]
fn a_feed_elsewhere_is_followed_there() {
    let (sim, _home, mut service, database) = serving("redirect = \"port\"\nstatus_first = [503, 401]");
    service.wait_to_listen();
    hears(&mut service, &database, &sim, 99);
    ends_equal(&mut service, &database, &sim, ITEMS);
}

#[test]
fn a_remote_that_is_down_buries_nothing() {
    let (sim, _home, mut service, database) = serving("");
    let closed = database.number(CLOSED_WINDOWS);
    sim.act("down?for_ms=6000");
    sim.act("stream?do=drop");
    service.wait_for("a window", PATIENCE, |_| database.number(OPEN_WINDOWS) > 0);
    let (id, truth) = change_unheard(&sim, 123);
    assert_eq!(service.ask("/healthz", &service.host()).0, 200, "a remote that is down is no fault of ours");
    service.wait_for("readiness to end", PATIENCE, |service| service.ask("/readyz", &service.host()).0 == 503);
    service.wait_for("what was missed", PATIENCE * 2, |_| same(&database, id, &truth));
    service.wait_for("the window to close", PATIENCE, |_| database.number(CLOSED_WINDOWS) > closed);
    ends_equal(&mut service, &database, &sim, ITEMS);
    assert_eq!(database.number("SELECT count(*) FROM ingest_exceptions"), 0);
}

#[test]
fn a_process_that_was_killed_has_been_blind_since_what_it_stored_last() {
    let (sim, home, mut service, database) = serving("");
    hears(&mut service, &database, &sim, 300);
    service.wait_for("the cursor", PATIENCE, |_| {
        database.number("SELECT count(*) FROM ingest_streams WHERE stream = 'items' AND live_cursor IS NOT NULL") == 1
    });
    service.kill();
    let (id, truth) = change_unheard(&sim, 301);
    let mut service = Service::start(&home);
    service.wait_for("what was missed", PATIENCE, |_| same(&database, id, &truth));
    ends_equal(&mut service, &database, &sim, ITEMS);
    assert_eq!(database.number(CLOSED_WINDOWS), 1);
    service.stop().exits(143);
    home.run(&["verify", "hn"]).exits(0);
    home.run(&["ledger", "hn", "--verify"]).exits(0);
}
