//! From an outcome and a fault to what is sent.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use super::{GmailSim, Outcome, error::ApiError, fault::GmailFault, fields::Fields, pages, route::Call};
use crate::answer::{AcceptEncoding, Declared, HTML, JSON, Message, Reply, SimRequest};

/// Below this gzip gains nothing.
const GZIP_MIN: usize = 200;

const ERROR_PAGE: &[u8] = b"<!DOCTYPE html>\n<html lang=en><title>Error 502 (Server Error)!!1</title>\n\
    <p><b>502.</b> The server encountered a temporary error and could not complete your request.</p></html>\n";

impl GmailSim {
    /// Faults that leave nothing of the answer; nothing is done for them.
    pub(super) fn spoiled(&self, fault: Option<GmailFault>) -> Option<Reply> {
        let page = |status| Reply::Full(Message::new(status, HTML, Bytes::from_static(ERROR_PAGE)));
        Some(match fault? {
            GmailFault::BadGateway => page(StatusCode::BAD_GATEWAY),
            GmailFault::Html => page(StatusCode::OK),
            GmailFault::Reset => Reply::Reset,
            GmailFault::Hang => Reply::Hang,
            _ => return None,
        })
    }

    /// Faults that are errors of the API.
    pub(super) fn refused_by_fault(&self, fault: Option<GmailFault>, call: &Call<'_>) -> Option<ApiError> {
        let limit = self.plan.quota.per_minute.map_or(6_000, |limit| limit.get());
        Some(match fault? {
            GmailFault::Internal => ApiError::backend(StatusCode::INTERNAL_SERVER_ERROR),
            GmailFault::Unavailable => ApiError::backend(StatusCode::SERVICE_UNAVAILABLE),
            GmailFault::GatewayTimeout => ApiError::backend(StatusCode::GATEWAY_TIMEOUT),
            GmailFault::TooMany => ApiError::backend_throttle(),
            GmailFault::RateLimit => ApiError::quota_metric(limit),
            GmailFault::Unauthorized => ApiError::bad_token(),
            GmailFault::SwitchedOff => ApiError::switched_off(),
            GmailFault::NotFound => ApiError::not_found(),
            GmailFault::FailedPrecondition => ApiError::failed_precondition(),
            GmailFault::InvalidPageToken if call.params.first("pageToken").is_some() => pages::invalid_token(),
            _ => return None,
        })
    }

    pub(super) fn reply(
        &self,
        fault: Option<GmailFault>,
        outcome: Outcome,
        call: &Call<'_>,
        request: &SimRequest<'_>,
        now: Duration,
    ) -> Reply {
        let (message, reason) = match outcome {
            Ok(value) => (self.good(value, call, request), None),
            Err(error) => (error.message(), Some(error.reason)),
        };
        self.count(fault, Some(message.status), reason, message.body.len(), now);
        if reason.is_some() {
            return Reply::Full(message);
        }
        let sent = message.body.len() / 2;
        match fault {
            Some(GmailFault::ResetBody) => Reply::ResetBody { message, sent },
            Some(GmailFault::Truncated) if sent > 0 => Reply::Truncated { message, sent, declared: Declared::Whole },
            Some(GmailFault::CutJson) => Reply::Truncated { message, sent, declared: Declared::Sent },
            Some(GmailFault::Slow) => {
                let gap = Duration::from_millis(u64::from(self.plan.body.slow_gap_ms));
                Reply::Slow { message, chunk: self.plan.body.slow_chunk.get() as usize, gap }
            }
            _ => Reply::Full(message),
        }
    }

    fn good(&self, value: Value, call: &Call<'_>, request: &SimRequest<'_>) -> Message {
        if value.is_null() {
            return Message::new(StatusCode::NO_CONTENT, JSON, Bytes::new());
        }
        let value = match Fields::of(&call.params) {
            Ok(Some(fields)) => fields.apply(value),
            _ => value,
        };
        let pretty = call.params.first("prettyPrint") != Some("false");
        let body = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) };
        let message = Message::json(body.expect("a value is JSON").into());
        let gzip = self.plan.body.gzip && request.encoding == AcceptEncoding::Gzip && message.body.len() >= GZIP_MIN;
        if gzip { message.gzipped() } else { message }
    }

    pub(super) fn count(
        &self,
        fault: Option<GmailFault>,
        status: Option<StatusCode>,
        reason: Option<&str>,
        bytes: usize,
        now: Duration,
    ) {
        let mut inside = self.inside(now);
        inside.meter.count_bytes(bytes);
        inside.counts.body_bytes += bytes as u64;
        inside.counts.count_answer(match (status, reason, fault) {
            (Some(status), Some(reason), _) => format!("{} {reason}", status.as_u16()),
            (Some(status), None, _) => status.as_u16().to_string(),
            (None, _, fault) => fault.map_or("none", GmailFault::as_str).to_owned(),
        });
        if let Some(fault) = fault {
            inside.counts.count_fault(fault);
        }
    }
}
