//! Several processes on one account: shares of its limits, and refusals that one of them meets.

use std::time::Duration;

use highwater_core::{
    Lane,
    throttle::{InFlight, Learned, Outcome, Rate, Settings, Throttle, Window},
};

use crate::simulation::at;

fn throttle(rate: Rate, windows: Vec<Window>) -> Throttle {
    let settings = Settings { windows, ..Settings::new(rate, InFlight { start: 64, max: 64 }) };
    let mut throttle = Throttle::new(settings, at(0.0));
    for _ in 0..1_000 {
        throttle.request(Lane::Backfill, 1.0, at(0.0));
    }
    throttle
}

/// Permits between two times, looked for every millisecond and given back at once.
fn permits(throttle: &mut Throttle, from: f64, to: f64) -> usize {
    let mut count = 0;
    let mut now = from;
    while now < to {
        while let Some((_, permit)) = throttle.poll(at(now)) {
            throttle.finish(permit, Outcome::Abandoned, at(now), 0.0);
            count += 1;
        }
        now += 0.001;
    }
    count
}

#[test]
fn a_share_is_a_part_of_the_rate_and_given_back_is_the_whole_again() {
    let mut throttle = throttle(Rate::Limited { start: 40.0, max: 40.0 }, Vec::new());
    throttle.take_share(0.25, at(0.0));
    assert!((99..=101).contains(&permits(&mut throttle, 0.0, 10.0)));
    assert_eq!(throttle.learned(), Some(Learned { rate: 40.0, ceiling: None }), "of the account");
    throttle.take_share(1.0, at(10.0));
    assert!((398..=402).contains(&permits(&mut throttle, 10.0, 20.0)));
}

#[test]
fn a_share_is_a_part_of_every_window() {
    let window = Window { length: Duration::from_secs(60), limit: 100.0 };
    let mut throttle = throttle(Rate::Unlimited, vec![window]);
    throttle.take_share(0.1, at(0.0));
    assert_eq!(permits(&mut throttle, 0.0, 30.0), 10);
}

#[test]
fn a_refusal_met_by_another_process_slows_this_one_once() {
    let mut throttle = throttle(Rate::Limited { start: 40.0, max: 40.0 }, Vec::new());
    let rate = |throttle: &Throttle, now| throttle.snapshot(at(now)).rate;
    throttle.cut_elsewhere(at(5.0));
    assert_eq!(rate(&throttle, 5.0), Some(34.0));
    throttle.cut_elsewhere(at(5.9));
    assert_eq!(rate(&throttle, 5.9), Some(34.0), "the same flight");
    throttle.cut_elsewhere(at(6.0));
    assert_eq!(rate(&throttle, 6.0), Some(34.0 * 0.85));
    assert_eq!(throttle.snapshot(at(6.0)).totals.cuts, 0, "not ours to report");
}
