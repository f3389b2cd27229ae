//! Whose token it is.

use highwater_core::{Failure, FailureKind};
use http::{StatusCode, header};
use serde::Deserialize;

use super::{super::reply::is_about_quota, Token};
use crate::{Request, Response, Transport};

const PROFILE: &str = "/gmail/v1/users/me/profile?prettyPrint=false";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    email_address: String,
}

/// The address of the mailbox that a token opens. `transport` leads to the API.
pub async fn owner_of(transport: &dyn Transport, token: &Token) -> Result<String, Failure> {
    let mut request = Request::get(PROFILE);
    request.headers.insert(header::AUTHORIZATION, token.authorization());
    let answer = transport.send(request).await?;
    if !answer.status.is_success() {
        return Err(refused(&answer));
    }
    let profile: Option<Profile> = serde_json::from_slice(&answer.body).ok();
    let malformed = || Failure::new(FailureKind::Malformed, "the profile of the account has no address");
    profile.map(|profile| profile.email_address).ok_or_else(malformed)
}

/// Case means nothing in addresses, and Gmail has two names in some countries.
pub fn is_same_account(one: &str, other: &str) -> bool {
    let plain = |address: &str| {
        let address = address.trim().to_lowercase();
        address.strip_suffix("@googlemail.com").map(|name| format!("{name}@gmail.com")).unwrap_or(address)
    };
    plain(one) == plain(other)
}

fn refused(answer: &Response) -> Failure {
    let says = |reason: &str| answer.body.windows(reason.len()).any(|part| part == reason.as_bytes());
    let (kind, why) = match answer.status {
        StatusCode::UNAUTHORIZED => (FailureKind::Credentials, "Gmail does not accept the access token"),
        StatusCode::FORBIDDEN if says("SERVICE_DISABLED") || says("accessNotConfigured") => {
            (FailureKind::Credentials, "the Gmail API is not enabled in the Google Cloud project of the client")
        }
        StatusCode::FORBIDDEN if says("insufficientPermissions") || says("SCOPE_INSUFFICIENT") => {
            (FailureKind::Credentials, "the access token does not allow to read mail")
        }
        _ if is_about_quota(answer) => (FailureKind::Server, "Gmail asks to come back later"),
        StatusCode::FORBIDDEN => (FailureKind::Credentials, "Gmail denies access to the account"),
        // For lack of a mailbox, but to some users now and then for no reason at all.
        StatusCode::BAD_REQUEST if says("failedPrecondition") => {
            (FailureKind::Server, "Gmail has no mailbox for the account, or fails")
        }
        status if status.is_server_error() => (FailureKind::Server, "Gmail fails"),
        _ => (FailureKind::Status, "Gmail refuses to tell the profile of the account"),
    };
    Failure::new(kind, format!("{why} (status {})", answer.status.as_u16()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_the_same_in_any_case_and_under_both_names() {
        assert!(is_same_account("Ann@Example.com", "ann@example.COM "));
        assert!(is_same_account("ann@googlemail.com", "ann@gmail.com"));
        for (one, other) in [("ann@example.com", "bob@example.com"), ("ann@gmail.com", "ann@gmail.org"), ("", "a@b")] {
            assert!(!is_same_account(one, other), "{one} {other}");
        }
    }

    #[test]
    fn what_a_person_must_mend_is_told_from_what_passes() {
        let kind = |status: u16, reason: &str| {
            let body = format!(r#"{{"error":{{"errors":[{{"reason":"{reason}","message":"canary"}}]}}}}"#).into();
            let status = StatusCode::from_u16(status).unwrap();
            let failure = refused(&Response::new(status, http::HeaderMap::new(), body));
            assert!(!failure.message.contains("canary"), "{failure}");
            failure.kind
        };
        for (status, reason) in [(401, "authError"), (403, "insufficientPermissions"), (403, "accessNotConfigured")] {
            assert_eq!(kind(status, reason), FailureKind::Credentials, "{status} {reason}");
        }
        assert_eq!(kind(403, "forbidden"), FailureKind::Credentials);
        for (status, reason) in [
            (403, "userRateLimitExceeded"),
            (403, "rateLimitExceeded"),
            (403, "dailyLimitExceeded"),
            (403, "quotaExceeded"),
            (403, "RATE_LIMIT_EXCEEDED"),
            (403, "RESOURCE_EXHAUSTED"),
            (429, "rateLimitExceeded"),
            (429, "RESOURCE_EXHAUSTED"),
            (400, "failedPrecondition"),
            (503, "backendError"),
        ] {
            assert_eq!(kind(status, reason), FailureKind::Server, "{status} {reason}");
        }
        assert_eq!(kind(400, "badRequest"), FailureKind::Status);
    }
}
