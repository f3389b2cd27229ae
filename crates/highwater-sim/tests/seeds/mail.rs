//! A mailbox that lives while it is mirrored: mail arrives, is filed, imported and deleted, processes are killed and come
//! back. In the end every message is a row as Gmail has it, or the books say why not.

mod books;
mod budget;
mod keeper;
mod messages;
mod parts;
mod quota;
mod scene;
mod secrets;
mod stage;
mod threads;

use crate::run::EventHash;
use scene::Scene;
use stage::Stage;

/// So many seeds are played, in so many tests, which run beside each other.
const SEEDS: u64 = 60;
const PARTS: u64 = 2;
const REPLAYED: u64 = 4;

/// Plays all lives of a seed, and then lets processes work undisturbed until nothing is left to do.
fn to_the_end(scene: &Scene) -> EventHash {
    let mut stage = Stage::new(scene.clone());
    for life in &scene.lives {
        stage.live(life);
        books::check_tiling(&stage.database());
    }
    stage.settle();
    stage.bring_home();
    check(&stage);
    stage.hash()
}

fn check(stage: &Stage) {
    let db = crate::oracle::open(&stage.database());
    messages::check(&db, stage);
    parts::check(&db, stage);
    threads::check(&db);
    books::check_tiling(&stage.database());
    books::check_ledger(&db);
    secrets::check(&db, stage);
    stage.check_silence();
}

fn seeds(part: u64) -> Vec<u64> {
    crate::some_seeds(SEEDS, PARTS, part)
}

fn play(part: u64) {
    crate::for_each(seeds(part), |seed| {
        to_the_end(&Scene::from_seed(seed));
    });
}

#[test]
fn a_mailbox_ends_mirrored_whatever_happens_on_the_way_0() {
    play(0);
}

#[test]
fn a_mailbox_ends_mirrored_whatever_happens_on_the_way_1() {
    play(1);
}

#[test]
fn a_mailbox_replays_identically() {
    let seeds: Vec<u64> = (0..PARTS).flat_map(seeds).filter(|seed| *seed < REPLAYED).collect();
    crate::for_each(seeds, |seed| {
        let scene = Scene::from_seed(seed);
        assert_eq!(to_the_end(&scene), to_the_end(&scene), "two runs of one seed took different ways");
    });
}
