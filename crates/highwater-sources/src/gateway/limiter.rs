//! Drives the throttle of one account: hands its permits to those who wait, gives them back, and keeps the one timer.
//! Grants are made under the lock by whoever changes something, so that a permit that is due needs no timer.

mod line;

use std::{
    collections::BTreeMap,
    future::pending,
    num::NonZeroU32,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use highwater_core::{
    AccountReport, Lane, Moment, Pause,
    throttle::{GateState, Learned, Limit, Outcome, PauseReason, Permit, Settings, Snapshot, Throttle, Ticket, Window},
};
pub use line::Line;
use line::Waiter;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::Clock;

/// Numbers in `[0, 1)`.
pub type Jitter = Box<dyn Fn() -> f64 + Send + Sync>;

/// Timers cannot hold what a `Retry-After` can: a longer wait is taken in pieces.
const TIMER_MAX: Duration = Duration::from_secs(24 * 3600);

/// How long a probe is left alone when a refusal does not say.
const PROBE_REFUSED: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no more requests are made: the run is stopping")]
pub struct Stopped;

pub(super) struct Limiter {
    clock: Clock,
    jitter: Jitter,
    /// Shared by all who send; held for a few hundred nanoseconds, never over an await.
    state: Mutex<State>,
    /// The driver sleeps until a time that is too late now.
    moved: Notify,
}

struct State {
    throttle: Throttle,
    /// In an order that is the same in every run: a stop wakes all of them.
    waiters: BTreeMap<Ticket, Waiter>,
    /// What the driver sleeps until.
    armed: Option<Moment>,
    /// The end of the longest wait the source asked for. An outage may cover it up in the throttle's own state.
    quota_until: Moment,
    stop: CancellationToken,
}

/// What became known of the account elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    None,
    /// Another process was told to slow down.
    Cut,
}

/// A permit in use. Dropped, it is given back as abandoned.
#[must_use]
pub struct Pass<'a> {
    limiter: &'a Limiter,
    permit: Option<Permit>,
}

enum Place<'a> {
    Served(Pass<'a>),
    InLine(Line<'a>),
}

impl Limiter {
    pub(super) fn new(settings: Settings, clock: Clock, jitter: Jitter) -> Self {
        let throttle = Throttle::new(settings, clock.moment());
        let state = State {
            throttle,
            waiters: BTreeMap::new(),
            armed: None,
            quota_until: Moment::START,
            stop: CancellationToken::new(),
        };
        Limiter { clock, jitter, state: Mutex::new(state), moved: Notify::new() }
    }

    pub(super) async fn acquire(&self, lane: Lane, cost: f64) -> Result<Pass<'_>, Stopped> {
        match self.join(lane, cost)? {
            Place::Served(pass) => Ok(pass),
            Place::InLine(mut line) => line.next().await,
        }
    }

    /// A place in the line for several requests of the same cost. After a stop it is one where nothing comes.
    pub(super) fn line(&self, lane: Lane, cost: f64, permits: NonZeroU32) -> Line<'_> {
        let now = self.clock.moment();
        let mut state = self.state();
        let ticket = state.throttle.request_many(lane, cost, permits, now);
        if state.stop.is_cancelled() {
            state.throttle.cancel(ticket);
            return Line::new(self, ticket);
        }
        state.waiters.insert(ticket, Waiter::default());
        state.grant(now, None);
        self.rearm(&mut state, now);
        Line::new(self, ticket)
    }

    pub(super) async fn drive(&self) {
        let stop = self.stopping();
        while !stop.is_cancelled() {
            let wake = self.turn();
            let timer = async {
                match wake {
                    Some(moment) => self.clock.sleep_until(moment).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = self.moved.notified() => {}
                () = timer => {}
            }
        }
    }

    /// Returns once nothing but an outage keeps requests back.
    pub(super) async fn quota_over(&self) -> Result<(), Stopped> {
        let stop = self.stopping();
        loop {
            let now = self.clock.moment();
            let until = self.state().held_until(now);
            if stop.is_cancelled() {
                return Err(Stopped);
            }
            if until <= now {
                return Ok(());
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = self.clock.sleep_until(until.min(now + TIMER_MAX)) => {}
            }
        }
    }

    /// A request without a permit was refused.
    pub(super) fn note_throttled(&self, retry_after: Option<Duration>) {
        let now = self.clock.moment();
        let (wait, reason) = match retry_after {
            Some(wait) => (wait, PauseReason::RetryAfter),
            None => (PROBE_REFUSED, PauseReason::Refusals),
        };
        self.change(now, |state| {
            state.quota_until = state.quota_until.max(now + wait);
            state.throttle.pause(now + wait, reason, now);
        });
    }

    pub(super) fn declare(&self, window: Window) {
        let now = self.clock.moment();
        self.change(now, |state| state.throttle.declare(window, now));
    }

    pub(super) fn stop(&self) {
        let now = self.clock.moment();
        let mut state = self.state();
        state.stop.cancel();
        // Whoever waits wakes up, is not among the waiters any more, and sees that nothing will come.
        while let Some((ticket, waiter)) = state.waiters.pop_first() {
            state.leave(ticket, waiter.end(), now);
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state().stop.is_cancelled()
    }

    /// Whoever waited for the end of an outage is gone: the next request finds out whether it goes on.
    pub(super) fn reopen(&self) {
        self.state().stop = CancellationToken::new();
        self.resume();
    }

    fn stopping(&self) -> CancellationToken {
        self.state().stop.clone()
    }

    pub(super) fn pause(&self, until: Moment, reason: PauseReason) {
        let now = self.clock.moment();
        self.change(now, |state| state.throttle.pause(until, reason, now));
    }

    pub(super) fn resume(&self) {
        let now = self.clock.moment();
        self.change(now, |state| state.throttle.resume(now));
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.state().throttle.snapshot(self.clock.moment())
    }

    pub(super) fn report(&self) -> AccountReport {
        let now = self.clock.moment();
        let state = self.state();
        let snapshot = state.throttle.snapshot(now);
        let pause = match snapshot.gate {
            GateState::Closed { until, reason: reason @ (PauseReason::RetryAfter | PauseReason::Refusals) } => {
                Some(Pause { left: until.since(now), reason })
            }
            _ => None,
        };
        AccountReport {
            demand: if snapshot.limit == Limit::Nothing && snapshot.in_flight == 0 { 0.0 } else { 1.0 },
            rate: snapshot.rate,
            cuts: snapshot.totals.cuts,
            pause,
            learned: state.throttle.learned(),
        }
    }

    pub(super) fn recall(&self, learned: Learned) {
        let now = self.clock.moment();
        self.change(now, |state| state.throttle.recall(learned, now));
    }

    pub(super) fn adopt(&self, share: f64, news: News, pause: Option<Pause>) {
        let now = self.clock.moment();
        self.change(now, |state| {
            state.throttle.take_share(share, now);
            if news == News::Cut {
                state.throttle.cut_elsewhere(now);
            }
            if let Some(pause) = pause {
                state.quota_until = state.quota_until.max(now + pause.left);
                state.throttle.pause(now + pause.left, pause.reason, now);
            }
        });
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    fn join(&self, lane: Lane, cost: f64) -> Result<Place<'_>, Stopped> {
        let now = self.clock.moment();
        let mut state = self.state();
        if state.stop.is_cancelled() {
            return Err(Stopped);
        }
        let ticket = state.throttle.request(lane, cost, now);
        let place = match state.grant(now, Some(ticket)) {
            Some(permit) => Place::Served(Pass { limiter: self, permit: Some(permit) }),
            None => {
                state.waiters.insert(ticket, Waiter::default());
                Place::InLine(Line::new(self, ticket))
            }
        };
        self.rearm(&mut state, now);
        Ok(place)
    }

    fn finish(&self, permit: Permit, outcome: Outcome) {
        let now = self.clock.moment();
        let jitter = if matches!(outcome, Outcome::Throttled { .. }) { (self.jitter)() } else { 0.0 };
        self.change(now, |state| {
            if let Outcome::Throttled { retry_after: Some(wait) } = outcome {
                state.quota_until = state.quota_until.max(now + wait);
            }
            state.throttle.finish(permit, outcome, now, jitter);
        });
    }

    /// Makes a change, and hands out what it made due.
    fn change(&self, now: Moment, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        state.grant(now, None);
        self.rearm(&mut state, now);
    }

    /// One turn of the driver: hands out what is due, and says when to come back.
    fn turn(&self) -> Option<Moment> {
        let now = self.clock.moment();
        let mut state = self.state();
        state.grant(now, None);
        state.armed = state.throttle.next_wake(now).map(|wake| wake.min(now + TIMER_MAX));
        state.armed
    }

    fn rearm(&self, state: &mut State, now: Moment) {
        if state.waiters.is_empty() {
            return;
        }
        if let Some(wake) = state.throttle.next_wake(now)
            && state.armed.is_none_or(|armed| wake < armed)
        {
            state.armed = Some(wake);
            self.moved.notify_one();
        }
    }

    /// A panic elsewhere cannot leave the state half changed: the throttle does no I/O and calls nobody back.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Hands out all permits that are due. The one for `own`, who is not in the line yet, is returned.
    fn grant(&mut self, now: Moment, own: Option<Ticket>) -> Option<Permit> {
        let mut mine = None;
        while let Some((ticket, permit)) = self.throttle.poll(now) {
            if Some(ticket) == own {
                mine = Some(permit);
                continue;
            }
            self.waiters.get_mut(&ticket).expect("who is not among the waiters has left the line").give(permit);
        }
        mine
    }

    /// A waiter who is gone gives up what it waits for, and gives back what it has.
    fn leave(&mut self, ticket: Ticket, unused: impl IntoIterator<Item = Permit>, now: Moment) {
        self.throttle.cancel(ticket);
        for permit in unused {
            self.throttle.finish(permit, Outcome::Abandoned, now, 0.0);
        }
    }

    fn held_until(&self, now: Moment) -> Moment {
        match self.throttle.snapshot(now).gate {
            GateState::Closed { until, reason } if reason != PauseReason::Outage => until.max(self.quota_until),
            _ => self.quota_until,
        }
    }
}

impl Pass<'_> {
    pub(super) fn cost(&self) -> f64 {
        self.permit.as_ref().map_or(0.0, Permit::cost)
    }

    pub(super) fn finish(mut self, outcome: Outcome) {
        if let Some(permit) = self.permit.take() {
            self.limiter.finish(permit, outcome);
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.limiter.finish(permit, Outcome::Abandoned);
        }
    }
}
