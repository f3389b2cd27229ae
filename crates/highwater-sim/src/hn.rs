//! The Hacker News API, simulated: endpoints, bodies, faults and the truth. No I/O and no clock: [`HnSim::answer`] is
//! told how long ago the simulation started.
//!
//! Pages of its own, free of faults and quota: `/_sim/stats` (counters as JSON), `/_sim/truth?from=&to=` (what a
//! correct mirror holds, as JSON lines), `/_sim/truth/users?names=a,b` (the same of profiles), and pages that make
//! something happen at once:
//!
//! | page | what happens |
//! |---|---|
//! | `/_sim/mutate?id=N[&kind=score\|text\|kids\|dead\|delete\|revive][&publish=false]` | an item changes |
//! | `/_sim/profile?name=X[&publish=false]` | a profile changes |
//! | `/_sim/burst?count=N` | the newest items change, in one write of `updates` |
//! | `/_sim/grow?by=N` | `maxitem` jumps, into the ids that `head.behind` reserves |
//! | `/_sim/stream?do=drop\|cut\|cancel\|auth_revoked\|silence\|restore` | what streams do, see [`StreamOrder`] |
//! | `/_sim/down?for_ms=N` | every request to the API is reset |

mod control;
mod head;
mod item;
mod json;
mod life;
mod lists;
mod living;
mod loaded;
mod reply;
mod route;
mod stream;
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

pub use self::{
    control::{StreamOrder, UnknownOrder},
    life::{CannotMutate, Publicity, Version},
    living::{MutationKind, UnknownMutation},
    loaded::LoadError,
    stream::{EventStream, Moved, Opening, StreamStep, StreamTurn},
    tree::Kind,
    truth::{Expected, TRUTH_LINES_MAX},
    world::World,
};
use self::{
    head::Head,
    item::{Look, Times},
    life::{Life, State},
    reply::{Form, NULL, error_message},
    route::{Endpoint, Page, Route},
};
use crate::{
    answer::{Answer, Message, Reply, SimRequest},
    dice::{Dice, Key},
    fault::Fault,
    plan::{ClockPlan, FaultPlan},
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
    life: Life,
    streams: stream::Attempts,
}

impl HnSim {
    pub fn new(world: World, plan: FaultPlan) -> Self {
        let (seed, ids) = (world.seed(), world.ids());
        let head = Head::new(seed, &plan.head, &ids);
        let odd = Share::new(plan.body.odd).unwrap_or(Share::NONE);
        HnSim {
            dice: Dice::new(seed, &plan),
            quota: Quota::new(&plan.quota),
            closed: ClosedPeriod::default(),
            items: Tally::new(ids.count()),
            pages: (0..PAGES).map(|_| AtomicU32::new(0)).collect(),
            stats: Stats::new(Endpoint::NAMES),
            life: Life::new(&plan.mutations),
            streams: stream::Attempts::default(),
            world: world.with_look(Look { odd, times: times(&plan.clock, &head) }),
            head,
            plan,
        }
    }

    pub fn answer(&self, request: &SimRequest<'_>, now: Duration) -> Answer {
        match Route::parse(request.target) {
            Route::Page(page) => Answer { delay: Duration::ZERO, reply: Reply::Full(self.page(page, now)) },
            Route::Api { endpoint, print } => {
                self.api(endpoint, Form { print, encoding: request.encoding, tag: request.tag }, now)
            }
        }
    }

    pub const fn world(&self) -> &World {
        &self.world
    }

    pub const fn plan(&self) -> &FaultPlan {
        &self.plan
    }

    /// What `maxitem` says.
    pub fn max_item(&self, now: Duration) -> u64 {
        self.head.max_item(now)
    }

    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// When the last answer that asked for silence reached whom it was for, or will.
    pub fn told_to_wait_at(&self) -> Option<Duration> {
        self.closed.told_at()
    }

    fn page(&self, page: Page<'_>, now: Duration) -> Message {
        match page {
            Page::Stats => {
                drop(self.life.is_moving().then(|| self.live(now)));
                let report = serde_json::to_vec(&self.stats.report());
                Message::json(report.expect("counters are plain numbers").into())
            }
            Page::Truth { from, to } => self.truth_page(from, to, now),
            Page::UserTruth(names) => self.user_truth_page(names, now),
            Page::Act { act, query } => self.act(act, query, now),
            Page::Unknown => error_message(StatusCode::NOT_FOUND),
        }
    }

    fn api(&self, endpoint: Endpoint<'_>, form: Form<'_>, now: Duration) -> Answer {
        let refused = self.refusal(endpoint, now);
        let answer = refused.unwrap_or_else(|| self.admitted(endpoint, form, now));
        self.remember_retry_after(&answer, now);
        answer
    }

    /// Counts a request, and answers it at once if the API is down or its quota used up.
    fn refusal(&self, endpoint: Endpoint<'_>, now: Duration) -> Option<Answer> {
        self.stats.count_endpoint(endpoint.index());
        if self.closed.contains(now) {
            self.stats.retry_after_violations.fetch_add(1, Relaxed);
        }
        if self.life.is_down(now) {
            self.stats.refused_while_down.fetch_add(1, Relaxed);
            return Some(Answer { delay: Duration::ZERO, reply: Reply::Reset });
        }
        self.quota.as_ref()?.take(now).err().map(|refusal| self.refused(refusal))
    }

    fn refused(&self, refusal: Refusal) -> Answer {
        self.stats.refused_by_quota.fetch_add(1, Relaxed);
        let message = error_message(StatusCode::TOO_MANY_REQUESTS).with_retry_after(refusal.retry_after);
        self.stats.count_reply(Some(message.status), None);
        let delay = Duration::from_millis(u64::from(self.plan.latency.fixed_ms));
        Answer { delay, reply: Reply::Full(message) }
    }

    fn admitted(&self, endpoint: Endpoint<'_>, form: Form<'_>, now: Duration) -> Answer {
        let turn = self.turn(endpoint, now);
        let body = if turn.hidden { NULL } else { self.body(endpoint, now) };
        let faulty = turn.fault.and_then(|fault| Some((fault, self.faulty(fault, endpoint, &body, form)?)));
        let (fault, reply) = match faulty {
            Some((fault, reply)) => (Some(fault), reply),
            None => (None, Reply::Full(self.normal(body, form))),
        };
        self.stats.count_reply(reply.status(), fault);
        if reply.status() == Some(StatusCode::NOT_MODIFIED) {
            self.stats.not_modified.fetch_add(1, Relaxed);
        }
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
        match endpoint {
            Endpoint::Item(id) if !self.life.is_moving() => self.world.item(id).unwrap_or(NULL),
            _ => self.value(&self.live(now), endpoint, now),
        }
    }

    /// A node as it is in `state`.
    fn value(&self, state: &State, endpoint: Endpoint<'_>, now: Duration) -> Bytes {
        match endpoint {
            Endpoint::Item(id) if id > self.head.published(now) => NULL,
            Endpoint::Item(id) => self.item_in(state, id).unwrap_or(NULL),
            Endpoint::MaxItem => self.head.max_item(now).to_string().into(),
            Endpoint::Updates => self.updates_in(state),
            Endpoint::List(list) => lists::stories(&self.world, list, self.head.max_item(now)).into(),
            Endpoint::User(name) => self.user_in(state, name).unwrap_or(NULL),
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

fn times(plan: &ClockPlan, head: &Head) -> Times {
    plan.now.map_or(Times::SinceEpoch, |now| Times::Around {
        newest: head.start(),
        at: i64::from(now),
        apart: i64::from(plan.seconds_per_id),
    })
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
