//! The Looker API 4.0, simulated: an instance, credentials, quota, faults and the truth. No I/O and no clock:
//! [`LookerSim::answer`] is told how long ago the simulation started, and the constructor what time it was then.
//!
//! Operations: login and logout, `/versions`, `/user`, and everything a full mirror reads: `looker/route/table.rs` lists
//! them. Client id `sim-client` and secret `sim-secret` are good unless the plan says otherwise.
//!
//! Pages of its own, free of faults and quota, by GET or POST: `/_sim/stats` (counters), `/_sim/truth[?type=T]` (every
//! object by type and id), `/_sim/operations` (what is simulated), and pages that make something happen at once, told by the query
//! or by a JSON object:
//!
//! | page | what happens |
//! |---|---|
//! | `/_sim/edit?type=T&id=ID` | another title or name; with `{"set": {...}}` those members |
//! | `/_sim/insert?type=T[&count=N]` | new objects, with all that comes with them |
//! | `/_sim/delete?type=T&id=ID` | to the trash, where the type has one |
//! | `/_sim/restore?type=T&id=ID` | back from the trash |
//! | `/_sim/purge?type=T&id=ID` | gone for good, with all that depends on it |
//! | `/_sim/hide?type=T&id=ID` | the caller may not see it: absent from lists, 404 alone; `/_sim/show` undoes it |
//! | `/_sim/forbid?type=T[&status=404]` | the caller may not see the type: 403, or 404; `/_sim/allow` undoes it |
//! | `/_sim/revoke` | all tokens end |
//! | `/_sim/credentials?client_secret=S` | another secret is good from now on |
//! | `/_sim/down?for_ms=N` | every request to the API is reset |

mod build;
mod call;
mod changes;
mod control;
mod counts;
mod error;
mod fault;
mod fields;
mod instance;
mod kind;
mod life;
mod lists;
mod login;
mod meter;
pub mod plan;
mod reply;
mod route;
mod singles;
mod template;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use self::{
    counts::LookerCounts,
    fault::{LookerFault, LookerStep, UnknownLookerFault},
    kind::{LookerType, UnknownLookerType},
    plan::{LookerPlan, LookerPreset},
};
use self::{
    error::ApiError,
    fault::LookerDice,
    instance::Instance,
    life::{Cues, Life},
    login::Tokens,
    meter::Meter,
    plan::Denial,
    route::Route,
};
use crate::{
    answer::{Answer, Reply, RetryAfter, SimRequest, Verb},
    quota::ClosedPeriod,
    rng::Seed,
    simulator::{Simulator, Takes},
    stats::Gauge,
};

/// Forms and orders are short.
const BODY_MAX: usize = 1 << 20;

/// Of a 429 that a plan throws in.
const FAULT_RETRY_AFTER: RetryAfter = RetryAfter(1);

#[derive(Debug)]
pub struct LookerSim {
    seed: Seed,
    plan: LookerPlan,
    dice: LookerDice,
    /// Milliseconds since 1970 at the start.
    start: i64,
    /// One instance that every request reads and some change; bodies are written outside of it.
    inside: Mutex<Inside>,
    connections: Gauge,
    in_flight: Gauge,
}

/// What requests and time change.
#[derive(Debug)]
struct Inside {
    instance: Instance,
    tokens: Tokens,
    meter: Meter,
    life: Life,
    cues: Cues,
    counts: LookerCounts,
    closed: ClosedPeriod,
    forbidden: BTreeMap<LookerType, Denial>,
    /// How often each request was made.
    turns: HashMap<u64, u32>,
    down_until: Duration,
}

impl Inside {
    /// What values that move by themselves go by.
    const fn tick(&self) -> u64 {
        self.counts.requests
    }
}

impl LookerSim {
    /// An instance of so many dashboards. `start` is the time of day, in milliseconds since 1970, at which the
    /// simulation starts: the times of edits go by it.
    pub fn new(seed: Seed, dashboards: u64, plan: LookerPlan, start: i64) -> Self {
        let inside = Inside {
            instance: Instance::generated(seed, dashboards, &plan.instance),
            tokens: Tokens::new(seed, &plan.login),
            meter: Meter::new(seed, &plan.quota),
            life: Life::new(&plan.mutations),
            cues: Cues::new(&plan.cues),
            counts: LookerCounts::default(),
            closed: ClosedPeriod::default(),
            forbidden: plan.forbidden.clone(),
            turns: HashMap::new(),
            down_until: Duration::ZERO,
        };
        LookerSim {
            seed,
            dice: LookerDice::new(seed, &plan),
            plan,
            start,
            inside: Mutex::new(inside),
            connections: Gauge::default(),
            in_flight: Gauge::default(),
        }
    }

    pub fn answer(&self, request: &SimRequest<'_>, now: Duration) -> Answer {
        let at_once = |message| Answer { delay: Duration::ZERO, reply: Reply::Full(message) };
        match Route::parse(request) {
            Route::Call(call) => self.call(&call, request, now),
            Route::Page(page, params) => at_once(self.page(&page, &params, request.body, now)),
            Route::Unknown(path) => {
                let verb = if request.verb == Verb::Get { "get" } else { "post" };
                at_once(ApiError::not_found().message(verb, &path))
            }
        }
    }

    pub const fn plan(&self) -> &LookerPlan {
        &self.plan
    }

    /// Milliseconds since 1970.
    fn wall(&self, now: Duration) -> i64 {
        self.start + i64::try_from(now.as_millis()).unwrap_or(i64::MAX / 2)
    }

    fn inside(&self, now: Duration) -> MutexGuard<'_, Inside> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        self.live(&mut inside, now);
        inside
    }
}

impl Simulator for LookerSim {
    const TAKES: Takes = Takes::Bodies(BODY_MAX);

    fn answer(&self, request: &SimRequest<'_>, now: Duration) -> Answer {
        LookerSim::answer(self, request, now)
    }

    fn connections(&self) -> &Gauge {
        &self.connections
    }

    fn in_flight(&self) -> &Gauge {
        &self.in_flight
    }
}

#[cfg(test)]
mod tests;
