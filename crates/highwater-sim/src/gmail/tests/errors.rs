//! Every error body, against the shapes that were seen.

use serde_json::{Value, json};

use super::{Bench, refused};
use crate::{
    answer::{Reply, SimRequest, Verb},
    gmail::error::ApiError,
};

/// Reason, domain, code, status and text.
fn shape(error: &ApiError) -> Value {
    let body = error.body();
    let first = &body["error"]["errors"][0];
    json!([first["reason"], first["domain"], body["error"]["code"], body["error"]["status"], body["error"]["message"]])
}

#[test]
fn throttles_look_like_the_real_ones() {
    for (error, expected) in [
        (ApiError::user_rate(), json!(["userRateLimitExceeded", "usageLimits", 403, null, "User Rate Limit Exceeded"])),
        (ApiError::project_rate(), json!(["rateLimitExceeded", "usageLimits", 403, null, "Rate Limit Exceeded"])),
        (
            ApiError::backend_throttle(),
            json!([
                "rateLimitExceeded",
                "global",
                429,
                "RESOURCE_EXHAUSTED",
                "Resource has been exhausted (e.g. check quota)."
            ]),
        ),
        (
            ApiError::concurrent(),
            json!([
                "rateLimitExceeded",
                "usageLimits",
                429,
                "RESOURCE_EXHAUSTED",
                "Too many concurrent requests for user"
            ]),
        ),
        (ApiError::quota_exceeded(), json!(["quotaExceeded", "usageLimits", 403, null, "Quota exceeded."])),
        (ApiError::daily(), json!(["dailyLimitExceeded", "usageLimits", 403, null, "Daily Limit Exceeded"])),
        (
            ApiError::retry_after(403, "2026-01-01T00:00:00.000Z"),
            json!([
                "rateLimitExceeded",
                "usageLimits",
                403,
                null,
                "User-rate limit exceeded.  Retry after 2026-01-01T00:00:00.000Z"
            ]),
        ),
    ] {
        assert_eq!(shape(&error), expected);
    }
    let modern = ApiError::quota_metric(6_000).body();
    assert_eq!(modern["error"]["status"], "PERMISSION_DENIED");
    assert_eq!(modern["error"]["errors"][0]["reason"], "rateLimitExceeded");
    assert_eq!(modern["error"]["details"][0]["reason"], "RATE_LIMIT_EXCEEDED");
    assert_eq!(modern["error"]["details"][0]["metadata"]["quota_limit_value"], "6000");
    assert!(modern["error"]["message"].as_str().unwrap().starts_with(
        "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user' of service \
         'gmail.googleapis.com' for consumer 'project_number:"
    ));
}

#[test]
fn mistakes_are_answered_as_gmail_answers_them() {
    let bench = Bench::new(50, "");
    for (path, status, reason, text) in [
        ("messages/00000000000000aa", 404, "notFound", "Requested entity was not found."),
        ("messages/no-id", 400, "invalidArgument", "Invalid id value"),
        ("messages?pageToken=123", 400, "invalidArgument", "Invalid pageToken"),
        ("messages?labelIds=Nope", 400, "invalidArgument", "Invalid label: Nope"),
        ("history", 400, "invalidArgument", "Missing/invalid parameter: startHistoryId"),
        ("history?startHistoryId=0", 400, "invalidArgument", "Missing/invalid parameter: startHistoryId"),
        ("messages?fields=mesages", 400, "invalidArgument", "Invalid field selection mesages"),
        ("history?startHistoryId=5", 404, "notFound", "Requested entity was not found."),
        ("labels/Nope", 404, "notFound", "Requested entity was not found."),
        ("threads/00000000000000aa", 404, "notFound", "Requested entity was not found."),
    ] {
        assert_eq!(bench.error(path), (status, reason.to_owned(), text.to_owned()), "{path}");
    }
    let (status, reason, _) = bench.error("history?startHistoryId=1000050&historyTypes=labelsAdded");
    assert_eq!((status, reason.as_str()), (400, "invalidArgument"), "types are singular");
    let (status, reason, text) = bench.error("messages?labelId=INBOX");
    assert_eq!((status, reason.as_str()), (400, "invalidArgument"));
    assert!(text.contains("Unknown name \"labelId\""), "{text}");
    let (status, body) = bench.ask(Verb::Get, "/gmail/v1/users/bob@example.com/profile", "");
    let (_, reason, text) = refused((status, body));
    assert_eq!((status, reason.as_str()), (403, "forbidden"));
    assert!(text.starts_with("Delegation denied"), "{text}");
    assert_eq!(bench.ask(Verb::Get, "/gmail/v1/users/ann%40example.com/profile", "").0, 200);
    assert_eq!(bench.ask(Verb::Get, "/nowhere", "").0, 404);
}

#[test]
fn a_bad_token_and_none_are_told_apart() {
    let mut bench = Bench::new(5, "");
    let none = SimRequest::get("/gmail/v1/users/me/profile");
    let Reply::Full(message) = bench.sim.answer(&none, bench.now).reply else { panic!() };
    assert!(message.headers.challenge.unwrap().starts_with("Bearer "));
    let body = super::json_of(&message);
    assert_eq!(body["error"]["errors"][0]["reason"], "required");
    assert_eq!(body["error"]["details"][0]["reason"], "CREDENTIALS_MISSING");
    bench.token = "ya29.wrong".to_owned();
    let (status, body) = bench.ask(Verb::Get, "/gmail/v1/users/me/profile", "");
    let first = &body["error"]["errors"][0];
    assert_eq!((status, &body["error"]["status"]), (401, &json!("UNAUTHENTICATED")));
    assert_eq!(
        json!([first["reason"], first["message"], first["location"], first["locationType"]]),
        json!(["authError", "Invalid Credentials", "Authorization", "header"])
    );
}

#[test]
fn planned_errors_have_their_bodies() {
    for (fault, status, reason) in [
        ("500", 500, "backendError"),
        ("503", 503, "backendError"),
        ("504", 504, "backendError"),
        ("429", 429, "rateLimitExceeded"),
        ("403-rate", 403, "rateLimitExceeded"),
        ("401", 401, "authError"),
        ("403-off", 403, "accessNotConfigured"),
        ("failed-precondition", 400, "failedPrecondition"),
    ] {
        let bench = Bench::new(5, &format!("[rates]\n{fault} = 1"));
        let (found, text, _) = bench.error("labels");
        assert_eq!((found, text.as_str()), (status, reason), "{fault}");
    }
}
