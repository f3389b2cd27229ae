//! What Gmail's answers mean: for the account, and for who asked. No text of theirs goes any further: it may name an
//! address.

use std::time::Duration;

use bytes::Bytes;
use highwater_core::{Failure, FailureKind, Timestamp, throttle::Window};
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::{Reading, Response, read_status};

#[derive(Deserialize, Default)]
struct Envelope {
    #[serde(default)]
    error: Problem,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Problem {
    message: String,
    status: String,
    errors: Vec<Reason>,
    details: Vec<Reason>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Reason {
    reason: String,
    /// Of whatever shape: it must not keep the rest from being read.
    metadata: Json,
}

impl Problem {
    fn read(body: &[u8]) -> Problem {
        serde_json::from_slice::<Envelope>(body).unwrap_or_default().error
    }

    /// By whichever of the two generations of errors it is told.
    fn has(&self, reasons: &[&str]) -> bool {
        let told = self.errors.iter().chain(&self.details).map(|told| told.reason.as_str());
        told.chain([self.status.as_str()]).any(|told| reasons.contains(&told))
    }

    /// A 429 is so whatever its body says.
    fn is_about_quota(&self, status: StatusCode) -> bool {
        status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::FORBIDDEN && (self.has(THROTTLED) || self.has(DAILY))
    }

    /// One word for people, if it is a plain one.
    fn word(&self) -> Option<&str> {
        let told = self.errors.iter().chain(&self.details).map(|told| told.reason.as_str());
        told.chain([self.status.as_str()]).find(|word| is_plain(word))
    }
}

fn is_plain(word: &str) -> bool {
    (1..=40).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

const THROTTLED: &[&str] =
    &["rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "RATE_LIMIT_EXCEEDED", "RESOURCE_EXHAUSTED"];
const DAILY: &[&str] = &["dailyLimitExceeded"];
/// A day's quota does not come back in minutes, but nobody says when.
const DAILY_PAUSE: Duration = Duration::from_secs(900);
/// What is told may be wrong; nobody was seen locked out for longer.
const PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);

/// "Too much" comes as 403 and as 429, and when to come back may stand in the text.
pub(super) fn classify(response: &Response, now: Timestamp) -> Reading {
    let reading = match response.status {
        StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => refused(response, now),
        _ => read_status(response, now),
    };
    match reading {
        Reading::Throttled { retry_after } => {
            Reading::Throttled { retry_after: retry_after.map(|wait| wait.min(PAUSE_MAX)) }
        }
        reading => reading,
    }
}

/// Whether it asks to come back later.
pub(super) fn is_about_quota(response: &Response) -> bool {
    Problem::read(&response.body).is_about_quota(response.status)
}

fn refused(response: &Response, now: Timestamp) -> Reading {
    let problem = Problem::read(&response.body);
    if !problem.is_about_quota(response.status) {
        return Reading::Served;
    }
    let told = told_in_header(response, now).max(told_in_text(&problem.message, now));
    let is_daily = problem.has(DAILY) && told.is_none_or(|wait| wait.is_zero());
    Reading::Throttled { retry_after: if is_daily { Some(DAILY_PAUSE) } else { told } }
}

/// `Retry-After` means the same on a 403.
fn told_in_header(response: &Response, now: Timestamp) -> Option<Duration> {
    let head = Response::new(StatusCode::TOO_MANY_REQUESTS, response.headers.clone(), Bytes::new());
    match read_status(&head, now) {
        Reading::Throttled { retry_after } => retry_after,
        Reading::Served | Reading::Failed => None,
    }
}

/// What a user may use in a minute, where a refusal tells it.
pub(super) fn quota(response: &Response) -> Option<Window> {
    let problem = Problem::read(&response.body);
    let mut told = problem.details.iter().map(|detail| &detail.metadata);
    let told = told.find(|told| told["quota_limit"].as_str().is_some_and(is_of_user))?;
    let value = &told["quota_limit_value"];
    let limit = value.as_f64().or_else(|| value.as_str()?.parse().ok()).filter(|limit| *limit >= 1.0)?;
    Some(Window { length: Duration::from_secs(60), limit })
}

/// Such as `defaultPerMinutePerUser`; projects have limits, too.
fn is_of_user(limit: &str) -> bool {
    let limit = limit.to_ascii_lowercase();
    limit.contains("perminute") && limit.contains("peruser")
}

/// From `… Retry after 2026-03-01T10:15:00.000Z`.
fn told_in_text(message: &str, now: Timestamp) -> Option<Duration> {
    let (_, rest) = message.split_once("Retry after ")?;
    let word = rest.split_whitespace().next()?.trim_end_matches(['.', ',', ')']);
    let until: jiff::Timestamp = word.parse().ok()?;
    let until = Timestamp::from_millis(until.as_millisecond());
    // A millisecond more than said: the other clock cuts them off.
    (until > now).then(|| until.since(now) + Duration::from_millis(1))
}

/// The body of an answer, if it is one.
pub(super) fn expect_ok(response: &Response) -> Result<&[u8], Failure> {
    match response.status {
        StatusCode::OK => Ok(&response.body),
        status => Err(failure(status, &response.body)),
    }
}

const UNUSABLE: &[(&[&str], &str)] = &[
    (
        &["insufficientPermissions", "ACCESS_TOKEN_SCOPE_INSUFFICIENT"],
        "the token may not read mail: the scope gmail.readonly is missing",
    ),
    (&["accessNotConfigured", "SERVICE_DISABLED"], "the Gmail API is not switched on for the project of this client"),
];

/// A 404 that is about an object.
const ABSENT: &[&str] = &["notFound", "NOT_FOUND"];

fn failure(status: StatusCode, body: &[u8]) -> Failure {
    let problem = Problem::read(body);
    if status == StatusCode::FORBIDDEN {
        if let Some((_, why)) = UNUSABLE.iter().find(|(reasons, _)| problem.has(reasons)) {
            return Failure::new(FailureKind::Credentials, *why);
        }
        if problem.message.starts_with("Delegation denied") {
            return Failure::new(FailureKind::Credentials, "the token is for another mailbox");
        }
    }
    let kind = match status {
        StatusCode::UNAUTHORIZED => FailureKind::Credentials,
        StatusCode::FORBIDDEN => FailureKind::Denied,
        StatusCode::NOT_FOUND if problem.has(ABSENT) => FailureKind::NotFound,
        StatusCode::GONE if problem.word().is_some() => FailureKind::NotFound,
        // Of something before the API, or of an address that is not its: it says nothing of mail.
        StatusCode::NOT_FOUND | StatusCode::GONE => FailureKind::Malformed,
        status if status.is_server_error() => FailureKind::Server,
        // Mostly of the moment: one or two in a hundred for some users.
        _ if problem.has(&["failedPrecondition", "FAILED_PRECONDITION"]) => FailureKind::Server,
        _ => FailureKind::Status,
    };
    let code = status.as_u16();
    let message = match problem.word() {
        _ if kind == FailureKind::Malformed => format!("status {code}, but not in the words of the API"),
        Some(word) => format!("status {code} ({word})"),
        None => format!("status {code}"),
    };
    Failure::new(kind, message)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    /// 2026-03-01T10:00:00Z
    const NOW: Timestamp = Timestamp::from_millis(1_772_359_200_000);

    fn response(status: u16, body: &str) -> Response {
        let status = StatusCode::from_u16(status).unwrap();
        Response::new(status, HeaderMap::new(), Bytes::copy_from_slice(body.as_bytes()))
    }

    fn error(code: u16, reason: &str, message: &str) -> Response {
        let body = serde_json::json!({"error": {"code": code, "message": message,
            "errors": [{"message": message, "domain": "usageLimits", "reason": reason}]}});
        response(code, &body.to_string())
    }

    #[test]
    fn a_refusal_may_tell_the_quota_of_the_user() {
        let told = |limit: &str, value: &str| {
            let body = format!(
                r#"{{"error":{{"code":403,"message":"m","details":[{{"reason":"RATE_LIMIT_EXCEEDED",
                "metadata":{{"quota_limit":"{limit}","quota_limit_value":{value}}}}}]}}}}"#
            );
            let refusal = response(403, &body);
            assert_eq!(classify(&refusal, NOW), Reading::Throttled { retry_after: None }, "{body}");
            quota(&refusal).map(|window| (window.length.as_secs(), window.limit))
        };
        assert_eq!(told("defaultPerMinutePerUser", "\"15000\""), Some((60, 15_000.0)));
        assert_eq!(told("QueriesPerMinutePerUser", "6000"), Some((60, 6_000.0)));
        for odd in ["\"\"", "\"many\"", "0", "null", "[]", "-5"] {
            assert_eq!(told("defaultPerMinutePerUser", odd), None);
        }
        assert_eq!(told("defaultPerMinutePerProject", "\"1200000\""), None);
        assert_eq!(quota(&response(429, "not even JSON")), None);
    }

    #[test]
    fn too_much_is_known_by_its_reason() {
        let slow = Reading::Throttled { retry_after: None };
        for reason in ["rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"] {
            assert_eq!(classify(&error(403, reason, "x"), NOW), slow, "{reason}");
        }
        let newer = r#"{"error":{"code":403,"status":"PERMISSION_DENIED","message":"m",
            "details":[{"@type":"ErrorInfo","reason":"RATE_LIMIT_EXCEEDED"}]}}"#;
        assert_eq!(classify(&response(403, newer), NOW), slow);
        assert_eq!(classify(&response(429, "not even JSON"), NOW), slow);
        let daily = Reading::Throttled { retry_after: Some(DAILY_PAUSE) };
        assert_eq!(classify(&error(403, "dailyLimitExceeded", "Daily Limit Exceeded"), NOW), daily);
        for reason in ["insufficientPermissions", "forbidden", "accessNotConfigured"] {
            assert_eq!(classify(&error(403, reason, "x"), NOW), Reading::Served, "{reason}");
        }
        assert_eq!(classify(&error(503, "backendError", "x"), NOW), Reading::Failed);
    }

    #[test]
    fn the_time_in_the_text_is_waited_for() {
        let text = "User-rate limit exceeded.  Retry after 2026-03-01T10:15:00.000Z";
        let wait = Reading::Throttled { retry_after: Some(Duration::from_millis(900_001)) };
        for code in [403, 429] {
            assert_eq!(classify(&error(code, "rateLimitExceeded", text), NOW), wait);
        }
        let past = "User-rate limit exceeded.  Retry after 2020-03-01T10:15:00.000Z";
        assert_eq!(classify(&error(429, "x", past), NOW), Reading::Throttled { retry_after: None });
    }

    #[test]
    fn the_later_of_two_times_is_waited_for() {
        let told = |mut refusal: Response, header: &str| {
            refusal.headers.insert(http::header::RETRY_AFTER, header.parse().unwrap());
            classify(&refusal, NOW)
        };
        let wait = |millis| Reading::Throttled { retry_after: Some(Duration::from_millis(millis)) };
        let text = "User-rate limit exceeded.  Retry after 2026-03-01T10:15:00.000Z";
        for code in [403, 429] {
            let refusal = |message| error(code, "userRateLimitExceeded", message);
            assert_eq!(told(refusal("x"), "60"), wait(60_000), "{code}");
            assert_eq!(told(refusal(text), "60"), wait(900_001), "{code}");
            assert_eq!(told(refusal(text), "1800"), wait(1_800_000), "{code}");
            assert_eq!(told(refusal("x"), "99999999999"), wait(24 * 3_600_000), "{code}");
        }
        assert_eq!(told(response(503, ""), "99999999999"), wait(24 * 3_600_000));
        let daily = || error(403, "dailyLimitExceeded", "Daily Limit Exceeded");
        assert_eq!(told(daily(), "3600"), wait(3_600_000));
        assert_eq!(told(daily(), "0"), wait(900_000));
        assert_eq!(told(error(403, "forbidden", "x"), "60"), Reading::Served);
    }

    #[test]
    fn what_is_absent_is_so_by_the_word_of_the_api_alone() {
        let kind = |response: &Response| expect_ok(response).unwrap_err().kind;
        let newer = r#"{"error":{"code":404,"status":"NOT_FOUND","message":"Requested entity was not found."}}"#;
        for absent in [error(404, "notFound", "x"), response(404, newer), error(410, "deleted", "x")] {
            assert_eq!(kind(&absent), FailureKind::NotFound);
        }
        let html = "<!DOCTYPE html><title>Error 404 (Not Found)!!1</title>";
        for odd in ["", html, "{}", "null", r#"{"error":"notFound"}"#, r#"{"error":{"code":404}}"#] {
            for status in [404, 410] {
                assert_eq!(kind(&response(status, odd)), FailureKind::Malformed, "{status} {odd}");
            }
        }
        assert_eq!(kind(&error(404, "badRequest", "x")), FailureKind::Malformed);
        assert!(FailureKind::Malformed.is_systemic());
    }

    #[test]
    fn no_text_of_the_remote_is_told() {
        let kind = |response: &Response| expect_ok(response).unwrap_err().kind;
        let denied = error(403, "forbidden", "Delegation denied for ann@example.com");
        assert_eq!(kind(&denied), FailureKind::Credentials);
        assert_eq!(kind(&error(403, "insufficientPermissions", "x")), FailureKind::Credentials);
        assert_eq!(kind(&error(404, "notFound", "x")), FailureKind::NotFound);
        let odd = error(400, "bob@example.com", "Invalid bob@example.com");
        assert_eq!(expect_ok(&odd).unwrap_err().message, "status 400");
        assert_eq!(
            expect_ok(&error(400, "failedPrecondition", "x")).unwrap_err().message,
            "status 400 (failedPrecondition)"
        );
    }
}
