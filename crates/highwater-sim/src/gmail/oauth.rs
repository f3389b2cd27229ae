//! Credentials: the consent page that answers at once, the token endpoint and the revocation of what it gave.

mod jwt;
mod keys;

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

pub(super) use self::{
    jwt::public_key,
    keys::{Access, Keys, Subject},
};
use super::{GmailSim, params::Params, plan::Consent};
use crate::answer::{JSON, Message, Reply};

/// Always good, for everything.
pub const ACCESS_TOKEN: &str = "sim-access-token";
/// Good until it is revoked.
pub const REFRESH_TOKEN: &str = "sim-refresh-token";

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// An answer of these endpoints that is no token.
#[derive(Debug, PartialEq)]
struct Denied {
    status: StatusCode,
    error: &'static str,
    why: String,
}

impl Denied {
    fn new(error: &'static str, why: impl Into<String>) -> Self {
        let status = match error {
            "invalid_client" | "unauthorized_client" => StatusCode::UNAUTHORIZED,
            "internal_failure" => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        };
        Denied { status, error, why: why.into() }
    }

    fn message(&self) -> Message {
        let body = json!({ "error": self.error, "error_description": self.why });
        Message::new(self.status, JSON, body.to_string().into())
    }
}

impl GmailSim {
    /// `POST /token`.
    pub(super) fn token(&self, body: &[u8], now: Duration) -> Reply {
        let form = Params::parse(&String::from_utf8_lossy(body));
        let mut inside = self.inside(now);
        let (grant, answer) = self.granted(&mut inside.keys, &form, now);
        Reply::Full(match answer {
            Ok(token) => {
                inside.counts.count_token(grant);
                Message::json(token.to_string().into())
            }
            Err(denied) => {
                inside.counts.count_denial(denied.error);
                denied.message()
            }
        })
    }

    fn granted(&self, keys: &mut Keys, form: &Params, now: Duration) -> (&'static str, Result<Value, Denied>) {
        if keys.fails() {
            return ("", Err(Denied::new("internal_failure", "Please try again.")));
        }
        match form.first("grant_type") {
            Some("refresh_token") => {
                ("refresh_token", self.known_client(form).and_then(|()| keys.refreshed(form, now)))
            }
            Some("authorization_code") => {
                ("authorization_code", self.known_client(form).and_then(|()| keys.exchanged(form, now)))
            }
            Some(JWT_BEARER) => ("jwt-bearer", self.asserted(keys, form.first("assertion").unwrap_or(""), now)),
            Some(other) => ("", Err(Denied::new("unsupported_grant_type", format!("Invalid grant_type: {other}")))),
            None => ("", Err(Denied::new("invalid_request", "Missing required parameter: grant_type"))),
        }
    }

    fn known_client(&self, form: &Params) -> Result<(), Denied> {
        let client = &self.plan.client;
        if form.first("client_id") != Some(client.id.as_str()) {
            return Err(Denied::new("invalid_client", "The OAuth client was not found."));
        }
        if form.first("client_secret") != Some(client.secret.as_str()) {
            return Err(Denied::new("invalid_client", "The provided client secret is invalid."));
        }
        Ok(())
    }

    fn asserted(&self, keys: &mut Keys, assertion: &str, now: Duration) -> Result<Value, Denied> {
        let claims = jwt::Claims::parse(assertion, self.plan.client.public_key.as_deref())?;
        claims.check(self.wall(now) / 1_000)?;
        let subject = match claims.sub.as_deref() {
            None => Subject::Nobody,
            Some(address) if address == self.plan.mailbox.address => Subject::Owner,
            Some(_) => return Err(Denied::new("invalid_grant", "Invalid email or User ID")),
        };
        let scopes = keys.consented(&claims.scope);
        if scopes.is_empty() {
            let why = "Client is unauthorized to retrieve access tokens using this method, or client not authorized \
                for any of the scopes requested.";
            return Err(Denied::new("unauthorized_client", why));
        }
        Ok(keys.issue(scopes, subject, now))
    }

    /// `POST /revoke`: the token and everything that came of the same consent.
    pub(super) fn revoke(&self, params: &Params, body: &[u8], now: Duration) -> Reply {
        let form = Params::parse(&String::from_utf8_lossy(body));
        let token = params.first("token").or_else(|| form.first("token")).unwrap_or("");
        let mut inside = self.inside(now);
        Reply::Full(if inside.keys.knows(token, now) {
            inside.keys.revoke();
            Message::json("{}".into())
        } else {
            Denied::new("invalid_token", "Token expired or revoked").message()
        })
    }

    /// `GET /o/oauth2/v2/auth`: the user agrees at once, or does not.
    pub(super) fn authorize(&self, params: &Params, now: Duration) -> Reply {
        match self.asked(params) {
            Ok(redirect) => {
                let given = self.plan.client.consent == Consent::Given;
                let answer = if given { self.inside(now).keys.authorized(params, redirect) } else { None };
                let answer = answer.unwrap_or_else(|| "error=access_denied".to_owned());
                let mark = if redirect.contains('?') { '&' } else { '?' };
                let state = params.first("state").map(|state| format!("&state={}", encoded(state)));
                Reply::Found { location: format!("{redirect}{mark}{answer}{}", state.unwrap_or_default()) }
            }
            Err(denied) => Reply::Full(denied.message()),
        }
    }

    /// Where the answer to a proper question goes. An improper one is answered where it was asked.
    fn asked<'a>(&self, params: &'a Params) -> Result<&'a str, Denied> {
        let needed = |name: &str| {
            let missing = || Denied::new("invalid_request", format!("Missing required parameter: {name}"));
            params.first(name).filter(|value| !value.is_empty()).ok_or_else(missing)
        };
        if needed("client_id")? != self.plan.client.id {
            return Err(Denied::new("invalid_client", "The OAuth client was not found."));
        }
        let redirect = needed("redirect_uri")?;
        if !is_loopback(redirect) {
            return Err(Denied::new("redirect_uri_mismatch", "desktop clients are sent back to a loopback address"));
        }
        if needed("response_type")? != "code" {
            return Err(Denied::new("unsupported_response_type", "response_type must be code"));
        }
        // Google lets it pass without; nothing that ships should.
        needed("code_challenge")?;
        needed("state")?;
        Ok(redirect)
    }
}

fn is_loopback(redirect: &str) -> bool {
    let host = redirect.strip_prefix("http://").unwrap_or("");
    ["127.0.0.1", "localhost", "[::1]"]
        .into_iter()
        .any(|known| host.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/', '?'])))
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
