//! What Looker's answers mean. They are read by their status alone: a body may be HTML.

use bytes::Bytes;
use highwater_core::{Failure, FailureKind};
use http::StatusCode;

use crate::Response;

/// The body of an answer that has what was asked for.
pub(super) fn expect_ok(response: Response, what: &str) -> Result<Bytes, Failure> {
    let status = response.status;
    let kind = match status {
        StatusCode::OK => return Ok(response.body),
        StatusCode::UNAUTHORIZED => {
            return Err(Failure::new(FailureKind::Credentials, "Looker refuses the tokens that it gives out"));
        }
        StatusCode::FORBIDDEN => FailureKind::Forbidden,
        StatusCode::NOT_FOUND | StatusCode::GONE => FailureKind::NotFound,
        status if status.is_server_error() => FailureKind::Server,
        status if status.is_redirection() => FailureKind::Redirect,
        _ => FailureKind::Status,
    };
    Err(Failure::new(kind, format!("{what}: status {}", status.as_u16())))
}

pub(super) fn malformed(what: &str) -> Failure {
    Failure::new(FailureKind::Malformed, format!("{what}: the answer is not the JSON that was asked for"))
}

/// Whether the same request may well succeed in a moment.
pub(super) fn is_passing(kind: FailureKind) -> bool {
    use FailureKind as K;
    matches!(kind, K::Connect | K::Timeout | K::Broken | K::Server | K::Malformed)
}
