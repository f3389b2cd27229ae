//! No room: the run says so and waits; it ends with the reason when no room comes, and goes on by itself when it does.

use std::{fs, path::Path, time::Duration};

use crate::support::{Disk, FAST, Home, Signal, Sim, assert_mirrors, program, until};

const ITEMS: u32 = 12_000;

#[test]
fn a_file_that_may_not_grow_ends_the_run_with_a_reason_and_costs_nothing_stored() {
    let sim = Sim::start(ITEMS, "none");
    let home = Home::new(&sim.url(), FAST);
    let mut command = home.shielded(Path::new("prlimit"), &["--fsize=3000000"]);
    command.arg(program()).args(["sync", "hn"]).env("HIGHWATER_STORE_PATIENCE", "2s");
    let running = home.launch(command);
    running.wait().exits(1).complains(&["the store cannot write", "error: the store failed", "hint: make room"]);
    let stored: u32 = home.database().one("SELECT count(*) FROM hn_items");
    assert!(stored > 0 && stored < ITEMS, "{stored}");
    home.database().checked_frontier();

    let before = sim.item_requests();
    home.run(&["sync", "hn"]).exits(0);
    assert_eq!(sim.item_requests() - before, u64::from(ITEMS - stored), "what was stored is not fetched again");
    assert_mirrors(&home.database(), &sim, 1, i64::from(ITEMS));
    home.run(&["verify", "--store"]).exits(0);
}

#[test]
fn a_service_without_room_ends_with_the_reason_it_met_first() {
    let sim = Sim::start(ITEMS, "none");
    let home = Home::new(&sim.url(), FAST);
    let mut command = home.shielded(Path::new("prlimit"), &["--fsize=3000000"]);
    command.arg(program()).args(["serve", "--listen", "127.0.0.1:0"]).env("HIGHWATER_STORE_PATIENCE", "2s");
    let done = home.launch(command).wait();
    let done = done.exits(1).complains(&["the store cannot write", "error: the store failed", "hint: make room"]);
    assert!(!done.err.contains("died"), "{}", done.err);
    let told = done.err.matches("the store cannot write").count();
    assert!(told <= 3, "told {told} times: {}", done.err);
}

#[test]
fn a_stop_while_nothing_can_be_written_is_still_a_stop() {
    let sim = Sim::start(ITEMS, "none");
    let home = Home::new(&sim.url(), FAST);
    for (signal, code) in [(Signal::Terminate, 143), (Signal::Interrupt, 130)] {
        let mut command = home.shielded(Path::new("prlimit"), &["--fsize=1500000"]);
        command.arg(program()).args(["sync", "hn"]);
        let running = home.launch(command);
        let patience = Duration::from_secs(30);
        until("a full disk", patience, || running.err().contains("the store cannot write").then_some(()));
        running.signal(signal);
        running.wait_within(Duration::from_secs(5)).exits(code);
    }
    home.run(&["sync", "hn"]).exits(0);
    assert_mirrors(&home.database(), &sim, 1, i64::from(ITEMS));
}

#[test]
fn a_full_disk_is_waited_for_until_there_is_room_again() {
    let sim = Sim::start(ITEMS, "none");
    let home = Home::new(&sim.url(), FAST);
    let Some(disk) = Disk::mount(home.path("disk")) else {
        println!("skipped: a tmpfs cannot be mounted here");
        return;
    };
    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![0; 62 << 20]).unwrap();
    let store = format!("sqlite:{}", disk.path().join("highwater.db").display());
    let running = home.start(&["sync", "hn", "--store", &store]);
    let patience = Duration::from_secs(30);
    until("a full disk", patience, || running.err().contains("the store cannot write").then_some(()));
    fs::remove_file(&ballast).unwrap();
    running.wait().exits(0);
    assert_eq!(sim.item_requests(), u64::from(ITEMS), "what was in hand is kept while the disk is full");
    home.run(&["verify", "hn", "--store", &store]).exits(0);
}
