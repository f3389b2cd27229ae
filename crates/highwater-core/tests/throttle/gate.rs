//! The gate, step by step: how long it stays closed, what opens it, and who leaves then.

use crate::simulation::{Simulation, at, count, seconds};
use crate::{quota::MinuteWindow, steady::unknown_quota};
use highwater_core::{
    Lane, Moment,
    throttle::{GateState, InFlight, Limit, Outcome, PauseReason, Permit, Rate, Settings, Throttle},
};
use std::time::Duration;

const OK: Outcome = Outcome::Success { latency: Duration::from_millis(100) };
const REFUSED: Outcome = Outcome::Throttled { retry_after: None };

fn refused_for(seconds: f64) -> Outcome {
    Outcome::Throttled { retry_after: Some(Duration::from_secs_f64(seconds)) }
}

fn at_50() -> Throttle {
    let settings = Settings::new(Rate::Limited { start: 50.0, max: 50.0 }, InFlight { start: 64, max: 64 });
    crowded(settings)
}

fn crowded(settings: Settings) -> Throttle {
    let mut throttle = Throttle::new(settings, at(0.0));
    for _ in 0..200 {
        throttle.request(Lane::Backfill, 1.0, at(0.0));
    }
    throttle
}

fn next(throttle: &mut Throttle, now: Moment) -> (Moment, Permit) {
    let when = throttle.next_wake(now).expect("somebody waits and a permit will come");
    (when, throttle.poll(when).expect("a permit is due at the wake").1)
}

fn leaving_within(throttle: &mut Throttle, from: Moment, length: Duration) -> usize {
    let steps = 0..=length.as_millis() as u32;
    steps.map(|step| std::iter::from_fn(|| throttle.poll(from + Duration::from_millis(1) * step)).count()).sum()
}

#[test]
fn retry_after_is_kept_to_the_moment_and_never_shortened() {
    for wait in [0.001, 0.3, 1.0, 1.5, 30.0, 86_400.0] {
        for jitter in [0.0, 0.999] {
            let mut throttle = at_50();
            let (now, permit) = next(&mut throttle, at(0.0));
            throttle.finish(permit, refused_for(wait), now, jitter);
            let told = now + Duration::from_secs_f64(wait);
            let GateState::Closed { until, reason } = throttle.snapshot(now).gate else { panic!("{wait} s: open") };
            assert_eq!(reason, PauseReason::RetryAfter);
            assert!(until >= told && seconds(until) - seconds(told) <= jitter.min(wait * 0.05), "{wait} s: {until:?}");
            assert!(throttle.poll(at(seconds(told) - 1e-4)).is_none());
            assert!(throttle.next_wake(now) >= Some(until));
        }
    }
}

#[test]
fn closed_time_is_counted_once_and_by_its_reason() {
    let mut throttle = at_50();
    let closed = |throttle: &Throttle, seconds: f64| {
        let closed = throttle.snapshot(at(seconds)).totals.closed;
        PauseReason::ALL.iter().map(|reason| closed.because(*reason).as_secs_f64()).collect::<Vec<_>>()
    };
    assert_eq!(closed(&throttle, 5.0), [0.0, 0.0, 0.0, 0.0]);
    throttle.pause(at(30.0), PauseReason::RetryAfter, at(10.0));
    assert_eq!(closed(&throttle, 15.0), [5.0, 0.0, 0.0, 0.0], "also between two calls");
    throttle.pause(at(100.0), PauseReason::Outage, at(20.0));
    throttle.resume(at(25.0));
    assert!(throttle.poll(at(29.0)).is_none());
    assert_eq!(closed(&throttle, 29.0), [14.0, 0.0, 5.0, 0.0]);
    assert_eq!(closed(&throttle, 500.0), [15.0, 0.0, 5.0, 0.0], "the wait for a probe is not counted");
}

#[test]
fn a_later_retry_after_of_the_same_flight_extends_the_gate() {
    let mut throttle = at_50();
    let [first, second, third] = [0; 3].map(|_| next(&mut throttle, at(0.0)).1);
    let [one, two, three] = [1.0, 2.0, 3.0].map(at);
    throttle.finish(first, refused_for(10.0), one, 0.0);
    throttle.finish(second, refused_for(30.0), two, 0.0);
    throttle.finish(third, refused_for(5.0), three, 0.0);
    let gate = GateState::Closed { until: at(32.0), reason: PauseReason::RetryAfter };
    assert_eq!((throttle.snapshot(three).gate, throttle.next_wake(three)), (gate, Some(at(32.0))));
}

#[test]
fn one_probe_at_a_time_and_refused_probes_wait_longer() {
    let mut throttle = at_50();
    let (now, permit) = next(&mut throttle, at(0.0));
    throttle.finish(permit, refused_for(2.0), now, 0.0);
    let mut waits = Vec::new();
    let mut closed = now;
    for _ in 0..8 {
        let (now, probe) = next(&mut throttle, closed);
        waits.push(now.since(closed).as_secs());
        assert!(probe.is_probe() && throttle.next_wake(now).is_none());
        closed = now + Duration::from_secs(100);
        assert_eq!(leaving_within(&mut throttle, now, Duration::from_secs(1)), 0, "one probe is out");
        assert_eq!(throttle.snapshot(closed).gate, GateState::Probing);
        throttle.finish(probe, REFUSED, closed, 0.0);
    }
    assert_eq!(waits, [2, 1, 2, 4, 8, 16, 30, 30]);
}

#[test]
fn only_the_probe_opens_the_gate() {
    let mut throttle = at_50();
    let [first, second, third] = [0; 3].map(|_| next(&mut throttle, at(0.0)).1);
    throttle.finish(first, refused_for(2.0), at(1.0), 0.0);
    throttle.finish(second, OK, at(2.0), 0.0);
    assert!(matches!(throttle.snapshot(at(2.0)).gate, GateState::Closed { .. }));
    throttle.finish(third, OK, at(4.0), 0.0);
    assert_eq!(throttle.snapshot(at(4.0)).gate, GateState::Probing);
}

#[test]
fn a_probe_that_tells_nothing_is_followed_by_another() {
    let mut throttle = at_50();
    let (now, permit) = next(&mut throttle, at(0.0));
    throttle.finish(permit, refused_for(2.0), now, 0.0);
    for outcome in [Outcome::Failed, Outcome::Lost, Outcome::Abandoned] {
        let (now, probe) = next(&mut throttle, now);
        throttle.finish(probe, outcome, now, 0.0);
        assert_eq!(throttle.snapshot(now).gate, GateState::Probing);
    }
    let (now, probe) = next(&mut throttle, at(2.0));
    throttle.finish(probe, OK, now, 0.0);
    assert_eq!(throttle.snapshot(now).gate, GateState::Open);
}

#[test]
fn sixty_four_waiters_do_not_leave_together_after_the_gate() {
    let unlimited = Settings::new(Rate::Unlimited, InFlight { start: 4, max: 64 });
    for (mut throttle, most) in [(at_50(), 6), (crowded(unlimited), 4)] {
        let permit = throttle.poll(at(0.0)).expect("the first leaves at once").1;
        throttle.finish(permit, refused_for(30.0), at(0.1), 0.5);
        assert_eq!(leaving_within(&mut throttle, at(0.1), Duration::from_secs(30)), 0);
        let (now, probe) = next(&mut throttle, at(30.1));
        throttle.finish(probe, OK, now, 0.0);
        assert!(leaving_within(&mut throttle, now, Duration::from_millis(100)) <= most);
    }
}

#[test]
fn refusals_in_a_row_close_the_gate_without_a_header() {
    let mut throttle = at_50();
    let mut now = at(0.0);
    for turn in 0..8 {
        assert_eq!(throttle.snapshot(now).gate, GateState::Open, "refusal {turn}");
        let (when, permit) = next(&mut throttle, now);
        now = when;
        throttle.finish(permit, REFUSED, now, 0.0);
    }
    let GateState::Closed { until, reason } = throttle.snapshot(now).gate else { panic!("still open") };
    assert_eq!((reason, until), (PauseReason::Refusals, at(1.0)), "a second after the first refusal");
}

#[test]
fn the_gate_opens_at_what_the_source_accepted_and_a_quiet_night_does_not_count() {
    let settings = Settings::new(Rate::Limited { start: 50.0, max: 50.0 }, InFlight { start: 64, max: 64 });
    for night in [0.0, 30_000.0] {
        let mut throttle = Throttle::new(settings.clone(), at(0.0));
        for _ in 0..101 {
            throttle.request(Lane::Backfill, 1.0, at(night));
        }
        let mut now = at(night);
        for _ in 0..99 {
            let (when, permit) = next(&mut throttle, now);
            now = when + Duration::from_millis(1);
            throttle.finish(permit, OK, now, 0.0);
        }
        let (now, permit) = next(&mut throttle, now);
        throttle.finish(permit, refused_for(8.0), now, 0.0);
        assert!(throttle.poll(now).is_none());
        let (now, probe) = next(&mut throttle, now);
        throttle.finish(probe, OK, now, 0.0);
        let rate = throttle.snapshot(now).rate.expect("limited");
        assert!((9.5..10.5).contains(&rate), "100 accepted in 10 s, not {rate}/s");
    }
}

#[test]
fn a_pause_after_a_few_requests_does_not_take_the_rate() {
    let mut throttle = at_50();
    for outcome in [vec![OK; 20], vec![refused_for(10.0), OK]].concat() {
        let (now, permit) = next(&mut throttle, at(0.0));
        throttle.finish(permit, outcome, now, 0.0);
    }
    let rate = throttle.snapshot(at(0.0)).rate.expect("limited");
    assert_eq!(rate, 12.5, "a quarter, not the two a second that were accepted with the pause");
}

#[test]
fn an_outage_is_paused_from_outside_and_does_not_touch_the_rate() {
    let mut throttle = at_50();
    throttle.pause(at(600.0), PauseReason::Outage, at(1.0));
    throttle.pause(at(300.0), PauseReason::Operator, at(1.0));
    assert!(throttle.poll(at(599.0)).is_none());
    let snapshot = throttle.snapshot(at(599.0));
    let gate = GateState::Closed { until: at(600.0), reason: PauseReason::Outage };
    assert_eq!((snapshot.gate, snapshot.limit), (gate, Limit::Gate));
    let (now, probe) = next(&mut throttle, at(599.0));
    assert_eq!(leaving_within(&mut throttle, now, Duration::from_secs(1)), 0, "one probe is out");
    throttle.finish(probe, OK, at(602.0), 0.0);
    let snapshot = throttle.snapshot(at(602.0));
    assert_eq!((snapshot.gate, snapshot.rate), (GateState::Open, Some(50.0)));
}

#[test]
fn an_outage_does_not_count_as_refused_time() {
    let mut throttle = at_50();
    throttle.pause(at(600.0), PauseReason::Outage, at(0.0));
    for outcome in [vec![OK; 59], vec![refused_for(6.0), OK]].concat() {
        let (now, permit) = next(&mut throttle, at(0.0));
        throttle.finish(permit, outcome, now, 0.0);
    }
    let rate = throttle.snapshot(at(0.0)).rate.expect("limited");
    assert!((8.0..9.0).contains(&rate), "sixty accepted in seven seconds, not {rate}/s");
}

#[test]
fn resume_lifts_the_outage_and_not_what_the_source_asked_for() {
    let mut throttle = at_50();
    let (now, permit) = next(&mut throttle, at(0.0));
    throttle.pause(at(600.0), PauseReason::Operator, now);
    throttle.resume(at(1.0));
    assert_eq!(throttle.snapshot(at(1.0)).gate, GateState::Open);
    throttle.finish(permit, refused_for(60.0), at(1.0), 0.0);
    throttle.pause(at(600.0), PauseReason::Outage, at(2.0));
    throttle.resume(at(3.0));
    assert_eq!(throttle.next_wake(at(3.0)), Some(at(61.0)));
}

#[test]
fn nothing_leaves_in_the_closed_part_of_a_minute() {
    let mut simulation = Simulation::new(unknown_quota(), MinuteWindow::with_header(5.0), 64, 1);
    simulation.run_until(300.0);
    let refused = &simulation.log.refused;
    assert!(refused.len() > 3, "the run never met the end of a minute");
    for &time in refused {
        let end = (time / 60.0).floor() * 60.0 + 60.0;
        assert_eq!(count(&simulation.log.sent, (time + 0.5).min(end), end), 0, "after a refusal at {time}");
    }
}
