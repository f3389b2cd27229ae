//! What holds in every history of requests, answers, pauses and silences.

use crate::simulation::seconds;
use highwater_core::{
    Lane, Moment,
    throttle::{GateState, InFlight, Outcome, PauseReason, Permit, Rate, Settings, Throttle, Ticket, Window},
};
use proptest::prelude::*;
use std::{
    collections::{HashSet, VecDeque},
    num::NonZeroU32,
    time::Duration,
};

const START: f64 = 40.0;
const MAX: f64 = 400.0;
const HEAVIEST: f64 = 20.0;
/// A unit, 5 ms of the highest rate, and the debt of the heaviest request.
const ALLOWANCE: f64 = 1.0 + MAX * 0.005 + (HEAVIEST - 1.0);
const WINDOW: Window = Window { length: Duration::from_millis(700), limit: 90.0 };

#[derive(Clone, Debug)]
enum Step {
    /// For so many at once.
    Ask(Lane, f64, u32),
    GiveUp(prop::sample::Index),
    Answer(prop::sample::Index, Outcome),
    Pass(Duration),
    /// To the moment the throttle itself names.
    Wake,
    Pause(Duration, PauseReason),
    Resume,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lane = prop::sample::select(&Lane::ALL[..]);
    let cost = prop_oneof![4 => Just(1.0), 1 => Just(5.0), 1 => Just(HEAVIEST)];
    let many = prop_oneof![4 => Just(1_u32), 1 => 2..12_u32];
    let wait = prop_oneof![4 => 1..1_500_u64, 1 => 1_500..20_000_u64].prop_map(Duration::from_millis);
    let outcome = prop_oneof![
        6 => (1..900_u64).prop_map(|millis| Outcome::Success { latency: Duration::from_millis(millis) }),
        3 => prop::option::weighted(0.3, wait.clone()).prop_map(|retry_after| Outcome::Throttled { retry_after }),
        1 => prop_oneof![Just(Outcome::Failed), Just(Outcome::Lost), Just(Outcome::Abandoned)],
    ];
    let reason = prop_oneof![Just(PauseReason::Outage), Just(PauseReason::Operator), Just(PauseReason::RetryAfter)];
    let step = prop_oneof![
        9 => (lane, cost, many).prop_map(|(lane, cost, many)| Step::Ask(lane, cost, many)),
        2 => any::<prop::sample::Index>().prop_map(Step::GiveUp),
        8 => (any::<prop::sample::Index>(), outcome).prop_map(|(which, outcome)| Step::Answer(which, outcome)),
        4 => (0..200_000_u64).prop_map(|micros| Step::Pass(Duration::from_micros(micros))),
        1 => (0..20_000_u64).prop_map(|millis| Step::Pass(Duration::from_millis(millis))),
        8 => Just(Step::Wake),
        1 => (wait, reason).prop_map(|(wait, reason)| Step::Pause(wait, reason)),
        1 => Just(Step::Resume),
    ];
    prop::collection::vec(step, 1..250)
}

/// The throttle next to the plainest books one can keep of it.
struct World {
    throttle: Throttle,
    now: Moment,
    lines: [VecDeque<Ticket>; 3],
    gone: HashSet<Ticket>,
    under_way: Vec<Permit>,
    told: Moment,
    books: Books,
    recent: VecDeque<(Moment, f64)>,
}

/// Units that left and units the rate has earned, and the least difference before any grant so far.
#[derive(Default)]
struct Books {
    left: f64,
    earned: f64,
    least: f64,
}

impl World {
    fn new(rate: Rate, windows: Vec<Window>) -> Self {
        let settings = Settings { windows, ..Settings::new(rate, InFlight { start: 6, max: 24 }) };
        World {
            throttle: Throttle::new(settings, Moment::START),
            now: Moment::START,
            lines: Default::default(),
            gone: HashSet::new(),
            under_way: Vec::new(),
            told: Moment::START,
            books: Books::default(),
            recent: VecDeque::new(),
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Ask(lane, cost, many) => {
                let permits = NonZeroU32::new(many).expect("somebody asks");
                let ticket = self.throttle.request_many(lane, cost, permits, self.now);
                self.lines[lane.index()].extend((0..many).map(|_| ticket));
            }
            Step::GiveUp(which) => self.give_up(which),
            Step::Answer(which, outcome) if !self.under_way.is_empty() => {
                let permit = self.under_way.swap_remove(which.index(self.under_way.len()));
                self.answer(permit, outcome);
            }
            Step::Pass(time) => self.pass_to(self.now + time),
            Step::Wake => self.wake(),
            Step::Pause(wait, reason) => self.throttle.pause(self.now + wait, reason, self.now),
            Step::Resume => self.throttle.resume(self.now),
            Step::Answer(..) => {}
        }
        while self.grant_one() {}
    }

    fn give_up(&mut self, which: prop::sample::Index) {
        let waiting: Vec<Ticket> = self.lines.iter().flatten().copied().collect();
        if !waiting.is_empty() {
            let ticket = waiting[which.index(waiting.len())];
            self.throttle.cancel(ticket);
            self.lines[ticket.lane().index()].retain(|&other| other != ticket);
            self.gone.insert(ticket);
        }
    }

    fn answer(&mut self, permit: Permit, outcome: Outcome) {
        if let Outcome::Throttled { retry_after: Some(wait) } = outcome {
            self.told = self.told.max(self.now + wait);
        }
        self.throttle.finish(permit, outcome, self.now, 0.5);
    }

    fn pass_to(&mut self, when: Moment) {
        let rate = self.throttle.snapshot(self.now).rate.unwrap_or_default();
        self.books.earned += rate * when.since(self.now).as_secs_f64();
        self.now = when;
    }

    /// The named moment is exact: nothing leaves before it, something leaves at it.
    fn wake(&mut self) {
        let Some(wake) = self.throttle.next_wake(self.now) else { return };
        let almost = Moment::after_start(wake.since_start().saturating_sub(Duration::from_micros(1)));
        if almost > self.now {
            self.pass_to(almost);
            assert!(self.throttle.poll(almost).is_none(), "a permit before the wake it named");
        }
        self.pass_to(wake);
        assert!(self.grant_one(), "no permit at the wake {wake:?}");
    }

    fn grant_one(&mut self) -> bool {
        let before = self.throttle.snapshot(self.now);
        let Some((ticket, permit)) = self.throttle.poll(self.now) else { return false };
        assert!(!matches!(before.gate, GateState::Closed { .. }), "left through {:?}", before.gate);
        assert!(self.now >= self.told, "left although the source had asked to wait until {:?}", self.told);
        assert!(before.in_flight < before.in_flight_cap);
        let probing = self.under_way.iter().filter(|other| other.is_probe()).count();
        assert!(before.gate != GateState::Probing || (permit.is_probe() && probing == 0), "a second probe");
        let first = self.lines.iter_mut().find(|line| !line.is_empty()).and_then(VecDeque::pop_front);
        assert_eq!(first, Some(ticket), "out of turn");
        self.enter(permit.cost(), before.rate);
        self.under_way.push(permit);
        true
    }

    fn enter(&mut self, cost: f64, rate: Option<f64>) {
        let books = &mut self.books;
        books.least = books.least.min(books.left - books.earned);
        books.left += cost;
        let above = books.left - books.earned - books.least;
        assert!(rate.is_none() || above <= ALLOWANCE + 1e-6, "{above} above what the rate earned");
        self.recent.push_back((self.now, cost));
    }

    /// Answers everything well until nobody waits: whoever did not give up must have been served.
    fn drain(&mut self) {
        for _ in 0..5_000 {
            while let Some(permit) = self.under_way.pop() {
                self.answer(permit, Outcome::Success { latency: Duration::from_millis(50) });
            }
            if self.lines.iter().all(VecDeque::is_empty) {
                return;
            }
            if !self.grant_one() {
                let wake = self.throttle.next_wake(self.now).expect("somebody waits, nothing is in flight");
                self.pass_to(wake);
            }
        }
        panic!("{:?} wait for ever, at {} s", self.lines, seconds(self.now));
    }
}

fn within_window(recent: &VecDeque<(Moment, f64)>) -> bool {
    (0..recent.len()).all(|last| {
        let since = |&&(when, _): &&(Moment, f64)| recent[last].0.since(when) < WINDOW.length;
        recent.iter().take(last + 1).rev().take_while(since).map(|&(_, cost)| cost).sum::<f64>() <= WINDOW.limit
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_keeps_rate_gate_turns_and_waiters(steps in steps()) {
        let mut world = World::new(Rate::Limited { start: START, max: MAX }, Vec::new());
        steps.into_iter().for_each(|step| world.take(step));
        world.drain();
    }

    #[test]
    fn every_history_without_a_rate_keeps_windows_gate_turns_and_waiters(steps in steps()) {
        let mut world = World::new(Rate::Unlimited, vec![WINDOW]);
        steps.into_iter().for_each(|step| world.take(step));
        world.drain();
        prop_assert!(within_window(&world.recent));
    }
}
