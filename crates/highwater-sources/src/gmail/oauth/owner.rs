//! Whose token it is.

use highwater_core::{Failure, FailureKind};
use http::{StatusCode, header};
use serde::Deserialize;

use super::Token;
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
        // "Precondition check failed": there is no mailbox behind the account.
        StatusCode::BAD_REQUEST if says("failedPrecondition") => {
            (FailureKind::Credentials, "Gmail is not enabled for the account")
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::FORBIDDEN => (FailureKind::Server, "Gmail asks to come back later"),
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
}
