//! How close the throttle sits to a quota it does not know, once it had three minutes to find it.

use crate::{
    quota::{MinuteWindow, Quota, SlidingSecond, TokenBucket},
    simulation::Simulation,
};
use highwater_core::throttle::{InFlight, Rate, Settings};

const SEEDS: &[u64] = &[1, 2, 3];
/// Scale needs no second opinion, and the large quotas take their time.
const ONE_SEED: &[u64] = &[1];
const WARM: f64 = 180.0;
const END: f64 = 540.0;

/// What a scenario must reach: shares of the quota and of the requests, and seconds.
struct Bands {
    used: f64,
    refused: f64,
    soon: f64,
    seeds: &'static [u64],
}

pub(crate) fn unknown_quota() -> Settings {
    Settings::new(Rate::Limited { start: 2.0, max: f64::INFINITY }, InFlight { start: 8, max: 64 })
}

fn check<Q: Quota>(name: &str, rate: f64, quota: impl Fn(f64) -> Q, bands: &Bands) {
    for &seed in bands.seeds {
        let mut simulation = Simulation::new(unknown_quota(), quota(rate), 64, seed);
        simulation.run_until(END);
        let log = &simulation.log;
        let used = log.accepted_rate(WARM, END) / rate;
        let (refused, soon) = (log.refused_share(WARM, END), log.reached(0.8 * rate, 0.0));
        let all = log.refused_share(0.0, END);
        println!(
            "{name} {rate}/s seed {seed}: used {used:.3}, refused {refused:.4} ({all:.4} in all), 80 % after {soon} s"
        );
        assert!(used >= bands.used && refused <= bands.refused && soon <= bands.soon, "{name}, seed {seed}");
    }
}

#[test]
fn a_token_bucket_of_50_is_used_to_95_percent() {
    check("token bucket", 50.0, TokenBucket::new, &Bands { used: 0.95, refused: 0.01, soon: 20.0, seeds: SEEDS });
}

#[test]
fn a_sliding_second_of_50_is_used_to_90_percent() {
    check("sliding second", 50.0, SlidingSecond::new, &Bands { used: 0.90, refused: 0.01, soon: 20.0, seeds: SEEDS });
}

#[test]
fn a_minute_window_with_retry_after_of_50_is_used_to_95_percent() {
    check(
        "minute, header",
        50.0,
        MinuteWindow::with_header,
        &Bands { used: 0.95, refused: 0.01, soon: 20.0, seeds: SEEDS },
    );
}

#[test]
fn a_minute_window_without_header_of_50_is_used_to_95_percent() {
    check(
        "minute, no header",
        50.0,
        MinuteWindow::without_header,
        &Bands { used: 0.95, refused: 0.01, soon: 20.0, seeds: SEEDS },
    );
}

#[test]
fn quotas_of_5_are_used_with_few_refusals() {
    let bands = Bands { used: 0.85, refused: 0.05, soon: 30.0, seeds: ONE_SEED };
    check("token bucket", 5.0, TokenBucket::new, &bands);
    check("sliding second", 5.0, SlidingSecond::new, &bands);
    check("minute, header", 5.0, MinuteWindow::with_header, &bands);
    check("minute, no header", 5.0, MinuteWindow::without_header, &bands);
}

#[test]
fn quotas_of_250_are_used_with_few_refusals() {
    let bands = Bands { used: 0.85, refused: 0.01, soon: 30.0, seeds: ONE_SEED };
    check("token bucket", 250.0, TokenBucket::new, &bands);
    check("sliding second", 250.0, SlidingSecond::new, &bands);
    check("minute, header", 250.0, MinuteWindow::with_header, &bands);
    check("minute, no header", 250.0, MinuteWindow::without_header, &bands);
}
