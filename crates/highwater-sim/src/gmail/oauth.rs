//! Credentials: the token endpoint, the consent page that consents at once, and who may do what with which token.

mod jwt;

use std::{collections::HashMap, time::Duration};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;
use serde_json::{Value, json};

use super::{
    GmailSim,
    params::Params,
    plan::TokenPlan,
    scope::{self, MAIL, MODIFY, READONLY},
};
use crate::{
    answer::{JSON, Message, Reply},
    rng::{Purpose, Seed},
};

/// Always good, for everything.
pub const ACCESS_TOKEN: &str = "sim-access-token";
/// Good until the plan revokes it.
pub const REFRESH_TOKEN: &str = "sim-refresh-token";

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

#[derive(Debug)]
pub(super) struct Keys {
    seed: Seed,
    plan: TokenPlan,
    issued: u64,
    access: HashMap<String, Access>,
    refresh: HashMap<String, Vec<String>>,
    codes: HashMap<String, Code>,
    revoked: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) scopes: Vec<String>,
    pub(super) subject: Subject,
    expires: Option<Duration>,
}

/// Whose mailbox a token opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Owner,
    /// A service account that acts for nobody has none.
    Nobody,
}

#[derive(Debug)]
struct Code {
    scopes: Vec<String>,
    redirect: String,
    challenge: Option<(String, String)>,
}

/// An answer of the token endpoint that is no token.
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
            _ => StatusCode::BAD_REQUEST,
        };
        Denied { status, error, why: why.into() }
    }
}

impl Keys {
    pub(super) fn new(seed: Seed, plan: &TokenPlan) -> Self {
        Keys {
            seed,
            plan: plan.clone(),
            issued: 0,
            access: HashMap::new(),
            refresh: HashMap::new(),
            codes: HashMap::new(),
            revoked: false,
        }
    }

    /// Who holds a token, if it is good.
    pub(super) fn access(&self, token: &str, now: Duration) -> Option<Access> {
        if token == ACCESS_TOKEN {
            return Some(Access { scopes: vec![MAIL.to_owned()], subject: Subject::Owner, expires: None });
        }
        self.access.get(token).filter(|access| access.expires.is_none_or(|end| now < end)).cloned()
    }

    /// From now on no refresh token is good.
    pub(super) fn revoke(&mut self) {
        self.revoked = true;
    }

    /// From now on no access token is good but the one that always is.
    pub(super) fn expire(&mut self) {
        self.access.clear();
    }

    fn issue(&mut self, scopes: Vec<String>, subject: Subject, now: Duration) -> Value {
        let token = self.secret("ya29.");
        let lifetime = self.plan.lifetime_s;
        let expires = Some(now + Duration::from_secs(u64::from(lifetime)));
        self.access.retain(|_, access| access.expires.is_none_or(|end| now < end));
        let answer =
            json!({ "access_token": token, "expires_in": lifetime, "scope": scopes.join(" "), "token_type": "Bearer" });
        self.access.insert(token, Access { scopes, subject, expires });
        answer
    }

    fn secret(&mut self, prefix: &str) -> String {
        let hash = |nth| self.seed.hash_nth(Purpose::AccessToken, self.issued, nth);
        let text = format!("{prefix}{:016x}{:016x}", hash(0), hash(1));
        self.issued += 1;
        text
    }

    fn consented(&self, asked: &str) -> Vec<String> {
        let known = asked.split_whitespace().filter(|asked| scope::ALL.contains(asked));
        let granted =
            known.filter(|asked| self.plan.scopes.as_ref().is_none_or(|all| all.iter().any(|one| one == asked)));
        granted.map(str::to_owned).collect()
    }

    fn refreshed(&mut self, form: &Params, now: Duration) -> Result<Value, Denied> {
        let token = form.first("refresh_token").unwrap_or("");
        let built_in =
            || self.plan.scopes.clone().unwrap_or_else(|| [MAIL, MODIFY, READONLY].map(str::to_owned).to_vec());
        let scopes = self.refresh.get(token).cloned().or_else(|| (token == REFRESH_TOKEN).then(built_in));
        let dead = self.plan.revoked_after_s.is_some_and(|end| now.as_secs() >= u64::from(end)) || self.revoked;
        let Some(mut scopes) = scopes.filter(|_| !dead) else {
            return Err(Denied::new("invalid_grant", "Token has been expired or revoked."));
        };
        if let Some(narrow) = form.first("scope") {
            scopes.retain(|scope| narrow.split_whitespace().any(|one| one == scope));
        }
        Ok(self.issue(scopes, Subject::Owner, now))
    }

    fn exchanged(&mut self, form: &Params, now: Duration) -> Result<Value, Denied> {
        let code = form.first("code").and_then(|code| self.codes.remove(code));
        let code = code.ok_or_else(|| Denied::new("invalid_grant", "Malformed auth code."))?;
        if form.first("redirect_uri") != Some(code.redirect.as_str()) {
            return Err(Denied::new("redirect_uri_mismatch", "Bad Request"));
        }
        if let Some((challenge, method)) = &code.challenge {
            let verifier = form.first("code_verifier");
            let verifier = verifier.ok_or_else(|| Denied::new("invalid_grant", "Missing code verifier."))?;
            let shown = match method.as_str() {
                "S256" => URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())),
                _ => verifier.to_owned(),
            };
            if shown != *challenge {
                return Err(Denied::new("invalid_grant", "Invalid code verifier."));
            }
        }
        let refresh = self.secret("1//");
        self.refresh.insert(refresh.clone(), code.scopes.clone());
        let mut answer = self.issue(code.scopes, Subject::Owner, now);
        answer["refresh_token"] = json!(refresh);
        Ok(answer)
    }

    fn authorized(&mut self, params: &Params) -> Result<String, &'static str> {
        let redirect = params.first("redirect_uri").ok_or("redirect_uri is missing")?;
        params.first("client_id").ok_or("client_id is missing")?;
        if params.first("response_type") != Some("code") {
            return Err("response_type must be code");
        }
        let mark = if redirect.contains('?') { '&' } else { '?' };
        let state = params.first("state").map(|state| format!("&state={}", encoded(state))).unwrap_or_default();
        let scopes = self.consented(params.first("scope").unwrap_or(""));
        if scopes.is_empty() {
            return Ok(format!("{redirect}{mark}error=access_denied{state}"));
        }
        let method = params.first("code_challenge_method").unwrap_or("plain");
        let challenge = params.first("code_challenge").map(|challenge| (challenge.to_owned(), method.to_owned()));
        let scope = encoded(&scopes.join(" "));
        let code = self.secret("4/");
        let location = format!("{redirect}{mark}code={}{state}&scope={scope}", encoded(&code));
        self.codes.insert(code, Code { scopes, redirect: redirect.to_owned(), challenge });
        Ok(location)
    }
}

impl GmailSim {
    /// `POST /token`.
    pub(super) fn token(&self, body: &[u8], now: Duration) -> Reply {
        let form = Params::parse(&String::from_utf8_lossy(body));
        let mut inside = self.inside(now);
        let known = form.first("client_id").is_some_and(|id| !id.is_empty());
        let answer = match form.first("grant_type") {
            Some("refresh_token" | "authorization_code") if !known => {
                Err(Denied::new("invalid_client", "The OAuth client was not found."))
            }
            Some("refresh_token") => inside.keys.refreshed(&form, now),
            Some("authorization_code") => inside.keys.exchanged(&form, now),
            Some(JWT_BEARER) => self.asserted(&mut inside.keys, form.first("assertion").unwrap_or(""), now),
            Some(other) => Err(Denied::new("unsupported_grant_type", format!("Invalid grant_type: {other}"))),
            None => Err(Denied::new("invalid_request", "Missing required parameter: grant_type")),
        };
        inside.counts.count_token(answer.as_ref().err().map(|denied| denied.error));
        Reply::Full(match answer {
            Ok(token) => Message::json(token.to_string().into()),
            Err(Denied { status, error, why }) => {
                let body = json!({ "error": error, "error_description": why });
                Message::new(status, JSON, body.to_string().into())
            }
        })
    }

    /// `GET /o/oauth2/v2/auth`: the user agrees at once.
    pub(super) fn authorize(&self, params: &Params, now: Duration) -> Reply {
        match self.inside(now).keys.authorized(params) {
            Ok(location) => Reply::Found { location },
            Err(why) => {
                let body = json!({ "error": "invalid_request", "error_description": why });
                Reply::Full(Message::new(StatusCode::BAD_REQUEST, JSON, body.to_string().into()))
            }
        }
    }

    fn asserted(&self, keys: &mut Keys, assertion: &str, now: Duration) -> Result<Value, Denied> {
        let claims = jwt::Claims::parse(assertion)?;
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
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
