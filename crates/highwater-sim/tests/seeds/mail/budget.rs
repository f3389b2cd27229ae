//! A budget of bytes a day: what runs and services download stays within it, and all of it comes in the end.

use std::time::Duration;

use highwater_core::Timestamp;
use highwater_engine::{Ending, Left};
use highwater_sim::GmailPlan;
use highwater_sources::gmail::Quota;

use super::{
    check,
    scene::{Scene, throttle},
    stage::{EPOCH, Stage},
};

const MOST: u64 = 1_000_000;
/// About 27 KB each as an answer: two days and a half.
const MESSAGES: u64 = 90;
const PLAN: &str = "[size]\nsize_kb = 20\n[latency]\nfixed_ms = 20\njitter_ms = 40\n";
const HOUR: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(600);

fn stage(messages: u64) -> Stage {
    Stage::new(Scene {
        messages,
        plan: GmailPlan::parse(PLAN).unwrap(),
        quota: Quota::New,
        throttle: throttle(Quota::New),
        lives: Vec::new(),
        include: Vec::new(),
        max_bytes_day: Some(MOST),
        ..Scene::from_seed(0)
    })
}

fn downloaded(stage: &Stage) -> u64 {
    stage.sim.counts(Duration::ZERO).body_bytes
}

fn gets(stage: &Stage) -> u64 {
    stage.sim.counts(Duration::ZERO).messages_got
}

/// When a run says it goes on; none if it was complete.
fn sync(stage: &mut Stage) -> Option<Timestamp> {
    let reports = stage.run(PATIENCE).expect("a run ends").unwrap();
    match &reports[0].ending {
        Ending::Complete => None,
        Ending::Incomplete(Left::Spent { why, until }) => {
            assert!(why.contains("max_bytes_day"), "{why}");
            *until
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn runs_stay_within_the_budget_and_go_on_the_next_day() {
    let mut stage = stage(MESSAGES);
    let (mut days, mut before, mut began) = (1, 0, EPOCH);
    while let Some(until) = sync(&mut stage) {
        let of_day = downloaded(&stage) - before;
        assert!(of_day <= MOST && of_day > MOST * 8 / 10, "{of_day} bytes in a day");
        assert!(until.since(began) >= 24 * HOUR, "too early");
        let got = gets(&stage);
        assert!(sync(&mut stage).is_some());
        assert_eq!(gets(&stage), got, "nothing is asked for before there is room");
        stage.wait_until(until);
        (days, before, began) = (days + 1, downloaded(&stage), until);
        assert!(days < 6, "no end");
    }
    assert!(days > 2, "{days} days");
    assert_eq!(stage.sim.counts(Duration::ZERO).messages_got_again, 0, "what came is kept");
    stage.bring_home();
    check(&stage);
}

#[test]
fn what_a_killed_run_has_downloaded_counts() {
    let killed_after = |seconds| {
        let mut stage = stage(MESSAGES);
        assert!(stage.run(Duration::from_secs(seconds)).is_none(), "the kill came too late");
        (downloaded(&stage) > MOST * 6 / 10).then_some(stage)
    };
    let mut stage = (4..).step_by(2).find_map(killed_after).expect("every run gets somewhere");
    assert!(sync(&mut stage).is_some());
    let all = downloaded(&stage);
    assert!(all < MOST * 13 / 10, "{all} bytes: all but the last two seconds should count");
}

#[test]
fn a_service_waits_for_the_next_day_and_goes_on_by_itself() {
    let mut stage = stage(MESSAGES * 2 / 3);
    stage.serve(20 * HOUR);
    let first = downloaded(&stage);
    assert!(first <= MOST && first > MOST * 8 / 10, "{first} bytes in a day");
    stage.serve(10 * HOUR);
    let said = stage.said();
    assert!(said.contains("Spent {") && said.contains("SpentOver"), "it is told");
    assert_eq!(stage.sim.counts(Duration::ZERO).messages_got_again, 0, "what came is kept");
    assert!(sync(&mut stage).is_none(), "all is there");
    stage.bring_home();
    check(&stage);
}
