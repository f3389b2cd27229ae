//! The token endpoint: three ways to ask for an access token, and what it answers.

use std::{sync::Arc, time::Duration};

use highwater_core::{Failure, Timestamp};
use http::{HeaderValue, Uri};
use serde::Deserialize;

use super::{Access, Client, Consent, Credentials, Grant, READONLY, Refusal, Secret, ServiceAccount, Token, form};
use crate::{Clock, Deadlines, HttpTransport, Request, Response, SetupError, Transport, TransportSettings};

/// The first wait after an answer that passes, doubled each time. Nobody else asks for this account meanwhile, so there
/// is no crowd that chance would have to spread.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const ANSWER_MAX: Duration = Duration::from_secs(15);
const BODY_MAX: usize = 64 * 1024;

/// How often to ask before giving up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tries {
    /// Something still works, or a second try would do harm.
    One,
    /// Over seven seconds.
    Some,
}

#[derive(Clone)]
pub struct TokenEndpoint {
    transport: Arc<dyn Transport>,
    url: String,
    path: String,
    clock: Clock,
}

/// An access token, and a refresh token where a new one was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    pub access: Access,
    pub refresh_token: Option<Secret>,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: Token,
    expires_in: u32,
    refresh_token: Option<Secret>,
    scope: Option<String>,
}

impl TokenEndpoint {
    /// Over the network. Tokens are small and quickly made, so its deadlines are short.
    pub fn connect(url: &str, clock: Clock) -> Result<Self, SetupError> {
        let (origin, path) = split_url(url).ok_or(SetupError::BaseUrl("not a URL"))?;
        let deadlines = Deadlines { total: ANSWER_MAX, ..Deadlines::default() };
        let settings = TransportSettings { deadlines, body_max: BODY_MAX, ..TransportSettings::default() };
        let transport = Arc::new(HttpTransport::new(&origin, settings)?);
        Ok(TokenEndpoint { transport, url: url.to_owned(), path, clock })
    }

    /// Over a transport of one's own to the origin of `url`, which has a path.
    pub fn over(transport: Arc<dyn Transport>, url: &str, clock: Clock) -> Self {
        let path = split_url(url).map_or_else(|| "/".to_owned(), |(_, path)| path);
        TokenEndpoint { transport, url: url.to_owned(), path, clock }
    }

    /// A new access token for `account`, by whatever was granted.
    pub async fn renew(&self, grant: &Grant, account: &str, tries: Tries) -> Result<Granted, Refusal> {
        match grant {
            Grant::RefreshToken { refresh_token, client } => self.refresh(client, refresh_token, tries).await,
            Grant::ServiceAccount(robot) => self.assert(robot, account, tries).await,
        }
    }

    async fn refresh(&self, client: &Client, refresh_token: &Secret, tries: Tries) -> Result<Granted, Refusal> {
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", &client.id),
            ("client_secret", client.secret.expose()),
            ("refresh_token", refresh_token.expose()),
        ];
        self.ask(&form, tries).await
    }

    async fn assert(&self, robot: &ServiceAccount, account: &str, tries: Tries) -> Result<Granted, Refusal> {
        let assertion =
            robot.assertion(account, &self.url, self.clock.now()).map_err(|error| Refusal::Other(error.to_string()))?;
        let form = [("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", assertion.expose())];
        self.ask(&form, tries).await.map_err(|refusal| match refusal {
            Refusal::InvalidGrant => Refusal::Impersonation,
            other => other,
        })
    }

    /// Turns the code that a browser brought into credentials. A code is good once.
    pub async fn exchange(&self, client: Client, consent: &Consent, code: &Secret) -> Result<Credentials, Refusal> {
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", &client.id),
            ("client_secret", client.secret.expose()),
            ("code", code.expose()),
            ("code_verifier", consent.verifier.expose()),
            ("redirect_uri", &consent.redirect_uri),
        ];
        let Granted { access, refresh_token } = self.ask(&form, Tries::One).await?;
        let refresh_token = refresh_token.ok_or(Refusal::Malformed)?;
        Ok(Credentials { grant: Grant::RefreshToken { refresh_token, client }, access: Some(access) })
    }

    async fn ask(&self, form: &[(&str, &str)], tries: Tries) -> Result<Granted, Refusal> {
        let mut waits = match tries {
            Tries::One => 0..0,
            Tries::Some => 0..3,
        };
        loop {
            match (self.ask_once(form).await, waits.next()) {
                (Err(Refusal::Temporary(_)), Some(nth)) => self.clock.sleep(FIRST_WAIT * (1 << nth)).await,
                (answer, _) => return answer,
            }
        }
    }

    async fn ask_once(&self, form: &[(&str, &str)]) -> Result<Granted, Refusal> {
        let content_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        let request = Request::post(self.path.as_str(), content_type, form::encode(form));
        let now = self.clock.now();
        let answer = self.transport.send(request).await.map_err(|failure| Refusal::Temporary(unanswered(failure)))?;
        read(&answer, now)
    }
}

fn read(answer: &Response, now: Timestamp) -> Result<Granted, Refusal> {
    if !answer.status.is_success() {
        return Err(Refusal::read(answer.status, &answer.body));
    }
    let answer: TokenAnswer = serde_json::from_slice(&answer.body).map_err(|_| Refusal::Malformed)?;
    // Left out, it is what was asked for.
    let scope = answer.scope.unwrap_or_else(|| READONLY.to_owned());
    let access = Access {
        token: answer.access_token,
        obtained_at: now,
        expires_at: now + Duration::from_secs(answer.expires_in.into()),
        scopes: scope.split_whitespace().map(str::to_owned).collect(),
    };
    Ok(Granted { access, refresh_token: answer.refresh_token })
}

fn unanswered(failure: Failure) -> Failure {
    Failure { message: format!("the token endpoint: {}", failure.message), ..failure }
}

/// A URL as origin, for a transport, and as path and query, for a request.
fn split_url(url: &str) -> Option<(String, String)> {
    let uri: Uri = url.parse().ok()?;
    let origin = format!("{}://{}", uri.scheme_str()?, uri.authority()?);
    Some((origin, uri.path_and_query().map_or("/", |path| path.as_str()).to_owned()))
}
