//! What the token endpoint means when it gives no token: a word to decide on, and what a person may do about it.

use highwater_core::{Failure, FailureKind};
use http::StatusCode;
use serde::Deserialize;

use super::consent::word;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "Google no longer accepts them (invalid_grant): access was revoked, the password was changed, they were not \
         used for six months, or the app is in testing mode, in which consent ends after 7 days"
    )]
    InvalidGrant,
    #[error(
        "the service account may not act for the account (invalid_grant): the account is not of its domain, the key was \
         deleted, or the clock of this machine is wrong"
    )]
    Impersonation,
    #[error("the organisation asks for a new login (invalid_grant, {0})")]
    Reauthentication(&'static str),
    #[error("the client id or the client secret is wrong (invalid_client)")]
    InvalidClient,
    #[error(
        "the client may not do this (unauthorized_client): they belong to another client, or domain-wide delegation was \
         not given to the service account for gmail.readonly"
    )]
    UnauthorizedClient,
    #[error("the permission to read mail cannot be given to this client (invalid_scope)")]
    InvalidScope,
    #[error("a rule of the organisation forbids it ({0})")]
    Policy(&'static str),
    #[error("the token endpoint refuses ({0})")]
    Other(String),
    /// Worth another try.
    #[error(transparent)]
    Temporary(Failure),
    #[error("the token endpoint gave an answer that makes no sense")]
    Malformed,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: String,
    error_subtype: Option<String>,
}

impl Refusal {
    /// The description in an answer is no part of the contract, and may name the account: it is left out.
    pub(super) fn read(status: StatusCode, body: &[u8]) -> Refusal {
        let passing = || {
            let message = format!("the token endpoint answers with status {}", status.as_u16());
            Refusal::Temporary(Failure::new(FailureKind::Server, message))
        };
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return passing();
        }
        match serde_json::from_slice(body) {
            Ok(answer) => named(&answer).unwrap_or_else(passing),
            Err(_) => Refusal::Malformed,
        }
    }

    /// As the rest of the program takes it; `remedy` says what to do where a person must.
    pub fn failure(&self, remedy: &str) -> Failure {
        match self {
            Refusal::Temporary(failure) => failure.clone(),
            Refusal::Malformed => Failure::new(FailureKind::Malformed, self.to_string()),
            _ => Failure::new(FailureKind::Credentials, format!("the credentials cannot be used: {self}; {remedy}")),
        }
    }
}

/// `None` for what passes.
fn named(answer: &ErrorAnswer) -> Option<Refusal> {
    let subtype = answer.error_subtype.as_deref();
    Some(match answer.error.as_str() {
        "internal_failure" | "server_error" | "temporarily_unavailable" | "rate_limit_exceeded" => return None,
        "invalid_grant" if subtype == Some("invalid_rapt") => Refusal::Reauthentication("invalid_rapt"),
        "invalid_grant" if subtype == Some("rapt_required") => Refusal::Reauthentication("rapt_required"),
        "invalid_grant" => Refusal::InvalidGrant,
        "invalid_client" => Refusal::InvalidClient,
        "unauthorized_client" => Refusal::UnauthorizedClient,
        "invalid_scope" => Refusal::InvalidScope,
        "admin_policy_enforced" => Refusal::Policy("admin_policy_enforced"),
        "access_denied" => Refusal::Policy("access_denied"),
        "org_internal" => Refusal::Policy("org_internal"),
        other => Refusal::Other(word(other)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> Refusal {
        Refusal::read(StatusCode::from_u16(status).unwrap(), body.as_bytes())
    }

    #[test]
    fn a_refusal_is_known_by_its_word() {
        let canary = r#""error_description":"canary ann@example.com""#;
        for (error, expected) in [
            (r#""invalid_grant""#, Refusal::InvalidGrant),
            (r#""invalid_grant","error_subtype":"invalid_rapt""#, Refusal::Reauthentication("invalid_rapt")),
            (r#""invalid_grant","error_subtype":"new""#, Refusal::InvalidGrant),
            (r#""invalid_client""#, Refusal::InvalidClient),
            (r#""unauthorized_client""#, Refusal::UnauthorizedClient),
            (r#""invalid_scope""#, Refusal::InvalidScope),
            (r#""admin_policy_enforced""#, Refusal::Policy("admin_policy_enforced")),
            (r#""redirect_uri_mismatch""#, Refusal::Other("redirect_uri_mismatch".into())),
            (r#""Canary 7""#, Refusal::Other("an unknown error".into())),
        ] {
            let refusal = read(400, &format!(r#"{{"error":{error},{canary}}}"#));
            assert_eq!(refusal, expected, "{error}");
            let failure = refusal.failure("run 'highwater auth mail'");
            assert_eq!(failure.kind, FailureKind::Credentials);
            assert!(failure.message.ends_with("; run 'highwater auth mail'"), "{failure}");
            assert!(!failure.message.contains("anary"), "{failure}");
        }
    }

    #[test]
    fn what_passes_is_told_from_what_makes_no_sense() {
        for (status, body) in [
            (500, "<html>"),
            (503, r#"{"error":"backend"}"#),
            (429, ""),
            (400, r#"{"error":"internal_failure"}"#),
            (400, r#"{"error":"temporarily_unavailable"}"#),
        ] {
            let refusal = read(status, body);
            let passes = matches!(&refusal, Refusal::Temporary(failure) if failure.kind == FailureKind::Server);
            assert!(passes, "{status} {body}: {refusal:?}");
        }
        for body in ["", "<html>", "[]", r#"{"error":7}"#] {
            assert_eq!(read(400, body), Refusal::Malformed, "{body}");
        }
    }
}
