//! SIGTERM and SIGINT end a run in order; a second one ends it at once.

use std::time::Duration;

use crate::support::{FAST, Home, Reply, Server, Signal, Sim, assert_mirrors, item, until};

/// A stop must be over by then.
const STOP_MAX: Duration = Duration::from_secs(5);

#[test]
fn a_signal_commits_what_is_in_hand_and_the_next_sync_goes_on() {
    let sim = Sim::planned(3000, "[latency]\nfixed_ms = 20\n");
    let home = Home::new(&sim.url(), "rate = 800");
    for (signal, code, enough) in [(Signal::Terminate, 143, 400), (Signal::Interrupt, 130, 1200)] {
        let running = home.start(&["sync", "hn"]);
        until("some requests", Duration::from_secs(30), || (sim.item_requests() >= enough).then_some(()));
        running.signal(signal);
        let done = running.wait_within(STOP_MAX).exits(code).complains(&["hn: stopping: committing what is in hand"]);
        assert!(done.out.contains("run the same command again"), "{}", done.out);
        let outcome: String = home.database().one("SELECT outcome FROM ingest_runs ORDER BY started_at DESC LIMIT 1");
        assert_eq!(outcome, "stopped");
        let stored: u32 = home.database().one("SELECT count(*) FROM hn_items");
        assert_eq!(u64::from(stored), sim.item_requests(), "what was fetched is stored, to the last item");
        home.database().checked_frontier();
    }
    home.run(&["sync", "hn"]).exits(0);
    assert_mirrors(&home.database(), &sim, 1, 3000);
    assert_eq!(sim.item_requests(), 3000, "nothing was fetched twice");
}

#[test]
fn a_second_signal_ends_the_run_at_once() {
    // Items that never answer keep a stopping run waiting for as long as it is willing to.
    let server = Server::start(|item, _| if item.is_some() { None } else { Some(Reply::ok("500")) });
    let home = Home::new(&server.url(), FAST);
    let running = home.start(&["sync", "hn"]);
    server.wait_for_items(8);
    running.signal(Signal::Terminate);
    until("the first signal to be heard", STOP_MAX, || running.err().contains("stopping").then_some(()));
    running.signal(Signal::Terminate);
    running.wait_within(STOP_MAX).exits(143);
    let outcome: String = home.database().one("SELECT outcome FROM ingest_runs");
    assert_eq!(outcome, "running", "there was no time to record an end");
}

#[test]
fn a_signal_ends_the_wait_for_a_remote_that_is_not_there() {
    let server = Server::start(|asked, _| asked.map_or(Some(Reply::status(500)), |id| Some(Reply::ok(item(id)))));
    let home = Home::new(&server.url(), FAST);
    let running = home.start(&["sync", "hn"]);
    until("a request", STOP_MAX, || (!server.hits().is_empty()).then_some(()));
    running.signal(Signal::Interrupt);
    running.wait_within(STOP_MAX).exits(130);
}
