//! Several services on one PostgreSQL: one listens, and when it dies another does, and knows what was missed.

use super::{OPEN_WINDOWS, PATIENCE, caught_up, ends_equal, hears, limits, plan, same};
use crate::support::{Home, Publish, Schema, Service, Sim, Tables};

fn start(home: &Home) -> Service {
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("HIGHWATER_LEASE_TTL", "6s");
    Service::launch(home, command)
}

#[test]
fn the_death_of_the_listener_is_a_window_like_any_other() {
    let schema = Schema::new();
    let sim = Sim::planned(500, &plan(""));
    let settings = limits("rate = \"unlimited\"", "");
    let homes = [(); 2].map(|()| Home::with_store(&schema.url(), &sim.url(), &settings));
    let mut first = start(&homes[0]);
    first.wait_to_listen();
    let mut second = start(&homes[1]);
    let session = schema.session();
    caught_up(&mut first, 500);
    second.wait_for("readiness of who stands by", PATIENCE, |service| service.ask("/readyz", &service.host()).0 == 200);
    assert_eq!(second.metric("realtime_listener_connected"), None, "one listens, the other stands by");
    hears(&mut first, &session, &sim, 100);
    second.wait_for("the cursor", PATIENCE, |_| {
        session.number("SELECT count(*) FROM ingest_streams WHERE stream = 'items' AND live_cursor IS NOT NULL") == 1
    });
    first.kill();
    let (id, missed) = sim.edit(200, Publish::No);
    second.wait_to_listen();
    second.wait_for("what was missed", PATIENCE, |_| same(&session, id, &missed));
    second.wait_for("the window to close", PATIENCE, |_| session.number(OPEN_WINDOWS) == 0);
    hears(&mut second, &session, &sim, 300);
    ends_equal(&mut second, &session, &sim, 500);
    assert_eq!(session.number("SELECT count(*) FROM ingest_blind_windows"), 1);
}
