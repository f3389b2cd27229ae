//! Credentials and tokens: what was given out, and until when.

use std::{collections::VecDeque, time::Duration};

use http::StatusCode;
use serde_json::{Value, json};

use super::{error::ApiError, plan::LoginPlan};
use crate::{
    params::Params,
    rng::{Purpose, Seed, Share},
};

#[derive(Debug)]
pub(super) struct Tokens {
    seed: Seed,
    plan: LoginPlan,
    failures: Share,
    asked: u64,
    failed_last: bool,
    issued: u64,
    /// Oldest first.
    live: VecDeque<(String, Duration)>,
    /// Requests since all tokens ended last.
    used: u32,
}

impl Tokens {
    pub(super) fn new(seed: Seed, plan: &LoginPlan) -> Self {
        Tokens {
            seed,
            plan: plan.clone(),
            failures: Share::new(plan.failures).unwrap_or(Share::NONE),
            asked: 0,
            failed_last: false,
            issued: 0,
            live: VecDeque::new(),
            used: 0,
        }
    }

    /// Credentials are in the form, or in the query as they may be until the end of 2026.
    pub(super) fn login(&mut self, form: &Params, query: &Params, now: Duration) -> Result<Value, ApiError> {
        if self.fails() {
            return Err(ApiError::internal());
        }
        let given = |name| form.first(name).or_else(|| query.first(name));
        let good = given("client_id") == Some(self.plan.client_id.as_str())
            && given("client_secret") == Some(self.plan.client_secret.as_str());
        if !good {
            let status = StatusCode::from_u16(self.plan.refused_status).unwrap_or(StatusCode::NOT_FOUND);
            return Err(ApiError::refused_login(status));
        }
        self.forget(now);
        let token = self.secret();
        self.live.push_back((token.clone(), now + Duration::from_secs(u64::from(self.plan.lifetime_s))));
        if self.plan.tokens_max.is_some_and(|max| self.live.len() > max.get() as usize) {
            self.live.pop_front();
        }
        Ok(json!({
            "access_token": token, "token_type": "Bearer", "expires_in": self.plan.lifetime_s, "refresh_token": null,
        }))
    }

    /// Whether the request that shows this may pass.
    pub(super) fn admit(&mut self, authorization: Option<&str>, now: Duration) -> Result<(), ApiError> {
        let token = authorization.and_then(bearer).ok_or_else(ApiError::unauthorized)?;
        if !self.live.iter().any(|(known, end)| known == token && now < *end) {
            return Err(ApiError::unauthorized());
        }
        self.used += 1;
        if self.plan.revoke_every.is_some_and(|every| self.used >= every.get()) {
            self.revoke_all();
        }
        Ok(())
    }

    /// Whether there was such a token.
    pub(super) fn revoke(&mut self, authorization: Option<&str>) -> bool {
        let before = self.live.len();
        if let Some(token) = authorization.and_then(bearer) {
            self.live.retain(|(known, _)| known != token);
        }
        self.live.len() < before
    }

    pub(super) fn revoke_all(&mut self) {
        self.live.clear();
        self.used = 0;
    }

    /// From now on these are good, and tokens stay so.
    pub(super) fn change_secret(&mut self, secret: &str) {
        self.plan.client_secret = secret.to_owned();
    }

    pub(super) fn live(&self, now: Duration) -> u64 {
        self.live.iter().filter(|(_, end)| now < *end).count() as u64
    }

    fn forget(&mut self, now: Duration) {
        self.live.retain(|(_, end)| now < *end);
    }

    /// Whether there is a bad moment; never twice in a row.
    fn fails(&mut self) -> bool {
        self.asked += 1;
        let hit = self.failures.hit(self.seed.hash(Purpose::LookerToken, self.asked | 1 << 60));
        self.failed_last = hit && !self.failed_last;
        self.failed_last
    }

    fn secret(&mut self) -> String {
        let hash = |nth| self.seed.hash_nth(Purpose::LookerToken, self.issued, nth);
        let text = format!("{:016x}{:016x}{:08x}", hash(0), hash(1), hash(2) as u32);
        self.issued += 1;
        text
    }
}

/// The documents say `token`, the clients of Looker say `Bearer`.
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    let known = scheme.eq_ignore_ascii_case("token") || scheme.eq_ignore_ascii_case("bearer");
    known.then_some(token.trim())
}
