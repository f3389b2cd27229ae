//! One call of the API, from its arrival to its answer: credentials, quota, faults, and then what was asked for.

use std::{sync::MutexGuard, time::Duration};

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use super::{
    GmailSim, Inside, Outcome,
    error::ApiError,
    fault::GmailFault,
    fields::Fields,
    mailbox::Entry,
    message::{Format, Painter, attachment_path},
    meter::Refusal,
    mime,
    oauth::{Access, Subject},
    params::hash_text,
    parse_id,
    plan::Throttle,
    route::{Call, Method},
    scope::METADATA,
};
use crate::answer::{Answer, Reply, SimRequest};

/// Requests that are counted one by one; beyond, counting starts over.
const TURNS_MAX: usize = 1_000_000;

/// One request's place among those that ask the same.
pub(super) struct Turn {
    pub(super) fault: Option<GmailFault>,
    pub(super) delay: Duration,
}

impl GmailSim {
    pub(super) fn call(&self, call: &Call<'_>, request: &SimRequest<'_>, now: Duration) -> Answer {
        let mut inside = self.inside(now);
        inside.counts.count_method(call.method.as_str());
        if inside.closed.contains(now) {
            inside.counts.requests_in_penalty += 1;
        }
        if now < inside.down_until {
            inside.counts.count_answer("down".to_owned());
            return Answer { delay: Duration::ZERO, reply: Reply::Reset };
        }
        let access = match self.admitted(&mut inside, call, request, now) {
            Ok(access) => access,
            Err(error) => {
                drop(inside);
                let delay = Duration::from_millis(u64::from(self.plan.latency.fixed_ms));
                return Answer { delay, reply: self.reply(None, Err(error), call, request, now) };
            }
        };
        let turn = self.turn(&mut inside, call);
        inside.meter.occupy(now + turn.delay);
        let reply = if let Some(reply) = self.spoiled(turn.fault) {
            drop(inside);
            self.count(turn.fault, reply.status(), None, 0, now);
            reply
        } else if let Some(error) = self.refused_by_fault(turn.fault, call) {
            drop(inside);
            self.reply(turn.fault, Err(error), call, request, now)
        } else {
            let outcome = self.perform(inside, call, request, &access, turn.fault, now);
            self.reply(turn.fault, outcome, call, request, now)
        };
        Answer { delay: turn.delay, reply }
    }

    /// Credentials, quota and scopes, in this order.
    fn admitted(
        &self,
        inside: &mut Inside,
        call: &Call<'_>,
        request: &SimRequest<'_>,
        now: Duration,
    ) -> Result<Access, ApiError> {
        let bearer = request.authorization.and_then(|value| value.strip_prefix("Bearer "));
        let token = bearer.or_else(|| call.params.first("access_token")).ok_or_else(ApiError::no_token)?;
        let access = inside.keys.access(token.trim(), now).ok_or_else(ApiError::bad_token)?;
        let cost = call.method.cost(self.plan.quota.table);
        if let Err(refusal) = inside.meter.admit(cost, now) {
            inside.counts.count_throttled(refusal.as_str());
            if let Refusal::Until(until) | Refusal::Boxed(until) = refusal {
                inside.closed.close(now, until);
            }
            return Err(self.refusal(refusal));
        }
        inside.counts.count_units(call.method.as_str(), cost);
        if access.subject == Subject::Nobody {
            return Err(ApiError::failed_precondition());
        }
        let user = super::params::decode(call.user);
        let own = self.account(&access);
        if user != "me" && user != own {
            return Err(ApiError::forbidden(format!("Delegation denied for {own}")));
        }
        permitted(call, &access)?;
        understood(call)?;
        Ok(access)
    }

    fn refusal(&self, refusal: Refusal) -> ApiError {
        let limit = self.plan.quota.per_minute.map_or(6_000, |limit| limit.get());
        match refusal {
            Refusal::Throttled(Throttle::Modern | Throttle::RetryAfter) => ApiError::quota_metric(limit),
            Refusal::Throttled(Throttle::User) => ApiError::user_rate(),
            Refusal::Throttled(Throttle::Project) => ApiError::project_rate(),
            Refusal::Throttled(Throttle::Backend) => ApiError::backend_throttle(),
            Refusal::Throttled(Throttle::Exceeded) => ApiError::quota_exceeded(),
            Refusal::Until(until) | Refusal::Boxed(until) => {
                ApiError::retry_after(self.plan.penalty.status, &self.clock(until))
            }
            Refusal::Concurrent => ApiError::concurrent(),
            Refusal::Daily => ApiError::daily(),
        }
    }

    /// As the texts of refusals have it: ISO 8601 with milliseconds.
    pub(super) fn clock(&self, at: Duration) -> String {
        let time = Timestamp::from_millisecond(self.wall(at)).unwrap_or_default().to_zoned(TimeZone::UTC);
        time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
    }

    fn turn(&self, inside: &mut Inside, call: &Call<'_>) -> Turn {
        let message = (call.method == Method::MessagesGet).then(|| parse_id(call.id).ok()).flatten();
        let key = message.unwrap_or_else(|| {
            let page = call.params.first("pageToken").unwrap_or("");
            hash_text(hash_text(call.params.fingerprint(), call.method.as_str()), &format!("{}/{page}", call.id))
        });
        let counted = message.and_then(|id| inside.mailbox.count_get(id));
        let nth = counted.unwrap_or_else(|| {
            if inside.turns.len() >= TURNS_MAX {
                inside.turns.clear();
            }
            let turn = inside.turns.entry(key).or_default();
            *turn += 1;
            *turn - 1
        });
        Turn { fault: self.dice.fault(call.method, message, key, nth), delay: self.dice.latency(key, nth) }
    }

    fn perform(
        &self,
        mut inside: MutexGuard<'_, Inside>,
        call: &Call<'_>,
        request: &SimRequest<'_>,
        access: &Access,
        fault: Option<GmailFault>,
        now: Duration,
    ) -> Outcome {
        match call.method {
            Method::Profile => Ok(self.profile(&inside, access)),
            Method::MessagesList | Method::ThreadsList => self.list(&mut inside, call, fault, now),
            Method::HistoryList => self.changes(&mut inside, &call.params, fault, now),
            Method::LabelsList => Ok(json!({ "labels": inside.mailbox.catalogue.list() })),
            Method::LabelsGet => self.label(&inside, call.id).ok_or_else(ApiError::not_found),
            Method::MessagesGet | Method::ThreadsGet | Method::AttachmentsGet => {
                self.get(inside, call, access, fault, now)
            }
            Method::LabelsCreate | Method::LabelsUpdate | Method::LabelsPatch | Method::LabelsDelete => {
                self.write_label(&mut inside, call, request.body, now)
            }
            _ => self.write(&mut inside, call, request, now),
        }
    }

    /// Whose token it is.
    fn account(&self, access: &Access) -> &str {
        let other = self.plan.token.account.as_deref().filter(|_| access.subject == Subject::Other);
        other.unwrap_or(&self.plan.mailbox.address)
    }

    fn profile(&self, inside: &Inside, access: &Access) -> Value {
        let mailbox = &inside.mailbox;
        let threads: std::collections::BTreeSet<u64> = mailbox.listed(..).map(|(_, entry)| entry.thread).collect();
        json!({
            "emailAddress": self.account(access),
            "messagesTotal": mailbox.listed(..).count(),
            "threadsTotal": threads.len(),
            "historyId": mailbox.history.current().to_string(),
        })
    }

    /// The part that an id names, while it does.
    fn attached(&self, id: &str, now: Duration) -> Option<String> {
        let (path, given) = attachment_path(id)?;
        let lifetime = self.plan.body.attachment_id_s.map(|seconds| Duration::from_secs(u64::from(seconds)));
        lifetime.is_none_or(|lifetime| now < given + lifetime).then_some(path)
    }

    /// Bodies are made after the mailbox is let go.
    fn get(
        &self,
        inside: MutexGuard<'_, Inside>,
        call: &Call<'_>,
        access: &Access,
        fault: Option<GmailFault>,
        now: Duration,
    ) -> Outcome {
        let format = Format::parse(&call.params)?;
        let narrow = access.scopes.iter().any(|scope| scope == METADATA);
        if narrow && matches!(format, Format::Full | Format::Raw) && call.method != Method::AttachmentsGet {
            let name = if format == Format::Raw { "RAW" } else { "FULL" };
            return Err(ApiError::forbidden(format!("Metadata scope doesn't allow format {name}")));
        }
        let id = parse_id(call.id)?;
        let found: Vec<Entry> = match call.method {
            Method::ThreadsGet => inside.mailbox.thread(id).into_iter().cloned().collect(),
            _ => inside.mailbox.find(id).into_iter().cloned().collect(),
        };
        let labels: Vec<_> = found.iter().map(|entry| inside.mailbox.catalogue.ids(entry.labels)).collect();
        let author = inside.mailbox.author.clone();
        drop(inside);
        let first = found.first().ok_or_else(ApiError::not_found)?;
        let painter =
            Painter { seed: self.seed, format, padded: self.plan.body.padded, params: &call.params, now, fault };
        if call.method == Method::AttachmentsGet {
            let message = mime::parse(&first.raw(&author));
            let part = self.attached(call.attachment, now).and_then(|path| message.at(&path).cloned());
            let part = part.ok_or_else(|| ApiError::invalid("Invalid attachment token"))?;
            return Ok(json!({ "size": part.body.len(), "data": painter.encode(&part.body) }));
        }
        let shown = found.iter().zip(labels).map(|(entry, labels)| painter.message(entry, labels, &entry.raw(&author)));
        let mut shown: Vec<Value> = shown.collect();
        if call.method == Method::MessagesGet {
            return Ok(shown.swap_remove(0));
        }
        if format == Format::Raw {
            return Err(ApiError::invalid("Invalid value at 'format': \"raw\""));
        }
        let history = found.iter().map(|entry| entry.history).max().unwrap_or(0);
        Ok(json!({ "id": call.id, "historyId": history.to_string(), "messages": shown }))
    }
}

fn permitted(call: &Call<'_>, access: &Access) -> Result<(), ApiError> {
    let holds = |scope: &str| access.scopes.iter().any(|held| held == scope);
    if !call.method.scopes().iter().any(|scope| holds(scope)) {
        return Err(ApiError::scopes());
    }
    // Also beside a scope that would do without it.
    if call.method.is_paged() && holds(METADATA) && call.params.first("q").is_some() {
        return Err(ApiError::forbidden("Metadata scope does not support 'q' parameter"));
    }
    Ok(())
}

/// Google refuses parameters that it does not know.
fn understood(call: &Call<'_>) -> Result<(), ApiError> {
    if let Some(unknown) = call.params.names().find(|name| !call.method.knows(name)) {
        return Err(ApiError::invalid(format!(
            "Invalid JSON payload received. Unknown name \"{unknown}\": Cannot bind query parameter. Field '{unknown}' \
             could not be found in request message."
        )));
    }
    Fields::of(&call.params).map(drop)
}
