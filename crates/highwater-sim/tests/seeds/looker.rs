//! A Looker instance that lives while it is mirrored: content is edited, added and deleted between requests, answers are
//! spoiled, processes are killed and come back. In the end every object is a row as Looker has it.

mod stage;
mod truth;

use std::time::Duration;

use crate::{oracle, run::EventHash};
use stage::{Scene, Stage};

/// So many seeds are played, in so many tests, which run beside each other.
const SEEDS: u64 = 60;
const PARTS: u64 = 2;
const REPLAYED: u64 = 3;

/// Plays all lives of a seed, and then lets processes work on an instance at rest until nothing is left to do.
fn to_the_end(scene: &Scene) -> EventHash {
    let mut stage = Stage::new(scene.clone());
    for lasts in &scene.lives {
        stage.live(*lasts);
        truth::check_any_time(&stage);
    }
    stage.settle();
    truth::check_end(&stage);
    let calm = stage.changes_noted();
    stage.settle();
    assert_eq!(stage.changes_noted(), calm, "nothing has changed, and versions were written");
    stage.hash()
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
fn an_instance_ends_mirrored_whatever_happens_on_the_way_0() {
    play(0);
}

#[test]
fn an_instance_ends_mirrored_whatever_happens_on_the_way_1() {
    play(1);
}

#[test]
fn an_instance_replays_identically() {
    let seeds: Vec<u64> = (0..PARTS).flat_map(seeds).filter(|seed| *seed < REPLAYED).collect();
    crate::for_each(seeds, |seed| {
        let scene = Scene::from_seed(seed);
        assert_eq!(to_the_end(&scene), to_the_end(&scene), "two runs of one seed took different ways");
    });
}

#[test]
fn what_may_not_be_seen_stays_forbidden_however_often_it_is_looked_at() {
    let plan = "[[script]]\ntype = \"explores\"\nshare = 0.3\nthen = \"404\"";
    let mut stage = Stage::new(Scene::planned(1, plan));
    for snapshot in 1..=8 {
        stage.live(Duration::from_secs(3600));
        let db = oracle::open(&stage.database());
        let reasons =
            "SELECT group_concat(DISTINCT state || ' ' || reason) FROM ingest_exceptions WHERE stream = 'explores'";
        let reasons: Option<String> = db.query_row(reasons, [], |row| row.get(0)).unwrap();
        assert_eq!(reasons.as_deref(), Some("dead_letter forbidden"), "after {snapshot} snapshots");
    }
}
