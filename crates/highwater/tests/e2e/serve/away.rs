//! A database server that is not there when the service starts.

use highwater_pg_server::{Durability, Server, Stop};

use super::{PATIENCE, caught_up, limits, plan};
use crate::support::{Home, Schema, Service, Signal, Sim, until};

#[test]
fn a_server_that_is_away_at_the_start_is_waited_for_and_a_stop_ends_the_wait() {
    let server = Server::start(Durability::Off).unwrap();
    let (schema, sim) = (Schema::on(&server.url()), Sim::planned(100, &plan("")));
    let home = Home::with_store(&schema.url(), &sim.url(), &limits("rate = \"unlimited\"", ""));
    server.stop(Stop::Fast).unwrap();
    home.run(&["sync", "hn"]).exits(2).complains(&["refused", "hint: "]);
    let start = || home.start(&["serve", "--listen", "127.0.0.1:0"]);

    let waiting = start();
    until("the word of it", PATIENCE, || waiting.err().contains("waiting for it").then_some(()));
    waiting.signal(Signal::Terminate);
    waiting.wait_within(PATIENCE).exits(143);

    let waiting = start();
    until("the word of it", PATIENCE, || waiting.err().contains("waiting for it").then_some(()));
    server.resume().unwrap();
    let mut service = Service::of(waiting);
    caught_up(&mut service, 100);
    assert_eq!(service.err().matches("waiting for it").count(), 1);
    service.stop().exits(143);
}
