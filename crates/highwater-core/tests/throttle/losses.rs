//! A source that loses requests: because it takes only so many at once, or whatever it is asked.

use std::{collections::BTreeMap, time::Duration};

use highwater_core::{
    Lane, Moment,
    throttle::{InFlight, Outcome, Permit, Rate, Settings, Throttle},
};

const SERVED_AFTER: Duration = Duration::from_millis(100);
const REFUSED_AFTER: Duration = Duration::from_millis(2);
const LENGTH: Duration = Duration::from_secs(120);
/// Looked at from then on.
const SETTLED: Duration = Duration::from_secs(60);

struct Source {
    taken_max: usize,
    /// One in so many is lost in any case.
    loses: Option<u64>,
}

#[derive(Default)]
struct Figures {
    served: u64,
    lost: u64,
}

/// Somebody always waits; what ends is given back at its time.
fn run(source: &Source, rate: Rate) -> Figures {
    let settings = Settings::new(rate, InFlight { start: 64, max: 256 });
    let mut throttle = Throttle::new(settings, Moment::START);
    let mut ends: BTreeMap<(Moment, u64), (Permit, bool)> = BTreeMap::new();
    let (mut now, mut asked, mut taken, mut figures) = (Moment::START, 0, 0, Figures::default());
    for _ in 0..300 {
        let _waits = throttle.request(Lane::Backfill, 1.0, now);
    }
    while now < Moment::START + LENGTH {
        while let Some((_, permit)) = throttle.poll(now) {
            let _waits = throttle.request(Lane::Backfill, 1.0, now);
            asked += 1;
            let is_lost = taken == source.taken_max || source.loses.is_some_and(|each| asked % each == 0);
            taken += usize::from(!is_lost);
            let end = now + if is_lost { REFUSED_AFTER } else { SERVED_AFTER };
            ends.insert((end, asked), (permit, is_lost));
        }
        let next_end = ends.first_key_value().map(|((at, _), _)| *at);
        let wake = throttle.next_wake(now).filter(|at| *at > now);
        now = [next_end, wake].into_iter().flatten().min().expect("somebody waits, or something is under way");
        while let Some(entry) = ends.first_entry().filter(|entry| entry.key().0 <= now) {
            let (permit, is_lost) = entry.remove();
            taken -= usize::from(!is_lost);
            let outcome = if is_lost { Outcome::Lost } else { Outcome::Success { latency: SERVED_AFTER } };
            throttle.finish(permit, outcome, now, 0.5);
            if now > Moment::START + SETTLED {
                (figures.lost, figures.served) =
                    (figures.lost + u64::from(is_lost), figures.served + u64::from(!is_lost));
            }
        }
    }
    figures
}

const LIMITED: Rate = Rate::Limited { start: 250.0, max: 2500.0 };

#[test]
fn where_only_so_many_are_taken_few_are_lost_and_most_places_are_used() {
    let seconds = (LENGTH - SETTLED).as_secs_f64();
    for taken_max in [6, 10, 20] {
        for rate in [LIMITED, Rate::Unlimited] {
            let Figures { served, lost } = run(&Source { taken_max, loses: None }, rate);
            let most = taken_max as f64 / SERVED_AFTER.as_secs_f64() * seconds;
            assert!(served as f64 > 0.6 * most, "{taken_max} at {rate:?}: {served} of {most}");
            assert!(lost * 4 < served, "{taken_max} at {rate:?}: {lost} lost, {served} served");
        }
    }
}

#[test]
fn where_one_in_three_is_lost_in_any_case_nothing_is_slowed_down() {
    let free = run(&Source { taken_max: usize::MAX, loses: None }, Rate::Limited { start: 250.0, max: 250.0 });
    let lossy = run(&Source { taken_max: usize::MAX, loses: Some(3) }, Rate::Limited { start: 250.0, max: 250.0 });
    // Two of three are served, and tries take a part of the time.
    assert!(lossy.served as f64 > 0.6 * 0.667 * free.served as f64, "{} of {}", lossy.served, free.served);
}
