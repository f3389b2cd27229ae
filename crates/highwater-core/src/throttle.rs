//! One account's throttle: who may send a request, and when. It owns the waiters, the rate, the windows, the gate and
//! the count of requests in flight. It never sleeps, reads a clock or rolls dice: the driver passes `now`, loops
//! [`Throttle::poll`] and asks again at [`Throttle::next_wake`], and gives every permit back.

mod bucket;
mod concurrency;
mod flight;
mod gate;
mod latency;
mod losses;
mod pace;
mod permit;
mod queue;
mod rate;
mod settings;
mod snapshot;
mod window;

pub use gate::{GateState, PauseReason};
pub use permit::{Outcome, Permit};
pub use queue::Ticket;
pub use settings::{Growth, InFlight, Learned, OnSlow, Policy, Rate, Settings, Window};
pub use snapshot::{ClosedFor, Limit, Snapshot, Totals};

use crate::{Lane, Moment};
use concurrency::Concurrency;
use flight::Flight;
use gate::{Gate, Opening};
use pace::Pace;
use queue::{Head, Queue};
use rate::AdaptiveRate;
use std::{num::NonZeroU32, time::Duration};
use window::SlidingWindow;

#[derive(Debug)]
pub struct Throttle {
    queue: Queue,
    gate: Gate,
    concurrency: Concurrency,
    windows: Vec<SlidingWindow>,
    /// None when the rate is unlimited.
    pace: Option<Pace>,
    flight: Flight,
    cut_factor: f64,
    /// Of the account's limits, when other processes use it too.
    share: f64,
    /// What the last poll found in the way, for the time until the next call.
    limit: Limit,
    now: Moment,
    totals: Totals,
}

impl Throttle {
    pub fn new(settings: Settings, now: Moment) -> Self {
        let Settings { rate, burst, in_flight, windows, policy } = settings;
        let pace = match rate {
            Rate::Unlimited => None,
            Rate::Limited { start, max } => Some(Pace::new(AdaptiveRate::new(start, max, policy, now), burst, now)),
        };
        Throttle {
            queue: Queue::default(),
            gate: Gate::default(),
            concurrency: Concurrency::new(in_flight, policy.on_slow, now),
            windows: windows.iter().map(SlidingWindow::new).collect(),
            pace,
            flight: Flight::default(),
            cut_factor: policy.cut,
            share: 1.0,
            limit: Limit::Nothing,
            now,
            totals: Totals::default(),
        }
    }

    /// Joins the line of a lane. The permit comes out of `poll`.
    pub fn request(&mut self, lane: Lane, cost: f64, now: Moment) -> Ticket {
        self.request_many(lane, cost, NonZeroU32::MIN, now)
    }

    /// Joins it once for several requests of the same cost. Their permits come out of `poll` one by one, under one ticket.
    pub fn request_many(&mut self, lane: Lane, cost: f64, permits: NonZeroU32, now: Moment) -> Ticket {
        self.tick(now);
        // Also turns a NaN into nothing.
        self.queue.join(lane, cost.max(0.0), permits)
    }

    /// A waiter gave up what it still waits for. A permit that it has already is given back as [`Outcome::Abandoned`].
    pub fn cancel(&mut self, ticket: Ticket) {
        self.queue.leave(ticket);
        if self.queue.is_empty() {
            self.limit = Limit::Nothing;
        }
    }

    /// The next permit that is due, one at a time; drivers loop until there is none.
    pub fn poll(&mut self, now: Moment) -> Option<(Ticket, Permit)> {
        let now = self.tick(now);
        let Some(head) = self.queue.head() else {
            self.limit = Limit::Nothing;
            return None;
        };
        self.limit = self.limit_of(head.cost, now);
        match self.limit {
            Limit::Nothing => return Some(self.grant(&head, now)),
            Limit::InFlight => self.concurrency.met_cap(),
            Limit::Gate | Limit::Window | Limit::Rate => {}
        }
        None
    }

    /// When `poll` has a permit if nothing else happens. None when nobody waits, or only a `finish` can help.
    pub fn next_wake(&self, now: Moment) -> Option<Moment> {
        let now = self.now.max(now);
        let head = self.queue.head()?;
        if self.concurrency.in_flight() >= self.cap() {
            return None;
        }
        let gate = self.gate.ready_at(now)?;
        Some(gate.max(self.window_ready_at(head.cost, now)).max(self.rate_ready_at(head.cost, now)))
    }

    /// Every permit comes back through here, whatever became of its request. `jitter` is in `[0, 1)`.
    pub fn finish(&mut self, permit: Permit, outcome: Outcome, now: Moment, jitter: f64) {
        let now = self.tick(now);
        self.concurrency.release();
        if permit.probe {
            self.gate.probe_returned();
        }
        match outcome {
            Outcome::Success { latency } => self.succeeded(&permit, latency, now),
            Outcome::Throttled { retry_after } => self.throttled(&permit, retry_after, now, jitter),
            Outcome::Failed | Outcome::Lost | Outcome::Abandoned => {}
        }
        if outcome != Outcome::Abandoned {
            self.concurrency.ended(outcome == Outcome::Lost, permit.started, now);
        }
    }

    /// Closes the gate from outside; it is never moved to an earlier end.
    pub fn pause(&mut self, until: Moment, reason: PauseReason, now: Moment) {
        let now = self.tick(now);
        let was_closed = self.gate.is_closed_by_quota();
        if now < until {
            self.gate.pause(until, reason);
            self.note_closing(was_closed);
        }
    }

    /// Ends an outage or an operator's pause. What the source itself asked for is still waited out.
    pub fn resume(&mut self, now: Moment) {
        let now = self.tick(now);
        self.concurrency.paused(now);
        self.gate.resume();
    }

    pub fn snapshot(&self, now: Moment) -> Snapshot {
        let now = self.now.max(now);
        Snapshot {
            rate: self.rate(),
            ceiling: self.pace.as_ref().and_then(|pace| pace.rate.ceiling()),
            in_flight: self.concurrency.in_flight(),
            in_flight_cap: self.cap(),
            waiting: Lane::ALL.map(|lane| self.queue.waiting(lane)),
            gate: self.gate.state(now),
            limit: self.queue.head().map_or(Limit::Nothing, |head| self.limit_of(head.cost, now)),
            totals: self.totals_at(now),
        }
    }

    /// What to hand to the next process for [`Throttle::recall`]: about the account, not about our share of it.
    pub fn learned(&self) -> Option<Learned> {
        let Learned { rate, ceiling } = self.pace.as_ref()?.rate.learned();
        Some(Learned { rate: rate / self.share, ceiling: ceiling.map(|ceiling| ceiling / self.share) })
    }

    /// Takes up what an earlier process found out about the account.
    pub fn recall(&mut self, learned: Learned, now: Moment) {
        let now = self.tick(now);
        let Learned { rate, ceiling } = learned;
        let ours = Learned { rate: rate * self.share, ceiling: ceiling.map(|ceiling| ceiling * self.share) };
        if let Some(pace) = &mut self.pace {
            pace.recall(ours, now);
        }
    }

    /// This process may use so much of the account from now on, above 0 and at most 1.
    pub fn take_share(&mut self, share: f64, now: Moment) {
        assert!(share > 0.0 && share <= 1.0, "a share is a part of the whole");
        let now = self.tick(now);
        let factor = share / self.share;
        self.share = share;
        self.windows.iter_mut().for_each(|window| window.scale(factor));
        if let Some(pace) = &mut self.pace {
            pace.scale(factor, now);
        }
    }

    /// The source has told its quota. What was spent of it before is not known; a window of that length that was set is
    /// kept.
    pub fn declare(&mut self, window: Window, now: Moment) {
        let now = self.tick(now);
        if self.windows.iter().any(|known| known.is_of(window.length)) {
            return;
        }
        let limit = window.limit * self.share;
        self.windows.push(SlidingWindow::new(&Window { limit, ..window }));
        if let Some(pace) = &mut self.pace {
            pace.keep_below(limit / window.length.as_secs_f64(), now);
        }
    }

    /// Another process of the account was refused: its news are ours, unless we have just had them ourselves.
    pub fn cut_elsewhere(&mut self, now: Moment) {
        let now = self.tick(now);
        if !self.gate.is_closed_by_quota() && self.flight.is_news(now, now) {
            self.slow_down(now);
        }
    }

    /// Callers read the clock before they take the lock, so `now` may be a little behind.
    fn tick(&mut self, now: Moment) -> Moment {
        let elapsed = now.since(self.now);
        if !elapsed.is_zero() {
            self.totals = self.totals_at(now);
        }
        self.now = self.now.max(now);
        if let Some(pace) = &mut self.pace {
            if self.limit == Limit::Rate {
                pace.rate.waited(elapsed);
            }
            if !self.queue.is_empty() && !self.gate.is_held_outside() {
                pace.wanted(elapsed);
            }
        }
        self.now
    }

    /// Between two calls the gate only ever opens by itself, at a time it knows.
    fn totals_at(&self, now: Moment) -> Totals {
        let mut totals = self.totals;
        if let GateState::Closed { until, reason } = self.gate.state(self.now) {
            totals.closed.add(reason, until.min(now).since(self.now));
        }
        totals
    }

    /// The rate comes last: it is named, and grows, only when nothing else is in the way.
    fn limit_of(&self, cost: f64, now: Moment) -> Limit {
        if self.gate.ready_at(now) != Some(now) {
            Limit::Gate
        } else if self.concurrency.in_flight() >= self.cap() {
            Limit::InFlight
        } else if self.window_ready_at(cost, now) > now {
            Limit::Window
        } else if self.rate_ready_at(cost, now) > now {
            Limit::Rate
        } else {
            Limit::Nothing
        }
    }

    fn grant(&mut self, head: &Head, now: Moment) -> (Ticket, Permit) {
        let Head { ticket, cost } = *head;
        self.queue.serve(head);
        self.concurrency.take();
        self.windows.iter_mut().for_each(|window| window.record(cost, now));
        if let Some(pace) = &mut self.pace {
            pace.spend(cost, now);
        }
        self.totals.granted += 1;
        let probe = self.gate.pass(now);
        (ticket, Permit { started: now, cost, lane: ticket.lane(), probe })
    }

    fn succeeded(&mut self, permit: &Permit, latency: Duration, now: Moment) {
        self.concurrency.succeeded(latency, permit.cost, now);
        if let Some(pace) = &mut self.pace {
            pace.succeeded(permit.cost, now);
        }
        let opening = self.gate.succeeded(permit.probe, now);
        if opening != Opening::None {
            self.reopen(opening, now);
        }
    }

    fn reopen(&mut self, opening: Opening, now: Moment) {
        self.flight.begin(now);
        self.concurrency.paused(now);
        match &mut self.pace {
            Some(pace) if opening == Opening::AfterQuota => pace.reopened(now),
            Some(_) => {}
            None => self.concurrency.restart(),
        }
    }

    fn throttled(&mut self, permit: &Permit, retry_after: Option<Duration>, now: Moment, jitter: f64) {
        self.totals.throttled += 1;
        let was_closed = self.gate.is_closed_by_quota();
        self.gate.refused(permit.probe, retry_after, now, jitter);
        if let Some(pace) = &mut self.pace {
            pace.rate.refused(now);
        }
        self.note_closing(was_closed);
        if !self.gate.is_closed_by_quota() && self.flight.is_news(permit.started, now) {
            self.cut(now);
        }
    }

    fn note_closing(&mut self, was_closed: bool) {
        if let Some(pace) = &mut self.pace
            && self.gate.is_closed_by_quota()
            && !was_closed
        {
            pace.rate.stopped();
        }
    }

    fn cut(&mut self, now: Moment) {
        self.totals.cuts += 1;
        self.slow_down(now);
    }

    fn slow_down(&mut self, now: Moment) {
        self.flight.begin(now);
        match &mut self.pace {
            Some(pace) => pace.cut(now),
            None => self.concurrency.shrink(self.cut_factor),
        }
    }

    fn rate(&self) -> Option<f64> {
        self.pace.as_ref().map(|pace| pace.rate.current())
    }

    fn cap(&self) -> u32 {
        self.concurrency.cap(self.rate())
    }

    fn window_ready_at(&self, cost: f64, now: Moment) -> Moment {
        self.windows.iter().map(|window| window.ready_at(cost, now)).fold(now, Moment::max)
    }

    fn rate_ready_at(&self, cost: f64, now: Moment) -> Moment {
        self.pace.as_ref().map_or(now, |pace| pace.ready_at(cost, now))
    }
}
