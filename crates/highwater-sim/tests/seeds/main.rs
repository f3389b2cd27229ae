//! Deterministic simulation: the real engine, the real SQLite store inline, the simulated remote in process, on a
//! paused clock, with crashes and faults by seed. `HIGHWATER_SEEDS=n` runs n seeds, `HIGHWATER_SEED=s` replays one.

#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod beside;
mod failing;
mod follow_methods;
mod live_methods;
mod looker;
mod mail;
mod mailbox_methods;
mod nth;
mod oracle;
mod planted;
mod poison;
mod run;
mod scenario;
mod serving;

use std::{env, panic};

use scenario::Scenario;

const SEEDS: u64 = 300;
/// So many of them are run twice, to see that they replay.
const REPLAYED: u64 = 20;

fn seeds() -> Vec<u64> {
    match env::var("HIGHWATER_SEED").map(|seed| seed.parse().expect("HIGHWATER_SEED is a number")) {
        Ok(seed) => vec![seed],
        Err(_) => {
            let count = env::var("HIGHWATER_SEEDS").map_or(SEEDS, |n| n.parse().expect("HIGHWATER_SEEDS is a number"));
            (0..count).collect()
        }
    }
}

/// Of the seeds asked for, as large a part as `of` is of [`SEEDS`]; of that, what falls to the test that is `nth` of
/// `tests`, which run beside each other.
fn some_seeds(of: u64, tests: u64, nth: u64) -> Vec<u64> {
    match env::var_os("HIGHWATER_SEED") {
        Some(_) => seeds(),
        None => {
            let share = (seeds().len() as u64 * of / SEEDS).max(1);
            (0..share).filter(|seed| seed % tests == nth).collect()
        }
    }
}

/// Names the seed when `check` fails on it.
fn for_each(seeds: impl IntoIterator<Item = u64>, check: impl Fn(u64) + panic::RefUnwindSafe) {
    for seed in seeds {
        if let Err(failure) = panic::catch_unwind(|| check(seed)) {
            eprintln!("seed {seed} fails; replay it with HIGHWATER_SEED={seed}");
            panic::resume_unwind(failure);
        }
    }
}

#[test]
fn the_store_ends_equal_to_the_truth_whatever_happens_on_the_way() {
    for_each(seeds(), |seed| {
        run::to_the_end(&Scenario::from_seed(seed));
    });
}

#[test]
fn a_seed_replays_identically() {
    for_each(seeds().into_iter().take(REPLAYED as usize), |seed| {
        let scenario = Scenario::from_seed(seed);
        assert_eq!(run::to_the_end(&scenario), run::to_the_end(&scenario), "two runs of one seed took different ways");
    });
}
