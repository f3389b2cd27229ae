//! A mirror that stays current, over weeks of virtual time: listens, is killed, stays away, comes back. At every kill
//! nothing is behind the remote without a reason in the books, and nothing goes back; in the end all is there.

mod books;
pub(crate) mod found;
mod history;
mod scene;
mod stage;
mod truth;

use crate::{oracle, run::EventHash};
use history::Histories;
use scene::Scene;
use stage::Stage;

/// So many seeds are served, in so many tests, which run beside each other.
const SEEDS: u64 = 100;
const PARTS: u64 = 4;
const REPLAYED: u64 = 10;

/// Plays all lives of a seed, and one more that is left alone until all is quiet.
fn to_the_end(scene: &Scene) -> EventHash {
    let mut stage = Stage::new(scene.clone());
    let mut histories = Histories::new(stage.sim.clone());
    for life in &scene.lives {
        stage.live(life);
        histories.grow(&stage);
        oracle::check_frontier(&stage.database());
        truth::check_any_time(&stage.database(), &histories);
        stage.age += life.away;
    }
    stage.settle();
    histories.grow(&stage);
    oracle::check_frontier(&stage.database());
    truth::check_any_time(&stage.database(), &histories);
    truth::check_end(&stage.database(), &stage.sim, &histories);
    stage.hash()
}

fn seeds(part: u64) -> Vec<u64> {
    crate::some_seeds(SEEDS, PARTS, part)
}

fn serve(part: u64) {
    crate::for_each(seeds(part), |seed| {
        to_the_end(&Scene::from_seed(seed));
    });
}

#[test]
fn a_served_mirror_accounts_for_every_change_0() {
    serve(0);
}

#[test]
fn a_served_mirror_accounts_for_every_change_1() {
    serve(1);
}

#[test]
fn a_served_mirror_accounts_for_every_change_2() {
    serve(2);
}

#[test]
fn a_served_mirror_accounts_for_every_change_3() {
    serve(3);
}

#[test]
fn a_served_seed_replays_identically() {
    let seeds: Vec<u64> = (0..PARTS).flat_map(seeds).filter(|seed| *seed < REPLAYED).collect();
    crate::for_each(seeds, |seed| {
        let scene = Scene::from_seed(seed);
        assert_eq!(to_the_end(&scene), to_the_end(&scene), "two runs of one seed took different ways");
    });
}
