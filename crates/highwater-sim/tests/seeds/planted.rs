//! A simulation that finds nothing proves nothing: each bug that can be planted in the engine's way must be found.
//! (The bugs a store can have are found by the store's own suite.)

use std::{panic, time::Duration};

use highwater_core::{
    Lane, Moment, halves,
    planted::{Bug, with_planted},
    throttle::{InFlight, Outcome, Rate, Settings, Throttle},
};
use highwater_sim::FaultPlan;

use crate::{run, scenario::Scenario, serving::found};

fn play(plan: &str) {
    let scenario = Scenario { plan: FaultPlan::parse(plan).unwrap(), ..Scenario::small() };
    run::to_the_end(&scenario);
}

fn null_that_heals() {
    play("[[script]]\nids = [3, 30, 60]\nreplies = ['null', 'null']");
}

fn a_request_for_silence() {
    play(
        "[latency]\nfixed_ms = 20\n[quota]\nretry_after_s = 5\n[[script]]\nids = [5, 50]\nreplies = ['429-retry-after']",
    );
}

fn much_throttling() {
    play("[[script]]\nids = [5, 50]\nreplies = ['429', '429', '429', '429', '429', '429', '429', '429', '429']");
}

/// Sixty-four wait at a closed gate; once it opens they must leave at the rate, not together.
fn waiters_behind_a_gate() {
    let at = |millis| Moment::after_start(Duration::from_millis(millis));
    let rate = Rate::Limited { start: 10.0, max: 10.0 };
    let mut throttle = Throttle::new(Settings::new(rate, InFlight { start: 100, max: 100 }), at(0));
    for _ in 0..65 {
        throttle.request(Lane::Backfill, 1.0, at(0));
    }
    let (_, first) = throttle.poll(at(0)).expect("the first permit is due at once");
    throttle.finish(first, Outcome::Throttled { retry_after: Some(Duration::from_secs(4)) }, at(100), 0.0);
    let mut flying = Vec::new();
    let mut granted_after = 0;
    for millis in (100..7_000).step_by(10) {
        while let Some((_, permit)) = throttle.poll(at(millis)) {
            granted_after += 1;
            flying.push(permit);
        }
        for permit in flying.drain(..) {
            throttle.finish(permit, Outcome::Success { latency: Duration::from_millis(10) }, at(millis), 0.0);
        }
    }
    assert!(granted_after <= 35, "{granted_after} requests within three seconds at ten a second");
}

/// The engine itself would find a dropped key when it claims the segment again, and fetch it: nothing is lost, so the
/// split has to be looked at directly.
fn halves_of_a_batch() {
    for len in 0..100 {
        let (mut left, right) = halves((0..len).collect());
        left.extend(right);
        assert_eq!(left, (0..len).collect::<Vec<_>>());
    }
}

#[test]
fn each_planted_bug_is_found() {
    let checks: [(Bug, fn()); 8] = [
        (Bug::FirstNullFinal, null_that_heals),
        (Bug::RetryAfterIgnored, a_request_for_silence),
        (Bug::ThrottleCountsAsStrike, much_throttling),
        (Bug::ReservationLimiter, waiters_behind_a_gate),
        (Bug::DropOnSplit, halves_of_a_batch),
        (Bug::CursorPastQueue, found::what_waited_in_the_feed_while_the_queue_was_full_is_owed_since_it_was_told),
        (Bug::NamedInFlightForgotten, found::an_item_that_is_named_while_it_is_fetched_is_fetched_again),
        (Bug::LateAnswerWins, found::an_answer_that_comes_late_undoes_nothing),
    ];
    for (bug, check) in checks {
        check();
        let found = panic::catch_unwind(|| with_planted(Some(bug), check)).is_err();
        assert!(found, "{bug:?} went unnoticed");
    }
}
