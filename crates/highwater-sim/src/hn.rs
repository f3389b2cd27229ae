//! The Hacker News API, simulated: endpoints, bodies, faults and the truth. No I/O and no clock: [`HnSim::answer`] is
//! told how long ago the simulation started.
//!
//! Pages of its own, free of faults and quota: `/_sim/stats` (counters as JSON) and `/_sim/truth?from=&to=` (what a
//! correct mirror holds, as JSON lines).

mod head;
mod item;
mod json;
mod lists;
mod loaded;
mod reply;
mod route;
mod tree;
mod truth;
mod users;
mod words;
mod world;

use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

use bytes::Bytes;
use http::StatusCode;

use self::{
    head::Head,
    reply::{Form, NULL, error_message},
    route::{Endpoint, Page, Route},
};
pub use self::{
    loaded::LoadError,
    tree::Kind,
    truth::{Expected, TRUTH_LINES_MAX},
    world::World,
};
use crate::{
    answer::{Answer, Message, Reply, SimRequest},
    dice::{Dice, Key},
    fault::Fault,
    plan::FaultPlan,
    quota::{ClosedPeriod, Quota, Refusal},
    rng::Share,
    stats::{Stats, Tally},
};

/// Request counters for what is not an item: eight fixed pages, and profiles by hash.
const PAGES: usize = 1_024;
const FIRST_PROFILE: u64 = 16;

#[derive(Debug)]
pub struct HnSim {
    world: World,
    plan: FaultPlan,
    dice: Dice,
    head: Head,
    quota: Option<Quota>,
    closed: ClosedPeriod,
    items: Tally,
    pages: Vec<AtomicU32>,
    stats: Stats,
}

impl HnSim {
    pub fn new(world: World, plan: FaultPlan) -> Self {
        let (seed, ids) = (world.seed(), world.ids());
        HnSim {
            dice: Dice::new(seed, &plan),
            head: Head::new(seed, &plan.head, &ids),
            quota: Quota::new(&plan.quota),
            closed: ClosedPeriod::default(),
            items: Tally::new(ids.count()),
            pages: (0..PAGES).map(|_| AtomicU32::new(0)).collect(),
            stats: Stats::new(Endpoint::NAMES),
            world: world.with_odd(Share::new(plan.body.odd).unwrap_or(Share::NONE)),
            plan,
        }
    }

    pub fn answer(&self, request: &SimRequest<'_>, now: Duration) -> Answer {
        match Route::parse(request.target) {
            Route::Page(page) => Answer { delay: Duration::ZERO, reply: Reply::Full(self.page(page)) },
            Route::Api { endpoint, print } => self.api(endpoint, Form { print, encoding: request.encoding }, now),
        }
    }

    pub const fn world(&self) -> &World {
        &self.world
    }

    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    fn page(&self, page: Page) -> Message {
        match page {
            Page::Stats => {
                let report = serde_json::to_vec(&self.stats.report());
                Message::json(report.expect("counters are plain numbers").into())
            }
            Page::Truth { from, to } => self.truth_page(from, to),
            Page::Unknown => error_message(StatusCode::NOT_FOUND),
        }
    }

    fn api(&self, endpoint: Endpoint<'_>, form: Form, now: Duration) -> Answer {
        self.stats.count_endpoint(endpoint.index());
        if self.closed.contains(now) {
            self.stats.retry_after_violations.fetch_add(1, Relaxed);
        }
        let answer = match self.quota.as_ref().map_or(Ok(()), |quota| quota.take(now)) {
            Ok(()) => self.admitted(endpoint, form, now),
            Err(refusal) => self.refused(refusal),
        };
        self.remember_retry_after(&answer, now);
        answer
    }

    fn refused(&self, refusal: Refusal) -> Answer {
        self.stats.refused_by_quota.fetch_add(1, Relaxed);
        let message = error_message(StatusCode::TOO_MANY_REQUESTS).with_retry_after(refusal.retry_after);
        self.stats.count_reply(Some(message.status), None);
        let delay = Duration::from_millis(u64::from(self.plan.latency.fixed_ms));
        Answer { delay, reply: Reply::Full(message) }
    }

    fn admitted(&self, endpoint: Endpoint<'_>, form: Form, now: Duration) -> Answer {
        let turn = self.turn(endpoint, now);
        let body = if turn.hidden { NULL } else { self.body(endpoint, now) };
        let faulty = turn.fault.and_then(|fault| Some((fault, self.faulty(fault, endpoint, &body, form)?)));
        let (fault, reply) = match faulty {
            Some((fault, reply)) => (Some(fault), reply),
            None => (None, Reply::Full(self.normal(body, form))),
        };
        self.stats.count_reply(reply.status(), fault);
        Answer { delay: self.dice.latency(turn.key, turn.nth), reply }
    }

    fn turn(&self, endpoint: Endpoint<'_>, now: Duration) -> Turn {
        match endpoint {
            Endpoint::Item(id) => self.item_turn(id, now),
            _ => self.page_turn(page_number(endpoint)),
        }
    }

    /// Requests for a body that is not out yet use up nothing of the id's script.
    fn item_turn(&self, id: u64, now: Duration) -> Turn {
        let key = self.item_key(id);
        let index = id.checked_sub(*self.world.ids().start()).and_then(|index| usize::try_from(index).ok());
        let published = id <= self.head.published(now);
        let Some(nth) = index.filter(|_| published).and_then(|index| self.items.next(index)) else {
            self.stats.unpublished.fetch_add(1, Relaxed);
            return Turn { key, nth: 0, fault: None, hidden: true };
        };
        self.stats.count_request_of_id(nth);
        Turn { key, nth, fault: self.dice.fault(key, nth), hidden: false }
    }

    fn page_turn(&self, page: u64) -> Turn {
        let key = Key::Page(page);
        let nth = self.pages[page as usize].fetch_add(1, Relaxed);
        Turn { key, nth, fault: self.dice.fault(key, nth), hidden: false }
    }

    fn item_key(&self, id: u64) -> Key {
        if id <= self.head.settled() { Key::Settled(id) } else { Key::Fresh(id) }
    }

    fn body(&self, endpoint: Endpoint<'_>, now: Duration) -> Bytes {
        let max = self.head.max_item(now);
        match endpoint {
            Endpoint::Item(id) => self.world.item(id).unwrap_or(NULL),
            Endpoint::MaxItem => max.to_string().into(),
            Endpoint::Updates => lists::updates(&self.world, max).into(),
            Endpoint::List(list) => lists::stories(&self.world, list, max).into(),
            Endpoint::User(name) => self.world.user(name).unwrap_or(NULL),
            Endpoint::Unknown => NULL,
        }
    }

    fn remember_retry_after(&self, answer: &Answer, now: Duration) {
        let Reply::Full(message) = &answer.reply else { return };
        if let Some(wait) = message.headers.retry_after {
            self.closed.close(now + answer.delay, now + wait.duration());
        }
    }
}

/// One request's place in the history of what it asks for.
struct Turn {
    key: Key,
    nth: u32,
    fault: Option<Fault>,
    hidden: bool,
}

fn page_number(endpoint: Endpoint<'_>) -> u64 {
    match endpoint {
        Endpoint::List(list) => Endpoint::NAMES.len() as u64 + list as u64,
        Endpoint::User(name) => {
            let hash = name.bytes().fold(0u64, |hash, byte| crate::rng::mix(hash ^ u64::from(byte)));
            FIRST_PROFILE + hash % (PAGES as u64 - FIRST_PROFILE)
        }
        fixed => fixed.index() as u64,
    }
}

#[cfg(test)]
mod tests;
