//! `kill -9`, over and over: nothing that was committed is lost, and little is fetched twice.

use std::{
    env,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use crate::support::{Deadline, Home, Running, Sim, assert_mirrors, pause};

const ITEMS: u32 = 60_000;
const KILLS: u32 = 50;
/// Work that a crash undoes is what is in flight or not yet written: it grows with the rate, with `in_flight` and with
/// `job`. 3,000 a second leaves some tens of ids to each crash.
const LIMITS: &str = "rate = 3000\nin_flight = 32\njob = 25\nsegment = 500";
const PLAN: &str = r#"
[[script]]
share = 0.0005
replies = ["null"]
[[script]]
share = 0.0005
then = "null"
"#;

#[test]
fn fifty_kills_at_random_moments_lose_nothing_and_refetch_little() {
    let seed = env::var("HIGHWATER_SEED").map_or_else(|_| RandomState::new().hash_one(0), |seed| seed.parse().unwrap());
    println!("HIGHWATER_SEED={seed}");
    let mut dice = Dice(seed);
    let sim = Sim::planned(ITEMS, PLAN);
    let home = Home::new(&sim.url(), LIMITS);
    let mut frontier = 0;
    for kill in 0..KILLS {
        let running = home.start(&["sync", "hn", "--quiet"]);
        let mut running = live_a_while(running, &sim, &mut dice, kill);
        assert!(!running.has_ended(), "kill {kill} comes too late: {}", running.err());
        running.kill();
        let reached = home.database().checked_frontier();
        assert!(reached >= frontier, "the frontier went back from {frontier} to {reached}");
        frontier = reached;
    }
    assert!(frontier > i64::from(ITEMS / 10), "the kills came too soon to matter: {frontier}");
    home.run(&["sync", "hn", "--quiet"]).exits(0);
    assert_eq!(home.database().checked_frontier(), i64::from(ITEMS) + 1);
    let requests = sim.item_requests();
    let truth = assert_mirrors(&home.database(), &sim, 1, i64::from(ITEMS));
    println!("{requests} requests for {ITEMS} items, {} of them missing, {KILLS} kills", truth.missing);
    assert!(requests <= u64::from(ITEMS) * 115 / 100, "{requests} requests for {ITEMS} items");
    home.run(&["ledger", "hn", "--verify"]).exits(0);
    home.run(&["verify", "--store"]).exits(0);
    home.run(&["verify", "hn"]).exits(0);
}

/// Lets a run live for a random share of the work, or now and then only for a moment after its start.
fn live_a_while(mut running: Running, sim: &Sim, dice: &mut Dice, kill: u32) -> Running {
    if kill % 5 == 4 {
        pause(Duration::from_millis(dice.below(200)));
        return running;
    }
    // So much less than all of it that the last one still meets a process at work.
    let mean = u64::from(ITEMS) * 7 / 10 / u64::from(KILLS * 4 / 5);
    let enough = sim.item_requests() + 1 + dice.below(2 * mean);
    let deadline = Deadline::after(Duration::from_secs(20));
    while sim.item_requests() < enough && !running.has_ended() && !deadline.has_passed() {
        pause(Duration::from_millis(2));
    }
    running
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}
