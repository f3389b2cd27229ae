//! A discrete-event simulation: workers with endless work, one throttle, one source. It checks in every run that
//! nothing leaves before the time the source has asked for, on its own books and not on the gate's.

use crate::{
    quota::{Answer, Quota},
    random::Random,
};
use highwater_core::{
    Lane, Moment,
    throttle::{GateState, Outcome, Permit, Settings, Throttle, Ticket},
};
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

pub(crate) const MEDIAN_LATENCY: f64 = 0.1;

pub(crate) struct Simulation<Q> {
    pub(crate) throttle: Throttle,
    pub(crate) log: Log,
    source: Q,
    random: Random,
    /// By nanosecond and order of entry.
    events: BTreeMap<(u128, u64), Event>,
    entered: u64,
    waiting: HashMap<Ticket, f64>,
    asked_to_wait_until: f64,
    timer: Duration,
}

/// What happened, in seconds.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) sent: Vec<f64>,
    pub(crate) accepted: Vec<f64>,
    pub(crate) refused: Vec<f64>,
    /// Wait for a permit, by lane and time of the grant.
    pub(crate) waits: Vec<(Lane, f64, f64)>,
}

enum Event {
    Ask(Lane),
    Arrive(Permit),
    Answer(Permit, Outcome),
    Wake,
}

impl<Q: Quota> Simulation<Q> {
    pub(crate) fn new(settings: Settings, source: Q, workers: usize, seed: u64) -> Self {
        let mut simulation = Simulation {
            throttle: Throttle::new(settings, Moment::START),
            log: Log::default(),
            source,
            random: Random::new(seed),
            events: BTreeMap::new(),
            entered: 0,
            waiting: HashMap::new(),
            asked_to_wait_until: 0.0,
            timer: Duration::ZERO,
        };
        (0..workers).for_each(|_| simulation.schedule(Moment::START, Event::Ask(Lane::Backfill)));
        simulation
    }

    /// Wakes come at the next tick of a timer of this width, instead of exactly.
    pub(crate) fn with_timer(mut self, timer: Duration) -> Self {
        self.timer = timer;
        self
    }

    pub(crate) fn ask_at(&mut self, seconds: f64, lane: Lane) {
        self.schedule(at(seconds), Event::Ask(lane));
    }

    pub(crate) fn run_until(&mut self, seconds: f64) {
        let end = at(seconds).since_start().as_nanos();
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 < end
        {
            let ((nanos, _), event) = entry.remove_entry();
            let now = Moment::after_start(Duration::from_nanos(
                u64::try_from(nanos).expect("a run is shorter than centuries"),
            ));
            self.handle(event, now);
            self.drive(now);
        }
    }

    fn handle(&mut self, event: Event, now: Moment) {
        match event {
            Event::Ask(lane) => {
                let ticket = self.throttle.request(lane, 1.0, now);
                self.waiting.insert(ticket, seconds(now));
            }
            Event::Arrive(permit) => self.arrive(permit, now),
            Event::Answer(permit, outcome) => self.answer(permit, outcome, now),
            Event::Wake => {}
        }
    }

    fn drive(&mut self, now: Moment) {
        while let Some((ticket, permit)) = self.throttle.poll(now) {
            self.send(ticket, permit, now);
        }
        if let Some(wake) = self.throttle.next_wake(now) {
            assert!(wake > now, "poll had nothing and next_wake says now");
            self.schedule(self.next_tick(wake), Event::Wake);
        }
    }

    fn send(&mut self, ticket: Ticket, permit: Permit, now: Moment) {
        let gate = self.throttle.snapshot(now).gate;
        assert!(!matches!(gate, GateState::Closed { .. }), "sent at {now:?} through {gate:?}");
        let told = self.asked_to_wait_until;
        assert!(seconds(now) >= told - 1e-6, "sent at {now:?}, the source had asked to wait until {told}");
        let since = self.waiting.remove(&ticket).expect("a ticket is served once");
        self.log.waits.push((permit.lane(), seconds(now), seconds(now) - since));
        self.log.sent.push(seconds(now));
        let half = self.random.latency(MEDIAN_LATENCY) / 2.0;
        self.schedule(now + Duration::from_secs_f64(half), Event::Arrive(permit));
    }

    fn arrive(&mut self, permit: Permit, now: Moment) {
        let way_back = now.since(permit.started());
        let outcome = match self.source.judge(seconds(now)) {
            Answer::Accepted => {
                self.log.accepted.push(seconds(now));
                Outcome::Success { latency: way_back * 2 }
            }
            Answer::Refused(wait) => {
                self.log.refused.push(seconds(now));
                Outcome::Throttled { retry_after: wait.map(Duration::from_secs_f64) }
            }
        };
        self.schedule(now + way_back, Event::Answer(permit, outcome));
    }

    fn answer(&mut self, permit: Permit, outcome: Outcome, now: Moment) {
        if let Outcome::Throttled { retry_after: Some(wait) } = outcome {
            self.asked_to_wait_until = self.asked_to_wait_until.max(seconds(now + wait));
        }
        if permit.lane() == Lane::Backfill {
            self.schedule(now, Event::Ask(Lane::Backfill));
        }
        let jitter = self.random.fraction();
        self.throttle.finish(permit, outcome, now, jitter);
    }

    fn next_tick(&self, wake: Moment) -> Moment {
        if self.timer.is_zero() {
            return wake;
        }
        let ticks = wake.since_start().as_nanos().div_ceil(self.timer.as_nanos());
        at(ticks as f64 * self.timer.as_secs_f64()).max(wake)
    }

    fn schedule(&mut self, when: Moment, event: Event) {
        // A wake that is due at the same moment as another is the same wake.
        let order = if matches!(event, Event::Wake) { u64::MAX } else { self.entered };
        self.entered += 1;
        self.events.insert((when.since_start().as_nanos(), order), event);
    }
}

impl Log {
    /// Accepted per second in a stretch of time.
    pub(crate) fn accepted_rate(&self, from: f64, to: f64) -> f64 {
        count(&self.accepted, from, to) as f64 / (to - from)
    }

    /// Share of the requests of a stretch that the source refused.
    pub(crate) fn refused_share(&self, from: f64, to: f64) -> f64 {
        let refused = count(&self.refused, from, to) as f64;
        refused / (refused + count(&self.accepted, from, to) as f64).max(1.0)
    }

    /// Seconds after `from` until a stretch of five first reached `rate`.
    pub(crate) fn reached(&self, rate: f64, from: f64) -> f64 {
        let steps = (0..10_000).map(|step| f64::from(step) * 0.5);
        steps
            .take_while(|wait| from + wait < 5_000.0)
            .find(|wait| self.stretch_at(from + wait) >= rate)
            .unwrap_or(f64::MAX)
    }

    fn stretch_at(&self, end: f64) -> f64 {
        self.accepted_rate((end - 5.0).max(0.0), end)
    }
}

pub(crate) fn at(seconds: f64) -> Moment {
    Moment::after_start(Duration::from_secs_f64(seconds))
}

pub(crate) fn seconds(moment: Moment) -> f64 {
    moment.since_start().as_secs_f64()
}

/// Times are in order.
pub(crate) fn count(times: &[f64], from: f64, to: f64) -> usize {
    times.partition_point(|&time| time < to) - times.partition_point(|&time| time < from)
}
