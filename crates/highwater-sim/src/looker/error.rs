//! Errors as Looker words them: the status is also in the address of its documentation.

use http::StatusCode;
use serde_json::{Value, json};

use crate::answer::{JSON, Message, RetryAfter};

/// The older two forms make Looker's own client fetch pages from the internet.
const DOCUMENTATION: &str = "https://docs.cloud.google.com/looker/docs/r/err/4.0";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ApiError {
    pub(super) status: StatusCode,
    message: &'static str,
    /// Field, code and text of what is wrong with a parameter.
    detail: Option<(String, &'static str, String)>,
    retry_after: Option<RetryAfter>,
}

impl ApiError {
    const fn new(status: StatusCode, message: &'static str) -> Self {
        ApiError { status, message, detail: None, retry_after: None }
    }

    pub(super) const fn not_found() -> Self {
        ApiError::new(StatusCode::NOT_FOUND, "Not found")
    }

    pub(super) const fn unauthorized() -> Self {
        ApiError::new(StatusCode::UNAUTHORIZED, "Requires authentication.")
    }

    pub(super) const fn forbidden() -> Self {
        ApiError::new(StatusCode::FORBIDDEN, "Forbidden")
    }

    pub(super) const fn internal() -> Self {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "An error has occurred.")
    }

    pub(super) const fn unavailable() -> Self {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable")
    }

    pub(super) fn too_many(retry_after: Option<RetryAfter>) -> Self {
        ApiError { retry_after, ..ApiError::new(StatusCode::TOO_MANY_REQUESTS, "Too many requests") }
    }

    /// Wrong credentials.
    pub(super) fn refused_login(status: StatusCode) -> Self {
        let message = if status == StatusCode::NOT_FOUND { "Not found" } else { "Requires authentication." };
        ApiError::new(status, message)
    }

    pub(super) fn invalid(field: &str, code: &'static str, text: impl Into<String>) -> Self {
        let detail = Some((field.to_owned(), code, text.into()));
        ApiError { detail, ..ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "Validation Failed") }
    }

    /// `verb` in lower case, `path` with `:names` for what varies.
    pub(super) fn message(&self, verb: &str, path: &str) -> Message {
        let url = format!("{DOCUMENTATION}/{}/{verb}{path}", self.status.as_u16());
        let mut body = json!({ "message": self.message, "documentation_url": url });
        if let Some((field, code, text)) = &self.detail {
            let detail: Value = json!({ "field": field, "code": code, "message": text, "documentation_url": url });
            body["errors"] = json!([detail]);
        }
        Message::new(self.status, JSON, body.to_string().into()).with_retry_after(self.retry_after)
    }
}
