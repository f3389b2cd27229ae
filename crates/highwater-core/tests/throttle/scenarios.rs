//! Days in the life of a throttle: a quota that changes, hints of less than a second, work that comes and goes,
//! weights, windows, and a driver with a coarse timer.

use crate::{
    quota::{Boundless, Changing, Hinting, TokenBucket},
    simulation::{Simulation, at, count},
    steady::unknown_quota,
};
use highwater_core::{
    Lane,
    throttle::{InFlight, Learned, Limit, Outcome, Rate, Settings, Throttle, Window},
};
use std::time::Duration;

const LATENCY: Duration = Duration::from_millis(100);

#[test]
fn a_quota_that_drops_and_rises_is_followed() {
    for seed in 1..=3 {
        let changes = [(300.0, 20.0), (600.0, 80.0)].into();
        let source = Changing { bucket: TokenBucket::new(50.0), changes };
        let mut simulation = Simulation::new(unknown_quota(), source, 64, seed);
        simulation.run_until(900.0);
        let log = &simulation.log;
        let (first, then) = (log.refused_share(300.0, 360.0), log.refused_share(360.0, 600.0));
        let (used, soon) = (log.accepted_rate(360.0, 600.0) / 20.0, log.reached(0.8 * 80.0, 600.0));
        println!(
            "seed {seed}: after the drop {first:.4}, then {then:.4}, used {used:.3}; 80 % of the rise after {soon} s"
        );
        assert!(first <= 0.10 && then <= 0.015 && used >= 0.95 && soon <= 120.0, "seed {seed}");
    }
}

#[test]
fn a_hint_below_a_second_is_kept_and_costs_little() {
    let mut simulation = Simulation::new(unknown_quota(), Hinting(TokenBucket::new(50.0)), 64, 1);
    simulation.run_until(480.0);
    let (used, refused) =
        (simulation.log.accepted_rate(180.0, 480.0) / 50.0, simulation.log.refused_share(180.0, 480.0));
    println!("used {used:.3}, refused {refused:.4}");
    assert!(used >= 0.95 && refused <= 0.01);
    assert!(!simulation.log.refused.is_empty());
}

#[test]
fn a_timer_of_a_millisecond_reaches_2500_a_second() {
    let settings = Settings::new(Rate::Limited { start: 2_500.0, max: 2_500.0 }, InFlight { start: 512, max: 1_024 });
    let mut simulation = Simulation::new(settings, Boundless, 1_024, 1).with_timer(Duration::from_millis(1));
    simulation.run_until(10.0);
    let rate = simulation.log.accepted_rate(5.0, 10.0);
    assert!((2_475.0..=2_501.0).contains(&rate), "{rate}");
    let busiest =
        (0..100).map(|tenth| count(&simulation.log.sent, f64::from(tenth) / 10.0, f64::from(tenth + 1) / 10.0));
    assert!(busiest.max() <= Some(250 + 14));
}

#[test]
fn idleness_hoards_nothing() {
    let settings = Settings::new(Rate::Limited { start: 50.0, max: 50.0 }, InFlight { start: 64, max: 64 });
    let mut throttle = Throttle::new(settings, at(0.0));
    for idle_until in [3.0, 3_600.0] {
        let tickets = (0..64).map(|_| throttle.request(Lane::Backfill, 1.0, at(idle_until))).collect::<Vec<_>>();
        let permits: Vec<_> = std::iter::from_fn(|| throttle.poll(at(idle_until))).collect();
        assert_eq!(permits.len(), 1, "after {idle_until} s");
        permits.into_iter().for_each(|(_, permit)| throttle.finish(permit, Outcome::Abandoned, at(idle_until), 0.0));
        tickets.into_iter().for_each(|ticket| throttle.cancel(ticket));
    }
}

#[test]
fn work_that_does_not_need_the_rate_does_not_raise_it() {
    let mut throttle = Throttle::new(unknown_quota(), at(0.0));
    for second in 1..200 {
        throttle.request(Lane::Live, 1.0, at(f64::from(second)));
        let (_, permit) = throttle.poll(at(f64::from(second))).expect("half of the rate is free");
        throttle.finish(permit, Outcome::Success { latency: LATENCY }, at(f64::from(second) + 0.1), 0.0);
    }
    assert_eq!(throttle.snapshot(at(200.0)).rate, Some(2.0));
}

#[test]
fn weights_are_paid_in_full() {
    let settings = Settings::new(Rate::Limited { start: 100.0, max: 100.0 }, InFlight { start: 64, max: 64 });
    let mut throttle = Throttle::new(settings, at(0.0));
    for turn in 0..2_000 {
        throttle.request(Lane::Backfill, if turn % 2 == 0 { 20.0 } else { 5.0 }, at(0.0));
    }
    let spent = spend_until(&mut throttle, 60.0);
    assert!((5_980.0..=6_020.0).contains(&spent), "{spent}");
}

#[test]
fn windows_hold_together_and_the_tighter_one_decides() {
    let windows =
        [(1, 10.0), (60, 300.0)].map(|(seconds, limit)| Window { length: Duration::from_secs(seconds), limit });
    let settings =
        Settings { windows: windows.into(), ..Settings::new(Rate::Unlimited, InFlight { start: 64, max: 64 }) };
    let mut throttle = Throttle::new(settings, at(0.0));
    for _ in 0..2_000 {
        throttle.request(Lane::Backfill, 1.0, at(0.0));
    }
    assert_eq!(spend_until(&mut throttle, 0.5), 10.0);
    assert_eq!(spend_until(&mut throttle, 59.0), 290.0);
    assert_eq!(throttle.snapshot(at(59.0)).limit, Limit::Window);
    assert!((300.0..=600.0).contains(&spend_until(&mut throttle, 121.0)));
    throttle.request(Lane::Live, 25.0, at(121.0));
    assert!(spend_until(&mut throttle, 126.0) >= 25.0, "larger than the second, and yet served");
}

#[test]
fn a_restart_begins_near_what_was_learned() {
    let mut simulation = Simulation::new(unknown_quota(), TokenBucket::new(50.0), 64, 1);
    simulation.run_until(120.0);
    let learned = simulation.throttle.learned().expect("the rate is limited");
    let mut restarted = Throttle::new(unknown_quota(), at(0.0));
    restarted.recall(learned, at(0.0));
    assert_eq!(restarted.learned(), Some(Learned { rate: learned.rate * 0.8, ..learned }));
}

/// Answers every request after `LATENCY`, and gives the units that left.
fn spend_until(throttle: &mut Throttle, end: f64) -> f64 {
    let mut under_way = std::collections::VecDeque::new();
    let (mut now, mut spent) = (throttle.next_wake(at(0.0)).expect("somebody waits"), 0.0);
    while now < at(end) {
        while let Some((_, permit)) = throttle.poll(now) {
            spent += permit.cost();
            under_way.push_back((now + LATENCY, permit));
        }
        let answered = under_way.front().map(|&(when, _)| when);
        now = throttle.next_wake(now).into_iter().chain(answered).min().expect("somebody waits");
        while under_way.front().is_some_and(|&(when, _)| when <= now) {
            let (_, permit) = under_way.pop_front().expect("just seen");
            throttle.finish(permit, Outcome::Success { latency: LATENCY }, now, 0.0);
        }
    }
    under_way.into_iter().for_each(|(_, permit)| throttle.finish(permit, Outcome::Abandoned, at(end), 0.0));
    spent
}
