//! The Gmail API, simulated: mailbox, quota, credentials, faults and the truth. No I/O and no clock:
//! [`GmailSim::answer`] is told how long ago the simulation started, and the constructor what time it was then.
//!
//! Methods: `getProfile`, `messages.list/get/modify/trash/untrash/delete/batchModify/batchDelete/import/insert`,
//! `attachments.get`, `history.list`, `labels.list/get/create/update/patch/delete`, `threads.list/get`, and batches of
//! them; uploads as JSON, media and multipart. Beside them `POST /token`, `POST /revoke` and `GET /o/oauth2/v2/auth`.
//! The access token [`ACCESS_TOKEN`] and the refresh token [`REFRESH_TOKEN`] need no consent.
//!
//! Pages of its own, free of faults and quota, by GET or POST: `/_sim/stats` (counters as JSON), `/_sim/truth?from=` (a
//! JSON line a message, a page at a time), and pages that make something happen at once:
//!
//! | page | what happens |
//! |---|---|
//! | `/_sim/arrive[?count=N]` | mail arrives |
//! | `/_sim/import[?at=SECONDS]` | a message comes in that is dated in the past |
//! | `/_sim/draft` | a draft is saved, which gives it another message |
//! | `/_sim/delete?id=ID` | a message is deleted for good |
//! | `/_sim/label?id=ID[&add=A,B][&remove=C]` | its labels change |
//! | `/_sim/expire_history` | history before now is forgotten |
//! | `/_sim/expire_tokens` | access tokens end |
//! | `/_sim/revoke` | refresh tokens end, and access tokens with them |
//! | `/_sim/penalty[?for_s=N]` | the penalty box |
//! | `/_sim/down?for_ms=N` | every request to the API is reset |

mod batch;
mod call;
mod changes;
mod control;
mod counts;
mod error;
mod fault;
mod fields;
mod label_writes;
mod labels;
mod letter;
mod life;
mod listing;
mod mailbox;
mod message;
mod meter;
mod mime;
mod multipart;
mod oauth;
mod pages;
pub mod plan;
mod reply;
mod route;
mod scope;
mod search;
mod writes;

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::StatusCode;
use serde_json::Value;

pub use self::{
    control::{GMAIL_TRUTH_LINES_MAX, MessageState, MessageTruth},
    counts::GmailCounts,
    fault::{GmailFault, UnknownGmailFault},
    oauth::{ACCESS_TOKEN, REFRESH_TOKEN},
    plan::{GmailPlan, GmailPreset},
};
use self::{
    error::ApiError, fault::GmailDice, life::Life, mailbox::Mailbox, meter::Meter, oauth::Keys, pages::Pages,
    route::Route,
};
use crate::{
    answer::{Answer, HTML, Message, Reply, SimRequest},
    params,
    quota::ClosedPeriod,
    rng::Seed,
    simulator::{Simulator, Takes},
    stats::Gauge,
};

/// Gmail sends up to 35 MiB, and base64 makes a third more of it.
const BODY_MAX: usize = 48 << 20;

const NOT_FOUND_PAGE: &[u8] = b"<!DOCTYPE html>\n<html lang=en><title>Error 404 (Not Found)!!1</title>\n\
    <p><b>404.</b> That\xE2\x80\x99s an error.</p></html>\n";

/// `null` is an answer without a body.
type Outcome = Result<Value, ApiError>;

#[derive(Debug)]
pub struct GmailSim {
    seed: Seed,
    plan: GmailPlan,
    dice: GmailDice,
    /// Milliseconds since 1970 at the start.
    start: i64,
    /// One mailbox that every request reads or changes; bodies are made outside of it.
    inside: Mutex<Inside>,
    connections: Gauge,
    in_flight: Gauge,
}

/// What requests and time change.
#[derive(Debug)]
struct Inside {
    mailbox: Mailbox,
    pages: Pages,
    meter: Meter,
    keys: Keys,
    life: Life,
    counts: GmailCounts,
    closed: ClosedPeriod,
    /// How often each request was made that is not about one message.
    turns: HashMap<u64, u32>,
    down_until: Duration,
}

impl GmailSim {
    /// A mailbox of so many messages. `start` is the time of day, in milliseconds since 1970, at which the simulation
    /// starts: what arrives later, the times in refusals and the age of credentials go by it.
    pub fn new(seed: Seed, messages: u64, plan: GmailPlan, start: i64) -> Self {
        let inside = Inside {
            mailbox: Mailbox::generated(seed, messages, &plan),
            pages: Pages::new(seed, plan.list.token_lifetime_s),
            meter: Meter::new(&plan.quota, &plan.penalty),
            keys: Keys::new(seed, &plan.token),
            life: Life::new(&plan.mutations),
            counts: GmailCounts::default(),
            closed: ClosedPeriod::default(),
            turns: HashMap::new(),
            down_until: Duration::ZERO,
        };
        GmailSim {
            seed,
            dice: GmailDice::new(seed, &plan),
            plan,
            start,
            inside: Mutex::new(inside),
            connections: Gauge::default(),
            in_flight: Gauge::default(),
        }
    }

    pub fn answer(&self, request: &SimRequest<'_>, now: Duration) -> Answer {
        let at_once = |reply| Answer { delay: Duration::ZERO, reply };
        match Route::parse(request) {
            Route::Call(call) => self.call(&call, request, now),
            Route::Token => at_once(self.token(request.body, now)),
            Route::Revoke(params) => at_once(self.revoke(&params, request.body, now)),
            Route::Batch => self.batch(request, now),
            Route::Authorize(params) => at_once(self.authorize(&params, now)),
            Route::Page(page, params) => at_once(Reply::Full(self.page(page, &params, now))),
            Route::Unknown => {
                let message = Message::new(StatusCode::NOT_FOUND, HTML, NOT_FOUND_PAGE.into());
                at_once(Reply::Full(message))
            }
        }
    }

    pub const fn plan(&self) -> &GmailPlan {
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

impl Simulator for GmailSim {
    const TAKES: Takes = Takes::Bodies(BODY_MAX);

    fn answer(&self, request: &SimRequest<'_>, now: Duration) -> Answer {
        GmailSim::answer(self, request, now)
    }

    fn connections(&self) -> &Gauge {
        &self.connections
    }

    fn in_flight(&self) -> &Gauge {
        &self.in_flight
    }
}

/// 16 hex digits; Gmail says of anything else that it is no id.
fn parse_id(text: &str) -> Result<u64, ApiError> {
    let digits = !text.is_empty() && text.len() <= 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = digits.then(|| u64::from_str_radix(text, 16).ok()).flatten();
    id.ok_or_else(|| ApiError::invalid("Invalid id value"))
}

#[cfg(test)]
mod tests;
