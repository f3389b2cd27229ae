//! How much of a quota is used, and how often it is overstepped, when there is more to do than it allows.

use std::time::Duration;

use highwater_sim::{GmailCounts, GmailPlan};
use highwater_sources::gmail::Quota;

use super::{
    scene::{Scene, throttle},
    stage::Stage,
};

/// Google's, for new projects.
const PLAN: &str = "
    [quota]
    per_minute = 6000
    [latency]
    fixed_ms = 60
    jitter_ms = 80
    [size]
    size_kb = 1
";
const UNITS_A_MINUTE: u64 = 6_000;
const MESSAGES: u64 = 1_600;

/// Of a project that is older than the new quota, and nobody has said so.
#[test]
fn an_old_quota_is_learned_from_the_first_refusal() {
    let plan =
        PLAN.replace("6000", "15000\n    table = \"old\"").replace("[latency]", "shapes = [\"modern\"]\n    [latency]");
    let scene = Scene {
        messages: 12_000,
        plan: GmailPlan::parse(&plan).unwrap(),
        quota: Quota::Auto,
        throttle: throttle(Quota::Auto),
        lives: Vec::new(),
        include: Vec::new(),
        ..Scene::from_seed(0)
    };
    let early = counts_after(&scene, 120);
    let late = counts_after(&scene, 240);
    let units = late.quota_units - early.quota_units;
    let throttled = |counts: &GmailCounts| counts.throttled.values().sum::<u64>();
    println!("{units} of 30000 units used, {} requests refused", throttled(&late));
    assert!(units * 10 >= 30_000 * 9, "{units} units in two minutes");
    assert!(throttled(&late) - throttled(&early) < 10, "what is known is not overstepped");
}

#[test]
fn a_backfill_uses_the_quota_and_hardly_ever_oversteps_it() {
    let scene = Scene {
        messages: MESSAGES,
        plan: GmailPlan::parse(PLAN).unwrap(),
        quota: Quota::New,
        throttle: throttle(Quota::New),
        lives: Vec::new(),
        include: Vec::new(),
        ..Scene::from_seed(0)
    };
    let early = counts_after(&scene, 60);
    let late = counts_after(&scene, 240);
    let units = late.quota_units - early.quota_units;
    let throttled: u64 = late.throttled.values().sum();
    println!("{units} of {} units used, {throttled} of {} requests refused", 3 * UNITS_A_MINUTE, late.requests);
    assert!(units * 10 >= 3 * UNITS_A_MINUTE * 9, "{units} units in three minutes");
    assert!(throttled * 100 < late.requests, "{throttled} of {} requests refused", late.requests);
}

/// What a process has used when it is so many seconds old; it has more to do.
fn counts_after(scene: &Scene, seconds: u64) -> GmailCounts {
    let mut stage = Stage::new(scene.clone());
    assert!(stage.run(Duration::from_secs(seconds)).is_none(), "there was not enough to do");
    stage.sim.counts(Duration::from_secs(seconds))
}
