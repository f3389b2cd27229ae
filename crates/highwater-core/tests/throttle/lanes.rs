//! Live requests under a load of backfill: they share the rate, and go first.

use crate::{quota::TokenBucket, simulation::Simulation, steady::unknown_quota};
use highwater_core::{
    Lane,
    throttle::{InFlight, Rate, Settings},
};

#[test]
fn live_requests_wait_for_one_permit_and_backfill_for_the_line() {
    let mut simulation = Simulation::new(unknown_quota(), TokenBucket::new(50.0), 64, 1);
    (0..300).for_each(|index| simulation.ask_at(60.0 + f64::from(index) * 0.37, Lane::Live));
    simulation.run_until(180.0);
    let waits = |lane| {
        let waits = simulation.log.waits.iter().filter(move |wait| wait.0 == lane && wait.1 > 60.0);
        let mut waits: Vec<f64> = waits.map(|wait| wait.2).collect();
        waits.sort_by(f64::total_cmp);
        waits
    };
    let (live, backfill) = (waits(Lane::Live), waits(Lane::Backfill));
    assert_eq!(live.len(), 300);
    let (slowest, typical) = (live[live.len() - 1], backfill[backfill.len() / 2]);
    println!("live at most {slowest:.3} s, backfill typically {typical:.3} s");
    assert!(slowest < 0.1, "a permit at 50/s is due every 20 ms: {slowest}");
    assert!(typical > 0.5, "64 workers share 50/s: {typical}");
}

#[test]
fn a_full_house_lets_live_in_first() {
    let settings = Settings::new(Rate::Unlimited, InFlight { start: 8, max: 8 });
    let mut simulation = Simulation::new(settings, TokenBucket::new(1e6), 64, 1);
    (0..50).for_each(|index| simulation.ask_at(5.0 + f64::from(index) * 0.2, Lane::Live));
    simulation.run_until(20.0);
    let live: Vec<f64> = simulation.log.waits.iter().filter(|wait| wait.0 == Lane::Live).map(|wait| wait.2).collect();
    assert_eq!(live.len(), 50);
    assert!(live.iter().all(|&wait| wait < 0.15), "{live:?}");
}
