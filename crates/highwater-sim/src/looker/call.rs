//! One call of the API, from its arrival to its answer: credentials, quota, faults, and then what was asked for.

use std::{sync::MutexGuard, time::Duration};

use http::StatusCode;

use super::{
    Inside, LookerSim,
    error::ApiError,
    fault::{LookerFault, Subject},
    lists,
    plan::Denial,
    reply::{self, Shown},
    route::{Action, Activity, Call},
    singles,
};
use crate::{
    answer::{Answer, Message, Reply, SimRequest},
    params::Params,
};

/// Requests that are counted one by one; beyond, counting starts over.
const TURNS_MAX: usize = 1_000_000;

/// One request's place among those that ask the same.
struct Turn {
    fault: Option<LookerFault>,
    delay: Duration,
}

impl LookerSim {
    pub(super) fn call(&self, call: &Call, request: &SimRequest<'_>, now: Duration) -> Answer {
        let mut inside = self.inside(now);
        let operation = call.operation;
        let path = format!("{} {}", operation.verb_name().to_uppercase(), operation.path);
        inside.counts.count_request(path, operation.activity.as_str());
        self.live_by_requests(&mut inside, now);
        self.on_cue(&mut inside, call, now);
        if operation.activity != Activity::None && inside.closed.contains(now) {
            inside.counts.requests_in_closed_period += 1;
        }
        if now < inside.down_until {
            inside.counts.count_answer("down".to_owned());
            return Answer { delay: Duration::ZERO, reply: Reply::Reset };
        }
        if let Err(error) = self.admitted(&mut inside, call, request, now) {
            let delay = Duration::from_millis(u64::from(self.plan.latency.fixed_ms));
            return Answer { delay, reply: Reply::Full(self.bad(&mut inside, &error, call)) };
        }
        let turn = self.turn(&mut inside, call);
        let reply = match turn.fault {
            Some(fault) => self.faulty(inside, fault, call, request, now),
            None => self.performed(inside, None, call, request, now),
        };
        Answer { delay: turn.delay, reply }
    }

    /// Credentials, quota, parameters and permission, in this order.
    fn admitted(
        &self,
        inside: &mut Inside,
        call: &Call,
        request: &SimRequest<'_>,
        now: Duration,
    ) -> Result<(), ApiError> {
        let action = call.operation.action;
        if !matches!(action, Action::Login | Action::Versions) {
            inside.tokens.admit(request.authorization, now).inspect_err(|_| inside.counts.rejected += 1)?;
        }
        if call.operation.activity != Activity::None
            && let Err(refusal) = inside.meter.admit(now)
        {
            inside.counts.refused_by_quota += 1;
            if let Some(wait) = refusal.retry_after {
                inside.closed.close(now, now + wait.duration());
            }
            return Err(ApiError::too_many(refusal.retry_after));
        }
        call.check()?;
        let shown = singles::subject(call).map(|(kind, _)| kind).or(action.shows());
        match shown.filter(|_| action != Action::Me).and_then(|kind| inside.forbidden.get(&kind)) {
            Some(Denial::Forbidden) => Err(ApiError::forbidden()),
            Some(Denial::NotFound) => Err(ApiError::not_found()),
            None => Ok(()),
        }
    }

    fn turn(&self, inside: &mut Inside, call: &Call) -> Turn {
        let key = call.key();
        if inside.turns.len() >= TURNS_MAX {
            inside.turns.clear();
        }
        let turn = inside.turns.entry(key).or_default();
        *turn += 1;
        let nth = *turn - 1;
        let alone = singles::subject(call);
        let subject = match &alone {
            Some((kind, id)) => Subject::Object(*kind, id),
            None => Subject::Page { path: call.operation.path, offset: lists::window(call).1 as u64 },
        };
        // Sessions fail by the plan of logins, and by scripts.
        let fault = match call.operation.action {
            Action::Login | Action::Logout => self.dice.scripted(subject, nth).and_then(|step| step.0),
            _ => self.dice.fault(subject, key, nth),
        };
        let slow = if fault == Some(LookerFault::GatewayTimeout) { self.plan.body.gateway_timeout_ms } else { 0 };
        Turn { fault, delay: self.dice.latency(key, nth) + Duration::from_millis(u64::from(slow)) }
    }

    fn faulty(
        &self,
        mut inside: MutexGuard<'_, Inside>,
        fault: LookerFault,
        call: &Call,
        request: &SimRequest<'_>,
        now: Duration,
    ) -> Reply {
        inside.counts.count_fault(fault);
        if fault == LookerFault::Unauthorized {
            inside.tokens.revoke(request.authorization);
        }
        if fault == LookerFault::TooManyRetryAfter {
            inside.closed.close(now, now + super::FAULT_RETRY_AFTER.duration());
        }
        if let Some(reply) = reply::spoiled(fault) {
            let status = reply.status().map_or(fault.to_string(), |status| status.as_u16().to_string());
            inside.counts.count_answer(status);
            return reply;
        }
        match reply::refused(fault) {
            Some(error) => Reply::Full(self.bad(&mut inside, &error, call)),
            None => self.performed(inside, Some(fault), call, request, now),
        }
    }

    fn performed(
        &self,
        mut inside: MutexGuard<'_, Inside>,
        fault: Option<LookerFault>,
        call: &Call,
        request: &SimRequest<'_>,
        now: Duration,
    ) -> Reply {
        let shown = match self.perform(&mut inside, call, request, now) {
            Ok(Shown::Spoiled(fault)) => return self.faulty(inside, fault, call, request, now),
            Ok(shown) => shown,
            Err(error) => return Reply::Full(self.bad(&mut inside, &error, call)),
        };
        let tick = inside.tick();
        if let Some(kind) = call.operation.action.shows() {
            inside.counts.count_objects(kind.as_str(), shown.objects());
        }
        // Bodies are written after the instance is let go.
        drop(inside);
        let message = self.good(&shown, call, request, tick);
        let mut inside = self.inside(now);
        inside.counts.body_bytes += message.body.len() as u64;
        inside.counts.count_answer(message.status.as_u16().to_string());
        drop(inside);
        self.spoil(fault, message)
    }

    fn perform(
        &self,
        inside: &mut Inside,
        call: &Call,
        request: &SimRequest<'_>,
        now: Duration,
    ) -> Result<Shown, ApiError> {
        match call.operation.action {
            Action::Login => self.login(inside, call, request, now),
            Action::Logout => {
                inside.tokens.revoke(request.authorization);
                inside.counts.logouts += 1;
                Ok(Shown::Nothing)
            }
            Action::Versions => Ok(Shown::Value(singles::versions())),
            Action::Elements | Action::ElementsOf => singles::elements(inside, call),
            Action::All(_) | Action::Search(_) | Action::Of(..) | Action::OfParameter(..) => self.list(inside, call),
            Action::Me | Action::One(_) | Action::Explore | Action::DashboardLookml => {
                let (kind, id) = singles::subject(call).ok_or_else(ApiError::not_found)?;
                singles::one(inside, call, kind, &id)
            }
        }
    }

    fn login(
        &self,
        inside: &mut Inside,
        call: &Call,
        request: &SimRequest<'_>,
        now: Duration,
    ) -> Result<Shown, ApiError> {
        let form = Params::parse(&String::from_utf8_lossy(request.body));
        let token = inside.tokens.login(&form, &call.params, now).inspect_err(|_| inside.counts.logins_refused += 1)?;
        inside.counts.logins += 1;
        inside.counts.tokens_live_peak = inside.counts.tokens_live_peak.max(inside.tokens.live(now));
        Ok(Shown::Value(token))
    }

    fn bad(&self, inside: &mut Inside, error: &ApiError, call: &Call) -> Message {
        let message = error.message(call.operation.verb_name(), call.operation.path);
        inside.counts.throttled += u64::from(message.status == StatusCode::TOO_MANY_REQUESTS);
        inside.counts.invalid += u64::from(message.status == StatusCode::UNPROCESSABLE_ENTITY);
        inside.counts.count_answer(message.status.as_u16().to_string());
        message
    }
}
