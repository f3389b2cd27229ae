//! `kill -9` while a mailbox is fetched: nothing is lost, and little is fetched twice.

use std::time::Duration;

use super::{desk::Desk, mirror::assert_mail};
use crate::support::{Deadline, Sim, until};

const MESSAGES: u32 = 1_500;
const KILLS: u64 = 6;
/// Work that a crash undoes is what is in flight or not yet written: some tens of messages at this rate.
const LIMITS: &str = "[sources.mail.limits]\nrate = 4000\nin_flight = 8\n";

#[test]
fn kills_in_mid_backfill_lose_nothing_and_refetch_little() {
    let plan = "[size]\nsize_kb = 2\n[latency]\nfixed_ms = 10\n[mutations]\narrive_every_ms = 500\nlabel_every_ms = 300\n\
        stop_after_ms = 20000";
    let sim = Sim::gmail_planned(MESSAGES, plan);
    let changes = Deadline::after(Duration::from_secs(21));
    let desk = Desk::new(sim, LIMITS);
    for kill in 1..=KILLS {
        let mut running = desk.start();
        let enough = u64::from(MESSAGES) * kill / (KILLS + 2);
        until("messages", Duration::from_secs(60), || (desk.gets() >= enough || running.has_ended()).then_some(()));
        assert!(!running.has_ended(), "the kill came too late: {}", running.err());
        running.kill();
    }
    let again = desk.sim.stats()["messages_got_again"].as_u64().unwrap();
    until("the mailbox at rest", Duration::from_secs(120), || {
        desk.sync().exits(0);
        changes.has_passed().then_some(())
    });
    desk.sync().exits(0);
    assert_mail(&desk.database(), &desk.sim, &[]);
    println!("{again} of {MESSAGES} messages were fetched again after {KILLS} kills");
    assert!(again * 10 < u64::from(MESSAGES), "{again} of {MESSAGES} messages were fetched again");
    desk.home.run(&["ledger", "mail", "--verify"]).exits(0);
    desk.home.run(&["verify", "--store"]).exits(0);
}

/// All that may be undone is a share of the mailbox, however many requests may be under way.
#[test]
fn a_kill_repeats_less_than_a_tenth_of_a_small_mailbox() {
    const SMALL: u32 = 400;
    let unlimited = |in_flight: u32| format!("rate = \"unlimited\"\nin_flight = {in_flight}");
    let runs: [(String, &[u64]); 3] =
        [(unlimited(16), &[100, 300]), (unlimited(64), &[100, 300]), ("rate = 2000\nin_flight = 64".into(), &[200])];
    for (limits, kills) in runs {
        for &enough in kills {
            let sim = Sim::gmail_planned(SMALL, "[size]\nsize_kb = 2\n[latency]\nfixed_ms = 50\n");
            let desk = Desk::new(sim, &format!("[sources.mail.limits]\n{limits}\n"));
            let mut running = desk.start();
            until("messages", Duration::from_secs(60), || (desk.gets() >= enough || running.has_ended()).then_some(()));
            assert!(!running.has_ended(), "the kill came too late: {}", running.err());
            running.kill();
            desk.sync().exits(0);
            assert_mail(&desk.database(), &desk.sim, &[]);
            let again = desk.sim.stats()["messages_got_again"].as_u64().unwrap();
            println!("{again} of {SMALL} messages were fetched again: {limits:?}, killed after {enough}");
            assert!(again * 10 < u64::from(SMALL), "{again} of {SMALL}: {limits:?}, killed after {enough}");
        }
    }
}
