//! One open stream, without sockets and clocks: [`EventStream::poll`] is told the time and says what to send, or when
//! to ask again. The same stream runs over TCP and in process.

mod drive;
mod frames;
mod opening;

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::watch;

use self::frames::{AUTH_REVOKED, CANCEL, Frame, FrameKind, KEEP_ALIVE};
pub(super) use self::opening::Attempts;
pub use self::opening::{Moved, Opening};
use super::{
    HnSim,
    control::StreamOrder,
    life::{Entry, State},
    route::{Endpoint, Route},
};
use crate::rng::{Purpose, scale};

#[derive(Debug)]
pub struct EventStream {
    sim: Arc<HnSim>,
    /// A path of the API.
    target: String,
    /// Among those to the same kind of node.
    number: u64,
    /// What the client holds if it has heard everything: at first, what the node was when the stream was opened.
    told: Bytes,
    greeted: bool,
    cursor: u64,
    events: u32,
    writes: usize,
    outbox: VecDeque<Frame>,
    end: Option<StreamStep>,
    keep_alive_at: Duration,
    woken: watch::Receiver<()>,
}

/// What a stream does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamTurn {
    Now(StreamStep),
    /// Nothing before that, unless something is done by hand.
    Wait {
        until: Option<Duration>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamStep {
    Send(Bytes),
    End,
    /// The connection breaks.
    Reset,
}

impl EventStream {
    fn new(sim: Arc<HnSim>, target: String, number: u64, now: Duration) -> Self {
        sim.stats.streams.join();
        let state = sim.live(now);
        let (told, cursor) = (value(&sim, &state, &target, now), state.log.end());
        drop(state);
        EventStream {
            target,
            number,
            told,
            greeted: false,
            cursor,
            events: 0,
            writes: 0,
            outbox: VecDeque::new(),
            end: None,
            keep_alive_at: now + sim.plan.stream.keep_alive(),
            woken: sim.life.woken(),
            sim,
        }
    }

    pub fn poll(&mut self, now: Duration) -> StreamTurn {
        if let Some(step) = self.pop() {
            return StreamTurn::Now(step);
        }
        let sim = Arc::clone(&self.sim);
        let state = sim.live(now);
        self.gather(&state, now);
        match self.pop() {
            Some(step) => StreamTurn::Now(step),
            None => StreamTurn::Wait { until: self.wait(&state) },
        }
    }

    fn pop(&mut self) -> Option<StreamStep> {
        let Some(frame) = self.outbox.front_mut() else { return self.end.clone() };
        let split = self.sim.plan.stream.split as usize;
        let len = if split == 0 { frame.bytes.len() } else { split.min(frame.bytes.len()) };
        let piece = frame.bytes.split_to(len);
        if frame.bytes.is_empty() {
            let kind = frame.kind;
            self.outbox.pop_front();
            self.count(kind);
        }
        Some(StreamStep::Send(piece))
    }

    fn count(&self, kind: FrameKind) {
        match kind {
            FrameKind::Event => self.sim.stats.stream_events.fetch_add(1, Relaxed),
            FrameKind::KeepAlive => self.sim.stats.stream_keep_alives.fetch_add(1, Relaxed),
            FrameKind::Broken => 0,
        };
    }

    /// Fills the outbox with what has come up.
    fn gather(&mut self, state: &State, now: Duration) {
        if let Some(order) = self.order(state) {
            return self.obey(order, state, now);
        }
        if self.is_silent(state) {
            return;
        }
        if now >= self.keep_alive_at {
            self.outbox.push_back(Frame { bytes: KEEP_ALIVE, kind: FrameKind::KeepAlive });
            let every = self.sim.plan.stream.keep_alive();
            while self.keep_alive_at <= now {
                self.keep_alive_at += every;
            }
        }
        if state.log.has_lost(self.cursor) {
            self.told = self.value(state, now);
            self.cursor = state.log.end();
            self.greeted = false;
        }
        if !self.greeted {
            let greeting = frames::put("/", &self.told);
            self.tell(&greeting);
            self.greeted = true;
        }
        self.tell_on(state, now);
        self.cursor = state.log.end();
    }

    fn order(&self, state: &State) -> Option<StreamOrder> {
        state.log.since(self.cursor).find_map(|entry| match entry {
            Entry::Ordered(order) => Some(*order),
            _ => None,
        })
    }

    fn obey(&mut self, order: StreamOrder, state: &State, now: Duration) {
        let farewell = |bytes| Frame { bytes, kind: FrameKind::Event };
        match order {
            StreamOrder::Cut => self.cut(&frames::put("/", &self.value(state, now))),
            StreamOrder::Cancel => self.outbox.push_back(farewell(CANCEL)),
            StreamOrder::AuthRevoked => self.outbox.push_back(farewell(AUTH_REVOKED)),
            StreamOrder::Drop | StreamOrder::Silence | StreamOrder::Restore => {}
        }
        self.end.get_or_insert(StreamStep::End);
    }

    fn is_silent(&self, state: &State) -> bool {
        state.silent || self.sim.plan.stream.silent_after_events.is_some_and(|after| self.events >= after)
    }

    fn tell_on(&mut self, state: &State, now: Duration) {
        match Route::parse(&self.target) {
            Route::Api { endpoint: Endpoint::Updates, .. } => self.tell_each(state, |entry| match entry {
                Entry::Wrote(value) => Some(value.clone()),
                _ => None,
            }),
            Route::Api { endpoint: Endpoint::MaxItem, .. } => self.tell_each(state, |entry| match entry {
                Entry::Grew(max) => Some(max.to_string().into()),
                _ => None,
            }),
            _ => self.tell_change(self.value(state, now)),
        }
    }

    fn tell_each(&mut self, state: &State, value: impl Fn(&Entry) -> Option<Bytes>) {
        let writes: Vec<Bytes> = state.log.since(self.cursor).filter_map(value).collect();
        writes.into_iter().for_each(|value| self.tell_write(value));
    }

    fn tell_change(&mut self, value: Bytes) {
        if self.told != value {
            self.tell_write(value);
        }
    }

    fn tell_write(&mut self, value: Bytes) {
        let before = std::mem::replace(&mut self.told, value.clone());
        let forms = &self.sim.plan.stream.forms;
        let form = forms[self.writes % forms.len()];
        self.writes += 1;
        frames::write(form, &before, &value).iter().for_each(|event| self.tell(event));
    }

    /// One event, unless the plan has the stream end or fall silent before.
    fn tell(&mut self, event: &Bytes) {
        let plan = &self.sim.plan.stream;
        let reached = |limit: Option<u32>| limit.is_some_and(|limit| self.events >= limit);
        if self.end.is_some() || reached(plan.silent_after_events) {
            return;
        }
        if reached(plan.cut_after_events.map(Into::into)) {
            return self.cut(event);
        }
        let dropped = plan.drop_after_events.is_some_and(|limit| self.events + 1 >= limit.get());
        self.outbox.push_back(Frame { bytes: event.clone(), kind: FrameKind::Event });
        self.events += 1;
        if dropped {
            self.end = Some(StreamStep::End);
        }
    }

    /// Breaks off somewhere within `event`.
    fn cut(&mut self, event: &Bytes) {
        let hash = self.sim.world.seed().hash(Purpose::Stream, self.number);
        let sent = 1 + scale(hash, event.len() as u64 - 1) as usize;
        self.outbox.push_back(Frame { bytes: event.slice(..sent), kind: FrameKind::Broken });
        self.end = Some(StreamStep::Reset);
    }

    fn value(&self, state: &State, now: Duration) -> Bytes {
        value(&self.sim, state, &self.target, now)
    }

    /// A silent stream waits for a hand.
    fn wait(&self, state: &State) -> Option<Duration> {
        if self.is_silent(state) {
            return None;
        }
        let next = self.sim.next_event(state).unwrap_or(self.keep_alive_at);
        Some(next.min(self.keep_alive_at))
    }
}

fn value(sim: &HnSim, state: &State, target: &str, now: Duration) -> Bytes {
    match Route::parse(target) {
        Route::Api { endpoint, .. } => sim.value(state, endpoint, now),
        Route::Page(_) => unreachable!("pages are not streamed"),
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.sim.stats.streams.leave();
    }
}
