//! Signing in: one login at a time, renewed before it ends and when it is refused, and ended when the work is over.

use std::{sync::Arc, time::Duration};

use highwater_core::{Failure, FailureKind, Moment, Timestamp};
use http::{HeaderValue, Method, StatusCode};
use serde::Deserialize;
use tokio::sync::Mutex;

use crate::{
    Clock, Reading, Request, Response, Transport,
    escape::escaped,
    gmail::oauth::{Secret, Token},
    read_status,
};

/// Who asks.
#[derive(Clone, Debug)]
pub struct ApiKey {
    pub client_id: String,
    pub client_secret: Secret,
}

/// What a login may take, with all its tries.
const TRIES: u32 = 4;
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Who is not told for how long to wait waits ever longer, from the one to the other.
const UNTOLD_WAIT: Duration = Duration::from_millis(250);
const UNTOLD_WAIT_MAX: Duration = Duration::from_secs(600);
/// Nobody waits long for a goodbye.
const LOGOUT_MAX: Duration = Duration::from_secs(3);
/// When an answer does not say how long a token lasts.
const USUAL_LIFE: u64 = 3600;

pub(super) struct Session {
    transport: Arc<dyn Transport>,
    clock: Clock,
    key: ApiKey,
    /// Held over a login on purpose: whoever comes meanwhile waits for its result and makes none of its own.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    login: Option<Login>,
    /// The remote does not want to hear of logins before.
    not_before: Option<Moment>,
    /// Logins in a row that it put off.
    refusals: u32,
}

struct Login {
    token: Token,
    renew_at: Timestamp,
}

#[derive(Deserialize)]
struct LoginAnswer {
    access_token: Secret,
    expires_in: Option<u64>,
}

impl Session {
    pub(super) fn new(transport: Arc<dyn Transport>, clock: Clock, key: ApiKey) -> Self {
        Session { transport, clock, key, state: Mutex::default() }
    }

    /// A token to ask with, renewed when five sixths of its life have passed.
    pub(super) async fn token(&self) -> Result<Token, Failure> {
        let mut state = self.state.lock().await;
        if let Some(login) = state.login.as_ref().filter(|login| self.clock.now() < login.renew_at) {
            return Ok(login.token.clone());
        }
        self.renew(&mut state).await
    }

    pub(super) async fn is_current(&self, token: &Token) -> bool {
        self.state.lock().await.login.as_ref().is_some_and(|login| login.token == *token)
    }

    /// The remote gave 401 for a token: another one, unless somebody has got one already.
    pub(super) async fn refused(&self, token: &Token) -> Result<Token, Failure> {
        let mut state = self.state.lock().await;
        match state.login.as_ref().filter(|login| login.token != *token) {
            Some(login) => Ok(login.token.clone()),
            None => self.renew(&mut state).await,
        }
    }

    /// Ends the session at the remote, if there is one.
    pub(super) async fn end(&self) {
        let Some(login) = self.state.lock().await.login.take() else { return };
        let mut request = signed(Request::get("/api/4.0/logout"), &login.token);
        request.method = Method::DELETE;
        tokio::select! {
            biased;
            // A token that is not given back ends by itself.
            _ = self.transport.send(request) => {}
            () = self.clock.sleep(LOGOUT_MAX) => {}
        }
    }

    async fn renew(&self, state: &mut State) -> Result<Token, Failure> {
        if let Some(until) = state.not_before.filter(|until| self.clock.moment() < *until) {
            let retry_after = Some(until.since(self.clock.moment()));
            return Err(Failure { retry_after, ..Failure::new(FailureKind::Throttled, "logins are to wait") });
        }
        let now = self.clock.now();
        let answer = self.log_in().await.map_err(|failure| self.put_off(state, failure))?;
        (state.not_before, state.refusals) = (None, 0);
        let token = Token::try_from(answer.access_token)
            .map_err(|_| Failure::new(FailureKind::Malformed, "the login gave no usable token"))?;
        let life = Duration::from_secs(answer.expires_in.unwrap_or(USUAL_LIFE));
        state.login = Some(Login { token: token.clone(), renew_at: now + life * 5 / 6 });
        tracing::debug!("signed in");
        Ok(token)
    }

    /// Remembers until when nobody may sign in, if it is that, and says it.
    fn put_off(&self, state: &mut State, failure: Failure) -> Failure {
        if failure.kind != FailureKind::Throttled {
            return failure;
        }
        let untold = (UNTOLD_WAIT * 2_u32.saturating_pow(state.refusals.min(16))).min(UNTOLD_WAIT_MAX);
        let wait = failure.retry_after.unwrap_or(untold);
        state.refusals = state.refusals.saturating_add(1);
        state.not_before = Some(self.clock.moment() + wait);
        Failure { retry_after: Some(wait), ..failure }
    }

    async fn log_in(&self) -> Result<LoginAnswer, Failure> {
        let (mut wait, mut tries) = (FIRST_WAIT, 1);
        loop {
            let failure = match self.log_in_once().await {
                Err(failure) if !failure.kind.is_about_account() && tries < TRIES => failure,
                answer => return answer,
            };
            tracing::debug!(reason = failure.kind.as_str(), "signing in failed");
            self.clock.sleep(wait).await;
            (wait, tries) = (wait * 2, tries + 1);
        }
    }

    async fn log_in_once(&self) -> Result<LoginAnswer, Failure> {
        let ApiKey { client_id, client_secret } = &self.key;
        let form = format!("client_id={}&client_secret={}", escaped(client_id), escaped(client_secret.expose()));
        let content_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        let request = Request::post("/api/4.0/login", content_type, form);
        let answer = self.transport.send(request).await?;
        read_login(&answer, self.clock.now())
    }
}

fn read_login(answer: &Response, now: Timestamp) -> Result<LoginAnswer, Failure> {
    let status = answer.status;
    match status {
        StatusCode::OK | StatusCode::CREATED => serde_json::from_slice(&answer.body)
            .map_err(|_| Failure::new(FailureKind::Malformed, "the answer to the login is not what was asked for")),
        StatusCode::BAD_REQUEST
        | StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::NOT_FOUND
        | StatusCode::UNPROCESSABLE_ENTITY => {
            let message = format!(
                "Looker refuses the client id or the secret (status {}): check them, and that base_url is the address \
                 of the API",
                status.as_u16()
            );
            Err(Failure::new(FailureKind::Credentials, message))
        }
        _ => {
            let (kind, retry_after) = match read_status(answer, now) {
                Reading::Throttled { retry_after } => (FailureKind::Throttled, retry_after),
                _ if status.is_server_error() => (FailureKind::Server, None),
                _ => (FailureKind::Status, None),
            };
            Err(Failure { retry_after, ..Failure::new(kind, format!("login: status {}", status.as_u16())) })
        }
    }
}

pub(super) fn signed(mut request: Request, token: &Token) -> Request {
    request.headers.insert(http::header::AUTHORIZATION, token.authorization());
    request.headers.insert(http::header::USER_AGENT, USER_AGENT);
    request.headers.insert(http::header::ACCEPT, HeaderValue::from_static("application/json"));
    request
}

const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("highwater/", env!("CARGO_PKG_VERSION")));

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;

    use super::*;

    fn kind_of(status: u16, body: &'static str) -> Result<Option<u64>, FailureKind> {
        let status = StatusCode::from_u16(status).unwrap();
        let answer = Response::new(status, HeaderMap::new(), Bytes::from_static(body.as_bytes()));
        read_login(&answer, Timestamp::EPOCH).map(|login| login.expires_in).map_err(|failure| failure.kind)
    }

    #[test]
    fn a_refused_key_is_told_from_a_server_in_trouble() {
        assert_eq!(kind_of(200, r#"{"access_token":"t","token_type":"Bearer","expires_in":60}"#), Ok(Some(60)));
        for refused in [400, 401, 403, 404, 422] {
            assert_eq!(kind_of(refused, "{}"), Err(FailureKind::Credentials), "{refused}");
        }
        assert_eq!(kind_of(429, "Too many requests"), Err(FailureKind::Throttled));
        assert_eq!(kind_of(502, "<html>"), Err(FailureKind::Server));
        assert_eq!(kind_of(200, "<html>"), Err(FailureKind::Malformed));
    }
}
