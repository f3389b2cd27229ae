//! Codes and tokens: what was given out, for what, and until when.

use std::{collections::HashMap, time::Duration};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{ACCESS_TOKEN, Denied, REFRESH_TOKEN, encoded};
use crate::{
    gmail::{
        params::Params,
        plan::TokenPlan,
        scope::{self, MAIL, MODIFY, READONLY},
    },
    rng::{Purpose, Seed, Share},
};

#[derive(Debug)]
pub(in crate::gmail) struct Keys {
    seed: Seed,
    plan: TokenPlan,
    failures: Share,
    asked: u64,
    failed_last: bool,
    issued: u64,
    access: HashMap<String, Access>,
    refresh: HashMap<String, Grant>,
    codes: HashMap<String, Code>,
}

#[derive(Clone, Debug)]
pub(in crate::gmail) struct Access {
    pub(in crate::gmail) scopes: Vec<String>,
    pub(in crate::gmail) subject: Subject,
    expires: Option<Duration>,
}

/// Whose mailbox a token opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gmail) enum Subject {
    Owner,
    /// The account that the plan names for tokens.
    Other,
    /// A service account that acts for nobody has none.
    Nobody,
}

#[derive(Clone, Debug)]
struct Grant {
    scopes: Vec<String>,
    since: Duration,
}

#[derive(Debug)]
struct Code {
    scopes: Vec<String>,
    redirect: String,
    challenge: String,
    method: String,
}

impl Code {
    fn verify(&self, form: &Params) -> Result<(), Denied> {
        if form.first("redirect_uri") != Some(self.redirect.as_str()) {
            return Err(Denied::new("redirect_uri_mismatch", "Bad Request"));
        }
        let verifier = form.first("code_verifier");
        let verifier = verifier.ok_or_else(|| Denied::new("invalid_grant", "Missing code verifier."))?;
        let shown = match self.method.as_str() {
            "S256" => URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())),
            _ => verifier.to_owned(),
        };
        if shown == self.challenge { Ok(()) } else { Err(Denied::new("invalid_grant", "Invalid code verifier.")) }
    }
}

impl Keys {
    pub(in crate::gmail) fn new(seed: Seed, plan: &TokenPlan) -> Self {
        let scopes = plan.scopes.clone().unwrap_or_else(|| [MAIL, MODIFY, READONLY].map(str::to_owned).to_vec());
        let first = Grant { scopes, since: Duration::ZERO };
        Keys {
            seed,
            plan: plan.clone(),
            failures: Share::new(plan.failures).unwrap_or(Share::NONE),
            asked: 0,
            failed_last: false,
            issued: 0,
            access: HashMap::new(),
            refresh: HashMap::from([(REFRESH_TOKEN.to_owned(), first)]),
            codes: HashMap::new(),
        }
    }

    /// Who holds a token, if it is good.
    pub(in crate::gmail) fn access(&self, token: &str, now: Duration) -> Option<Access> {
        if token == ACCESS_TOKEN {
            return Some(Access { scopes: vec![MAIL.to_owned()], subject: Subject::Owner, expires: None });
        }
        self.access.get(token).filter(|access| access.expires.is_none_or(|end| now < end)).cloned()
    }

    pub(super) fn knows(&self, token: &str, now: Duration) -> bool {
        self.alive(token, now).is_some() || self.access(token, now).is_some()
    }

    /// From now on no token is good but the access token that always is. Later consent gives new ones.
    pub(in crate::gmail) fn revoke(&mut self) {
        self.refresh.clear();
        self.expire();
    }

    /// From now on no access token is good but the one that always is.
    pub(in crate::gmail) fn expire(&mut self) {
        self.access.clear();
    }

    /// Whether the endpoint has a bad moment; never twice in a row.
    pub(super) fn fails(&mut self) -> bool {
        self.asked += 1;
        let hit = self.failures.hit(self.seed.hash(Purpose::AccessToken, self.asked | 1 << 60));
        self.failed_last = hit && !self.failed_last;
        self.failed_last
    }

    pub(super) fn issue(&mut self, scopes: Vec<String>, subject: Subject, now: Duration) -> Value {
        let token = self.secret("ya29.");
        let lifetime = self.plan.lifetime_s;
        let expires = Some(now + Duration::from_secs(u64::from(lifetime)));
        self.access.retain(|_, access| access.expires.is_none_or(|end| now < end));
        let answer =
            json!({ "access_token": token, "expires_in": lifetime, "scope": scopes.join(" "), "token_type": "Bearer" });
        self.access.insert(token, Access { scopes, subject, expires });
        answer
    }

    pub(super) fn consented(&self, asked: &str) -> Vec<String> {
        let known = asked.split_whitespace().filter(|asked| scope::ALL.contains(asked));
        let granted =
            known.filter(|asked| self.plan.scopes.as_ref().is_none_or(|all| all.iter().any(|one| one == asked)));
        granted.map(str::to_owned).collect()
    }

    pub(super) fn refreshed(&mut self, form: &Params, now: Duration) -> Result<Value, Denied> {
        let token = form.first("refresh_token").unwrap_or("");
        let dead = || Denied::new("invalid_grant", "Token has been expired or revoked.");
        let mut scopes = self.alive(token, now).ok_or_else(dead)?.scopes.clone();
        if let Some(narrow) = form.first("scope") {
            scopes.retain(|scope| narrow.split_whitespace().any(|one| one == scope));
        }
        Ok(self.issue(scopes, self.holder(), now))
    }

    pub(super) fn exchanged(&mut self, form: &Params, now: Duration) -> Result<Value, Denied> {
        let code = form.first("code").and_then(|code| self.codes.remove(code));
        let code = code.ok_or_else(|| Denied::new("invalid_grant", "Malformed auth code."))?;
        code.verify(form)?;
        let refresh = self.secret("1//");
        self.refresh.insert(refresh.clone(), Grant { scopes: code.scopes.clone(), since: now });
        let mut answer = self.issue(code.scopes, self.holder(), now);
        answer["refresh_token"] = json!(refresh);
        Ok(answer)
    }

    /// What is added to the redirect; `None` if the user agrees to nothing.
    pub(super) fn authorized(&mut self, params: &Params, redirect: &str) -> Option<String> {
        let scopes = self.consented(params.first("scope").unwrap_or(""));
        if scopes.is_empty() {
            return None;
        }
        let answer = format!("scope={}", encoded(&scopes.join(" ")));
        let challenge = params.first("code_challenge").unwrap_or("").to_owned();
        let method = params.first("code_challenge_method").unwrap_or("plain").to_owned();
        let code = self.secret("4/");
        let answer = format!("code={}&{answer}", encoded(&code));
        self.codes.insert(code, Code { scopes, redirect: redirect.to_owned(), challenge, method });
        Some(answer)
    }

    fn alive(&self, token: &str, now: Duration) -> Option<&Grant> {
        let end = self.plan.revoked_after_s.map(|end| Duration::from_secs(u64::from(end)));
        self.refresh.get(token).filter(|grant| end.is_none_or(|end| now < end || grant.since >= end))
    }

    const fn holder(&self) -> Subject {
        if self.plan.account.is_some() { Subject::Other } else { Subject::Owner }
    }

    fn secret(&mut self, prefix: &str) -> String {
        let hash = |nth| self.seed.hash_nth(Purpose::AccessToken, self.issued, nth);
        let text = format!("{prefix}{:016x}{:016x}", hash(0), hash(1));
        self.issued += 1;
        text
    }
}
