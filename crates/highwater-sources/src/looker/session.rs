//! Signing in: one login at a time, renewed before it ends and when it is refused, and ended when the work is over.

use std::{sync::Arc, time::Duration};

use highwater_core::{Failure, FailureKind, Moment, Timestamp};
use http::{HeaderValue, Method, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Mutex;

use super::json::Node;
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
const USUAL_LIFE: Duration = Duration::from_secs(3600);
/// What is said beyond that is not relied on.
const LIFE_MAX: Duration = Duration::from_secs(24 * 3600);

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

struct SignedIn {
    token: Secret,
    life: Duration,
}

#[derive(Deserialize)]
struct LoginAnswer<'a> {
    access_token: Secret,
    #[serde(borrow, default)]
    expires_in: Option<&'a RawValue>,
}

impl LoginAnswer<'_> {
    /// Seconds as a number or as text, whole or not.
    fn life(&self) -> Duration {
        let word = self.expires_in.and_then(|raw| Node::read(raw.get())?.word());
        let seconds = word.and_then(|word| word.trim().parse::<f64>().ok()).filter(|seconds| *seconds > 0.0);
        let life = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or(LIFE_MAX).min(LIFE_MAX);
        seconds.map_or(USUAL_LIFE, life)
    }
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
        let SignedIn { token, life } = self.log_in().await.map_err(|failure| self.put_off(state, failure))?;
        (state.not_before, state.refusals) = (None, 0);
        let token = Token::try_from(token)
            .map_err(|_| Failure::new(FailureKind::Malformed, "the login gave no usable token"))?;
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
        let wait = failure.retry_after.map_or(untold, |told| told.max(untold));
        state.refusals = state.refusals.saturating_add(1);
        state.not_before = Some(self.clock.moment() + wait);
        Failure { retry_after: Some(wait), ..failure }
    }

    async fn log_in(&self) -> Result<SignedIn, Failure> {
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

    async fn log_in_once(&self) -> Result<SignedIn, Failure> {
        let ApiKey { client_id, client_secret } = &self.key;
        let form = format!("client_id={}&client_secret={}", escaped(client_id), escaped(client_secret.expose()));
        let content_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        let request = Request::post("/api/4.0/login", content_type, form);
        let answer = self.transport.send(request).await?;
        read_login(&answer, self.clock.now())
    }
}

fn read_login(answer: &Response, now: Timestamp) -> Result<SignedIn, Failure> {
    let status = answer.status;
    match status {
        StatusCode::OK | StatusCode::CREATED => {
            let answer: LoginAnswer<'_> = serde_json::from_slice(&answer.body).map_err(|_| {
                Failure::new(FailureKind::Malformed, "the answer to the login is not what was asked for")
            })?;
            Ok(SignedIn { life: answer.life(), token: answer.access_token })
        }
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

    fn read(status: u16, body: &str) -> Result<Duration, FailureKind> {
        let status = StatusCode::from_u16(status).unwrap();
        let answer = Response::new(status, HeaderMap::new(), Bytes::copy_from_slice(body.as_bytes()));
        read_login(&answer, Timestamp::EPOCH).map(|login| login.life).map_err(|failure| failure.kind)
    }

    #[test]
    fn how_long_a_token_lasts_is_read_however_it_is_said() {
        let said = [("60", 60.0), ("59.5", 59.5), ("\"60\"", 60.0), ("\" 59.5 \"", 59.5), ("1e2", 100.0)];
        let unsaid = ["null", "0", "-5", "\"soon\"", "\"NaN\"", "[60]"].map(|text| (text, 3600.0));
        let endless = ["18446744073709551615", "1e30", "1e999", "\"inf\""].map(|text| (text, 86_400.0));
        for (text, seconds) in said.into_iter().chain(unsaid).chain(endless) {
            let life = read(200, &format!(r#"{{"access_token":"t","expires_in":{text}}}"#));
            assert_eq!(life, Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        assert_eq!(read(200, r#"{"access_token":"t"}"#), Ok(USUAL_LIFE));
    }

    #[test]
    fn a_refused_key_is_told_from_a_server_in_trouble() {
        for refused in [400, 401, 403, 404, 422] {
            assert_eq!(read(refused, "{}"), Err(FailureKind::Credentials), "{refused}");
        }
        assert_eq!(read(429, "Too many requests"), Err(FailureKind::Throttled));
        assert_eq!(read(502, "<html>"), Err(FailureKind::Server));
        assert_eq!(read(200, "<html>"), Err(FailureKind::Malformed));
    }
}
