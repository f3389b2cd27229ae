//! The bodies of errors, in both generations of Google's envelope.

use http::StatusCode;
use serde_json::{Value, json};

use crate::answer::{JSON, Message};

/// What 401 asks for.
const CHALLENGE: &str = "Bearer realm=\"https://accounts.google.com/\", error=\"invalid_token\"";
const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ApiError {
    pub(super) code: StatusCode,
    pub(super) reason: &'static str,
    domain: &'static str,
    message: String,
    /// Only the newer envelope has one.
    status: Option<&'static str>,
    details: Option<Box<Value>>,
    location: Option<&'static str>,
}

impl ApiError {
    fn newer(
        code: StatusCode,
        reason: &'static str,
        domain: &'static str,
        status: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        ApiError { code, reason, domain, message, status: Some(status), details: None, location: None }
    }

    fn older(code: StatusCode, reason: &'static str, message: &str) -> Self {
        let message = message.to_owned();
        ApiError { code, reason, domain: "usageLimits", message, status: None, details: None, location: None }
    }

    fn with_info(mut self, reason: &str, metadata: Value) -> Self {
        let info = json!({ "@type": ERROR_INFO, "reason": reason, "domain": "googleapis.com", "metadata": metadata });
        self.details = Some(Box::new(json!([info])));
        self
    }

    pub(super) fn quota_metric(limit: u32) -> Self {
        let text = "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user' of service \
            'gmail.googleapis.com' for consumer 'project_number:123456789012'.";
        let metadata = json!({
            "service": "gmail.googleapis.com", "consumer": "projects/123456789012",
            "quota_metric": "gmail.googleapis.com/default_queries", "quota_location": "global",
            "quota_limit": "defaultPerMinutePerUser", "quota_limit_value": limit.to_string(),
        });
        let error =
            ApiError::newer(StatusCode::FORBIDDEN, "rateLimitExceeded", "usageLimits", "PERMISSION_DENIED", text);
        error.with_info("RATE_LIMIT_EXCEEDED", metadata)
    }

    pub(super) fn user_rate() -> Self {
        ApiError::older(StatusCode::FORBIDDEN, "userRateLimitExceeded", "User Rate Limit Exceeded")
    }

    pub(super) fn project_rate() -> Self {
        ApiError::older(StatusCode::FORBIDDEN, "rateLimitExceeded", "Rate Limit Exceeded")
    }

    pub(super) fn backend_throttle() -> Self {
        let text = "Resource has been exhausted (e.g. check quota).";
        let (code, status) = (StatusCode::TOO_MANY_REQUESTS, "RESOURCE_EXHAUSTED");
        ApiError::newer(code, "rateLimitExceeded", "global", status, text)
    }

    pub(super) fn concurrent() -> Self {
        let text = "Too many concurrent requests for user";
        let (code, status) = (StatusCode::TOO_MANY_REQUESTS, "RESOURCE_EXHAUSTED");
        ApiError::newer(code, "rateLimitExceeded", "usageLimits", status, text)
    }

    /// The time is in the text and nowhere else, after two spaces.
    pub(super) fn retry_after(code: u16, time: &str) -> Self {
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
        ApiError::older(code, "rateLimitExceeded", &format!("User-rate limit exceeded.  Retry after {time}"))
    }

    pub(super) fn daily() -> Self {
        ApiError::older(StatusCode::FORBIDDEN, "dailyLimitExceeded", "Daily Limit Exceeded")
    }

    pub(super) fn quota_exceeded() -> Self {
        ApiError::older(StatusCode::FORBIDDEN, "quotaExceeded", "Quota exceeded.")
    }

    pub(super) fn switched_off() -> Self {
        let text =
            "Gmail API has not been used in project 123456789012 before or it is disabled. Enable it, then retry.";
        let code = StatusCode::FORBIDDEN;
        ApiError::newer(code, "accessNotConfigured", "usageLimits", "PERMISSION_DENIED", text)
            .with_info("SERVICE_DISABLED", json!({ "service": "gmail.googleapis.com" }))
    }

    pub(super) fn conflict(text: impl Into<String>) -> Self {
        ApiError::newer(StatusCode::CONFLICT, "aborted", "global", "ABORTED", text)
    }

    pub(super) fn backend(code: StatusCode) -> Self {
        let (text, status) = match code {
            StatusCode::INTERNAL_SERVER_ERROR => ("Internal error encountered.", "INTERNAL"),
            StatusCode::GATEWAY_TIMEOUT => ("Deadline expired before operation could complete.", "DEADLINE_EXCEEDED"),
            _ => ("Backend Error", "UNAVAILABLE"),
        };
        ApiError::newer(code, "backendError", "global", status, text)
    }

    pub(super) fn bad_token() -> Self {
        let code = StatusCode::UNAUTHORIZED;
        let error = ApiError::newer(code, "authError", "global", "UNAUTHENTICATED", "Invalid Credentials");
        ApiError { location: Some("Authorization"), ..error }
    }

    pub(super) fn no_token() -> Self {
        let text = "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie \
            or other valid authentication credential.";
        let mut error = ApiError::newer(StatusCode::UNAUTHORIZED, "required", "global", "UNAUTHENTICATED", text);
        error.location = Some("Authorization");
        error.with_info("CREDENTIALS_MISSING", json!({ "service": "gmail.googleapis.com" }))
    }

    pub(super) fn scopes() -> Self {
        let text = "Request had insufficient authentication scopes.";
        let code = StatusCode::FORBIDDEN;
        ApiError::newer(code, "insufficientPermissions", "global", "PERMISSION_DENIED", text)
            .with_info("ACCESS_TOKEN_SCOPE_INSUFFICIENT", json!({ "service": "gmail.googleapis.com" }))
    }

    pub(super) fn forbidden(text: impl Into<String>) -> Self {
        ApiError::newer(StatusCode::FORBIDDEN, "forbidden", "global", "PERMISSION_DENIED", text)
    }

    pub(super) fn not_found() -> Self {
        let text = "Requested entity was not found.";
        ApiError::newer(StatusCode::NOT_FOUND, "notFound", "global", "NOT_FOUND", text)
    }

    pub(super) fn invalid(text: impl Into<String>) -> Self {
        ApiError::newer(StatusCode::BAD_REQUEST, "invalidArgument", "global", "INVALID_ARGUMENT", text)
    }

    pub(super) fn failed_precondition() -> Self {
        let text = "Precondition check failed.";
        ApiError::newer(StatusCode::BAD_REQUEST, "failedPrecondition", "global", "FAILED_PRECONDITION", text)
    }

    pub(super) fn body(&self) -> Value {
        let mut first = json!({ "message": self.message, "domain": self.domain, "reason": self.reason });
        if let Some(location) = self.location {
            first["location"] = json!(location);
            first["locationType"] = json!("header");
        }
        let mut error = json!({ "code": self.code.as_u16(), "message": self.message, "errors": [first] });
        if let Some(status) = self.status {
            error["status"] = json!(status);
        }
        if let Some(details) = &self.details {
            error["details"] = (**details).clone();
        }
        json!({ "error": error })
    }

    /// Errors are printed pretty, whatever was asked for.
    pub(super) fn message(&self) -> Message {
        let body = serde_json::to_vec_pretty(&self.body()).expect("a value is JSON");
        let mut message = Message::new(self.code, JSON, body.into());
        if self.code == StatusCode::UNAUTHORIZED {
            message.headers.challenge = Some(CHALLENGE);
        }
        message
    }
}
