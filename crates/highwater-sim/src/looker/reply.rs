//! From what is shown and a fault to what is sent.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use super::{
    LookerSim,
    error::ApiError,
    fault::LookerFault,
    lists::{self, Part},
    route::Call,
    template::Template,
};
use crate::answer::{AcceptEncoding, Declared, HTML, JSON, Message, Paging, Reply, SimRequest};

/// Below this gzip gains nothing.
const GZIP_MIN: usize = 200;

const GATEWAY_PAGE: &[u8] = b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n\
    <center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n";
const TIMEOUT_PAGE: &[u8] = b"<html>\r\n<head><title>504 Gateway Time-out</title></head>\r\n<body>\r\n\
    <center><h1>504 Gateway Time-out</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n";
const SIGN_IN_PAGE: &[u8] = b"<!DOCTYPE html>\n<html><head><title>Looker</title></head><body>Log in</body></html>\n";

/// What an operation found, to be written when nobody holds the instance any more.
pub(super) enum Shown {
    Nothing,
    Value(Value),
    One(Arc<Template>),
    List {
        templates: Vec<Part>,
        total: usize,
    },
    /// Something on the list cannot be shown.
    Spoiled(LookerFault),
}

impl Shown {
    pub(super) fn objects(&self) -> usize {
        match self {
            Shown::List { templates, .. } => templates.len(),
            Shown::One(_) => 1,
            Shown::Value(_) | Shown::Nothing | Shown::Spoiled(_) => 0,
        }
    }

    fn body(&self, call: &Call, tick: u64) -> Vec<u8> {
        let fields = call.fields();
        match self {
            Shown::Nothing | Shown::Spoiled(_) => Vec::new(),
            Shown::Value(value) => {
                let picked = fields.map(|fields| fields.apply(value.clone()));
                serde_json::to_vec(picked.as_ref().unwrap_or(value)).expect("a value is JSON")
            }
            Shown::One(template) => {
                let mut out = Vec::with_capacity(template.len() + 200);
                template.render_part(None, fields.as_ref(), tick, &mut out);
                out
            }
            Shown::List { templates, .. } => {
                let whole = fields.is_none();
                let length = templates.iter().map(|(template, _)| template.len() + 200).sum::<usize>();
                let mut out = Vec::with_capacity(if whole { length } else { 64 * templates.len() });
                out.push(b'[');
                for (nth, (template, form)) in templates.iter().enumerate() {
                    if nth > 0 {
                        out.push(b',');
                    }
                    template.render_part(*form, fields.as_ref(), tick, &mut out);
                }
                out.push(b']');
                out
            }
        }
    }
}

/// Faults that leave nothing of the answer.
pub(super) fn spoiled(fault: LookerFault) -> Option<Reply> {
    let page = |status, text| Reply::Full(Message::new(status, HTML, Bytes::from_static(text)));
    Some(match fault {
        LookerFault::BadGateway => page(StatusCode::BAD_GATEWAY, GATEWAY_PAGE),
        LookerFault::GatewayTimeout => page(StatusCode::GATEWAY_TIMEOUT, TIMEOUT_PAGE),
        LookerFault::Html => page(StatusCode::OK, SIGN_IN_PAGE),
        LookerFault::Reset => Reply::Reset,
        LookerFault::Hang => Reply::Hang,
        _ => return None,
    })
}

/// Faults that are errors of the API.
pub(super) fn refused(fault: LookerFault) -> Option<ApiError> {
    Some(match fault {
        LookerFault::Internal => ApiError::internal(),
        LookerFault::Unavailable => ApiError::unavailable(),
        LookerFault::TooMany => ApiError::too_many(None),
        LookerFault::TooManyRetryAfter => ApiError::too_many(Some(super::FAULT_RETRY_AFTER)),
        LookerFault::Unauthorized => ApiError::unauthorized(),
        LookerFault::Forbidden => ApiError::forbidden(),
        LookerFault::NotFound => ApiError::not_found(),
        LookerFault::Unprocessable => ApiError::invalid("id", "invalid", "this cannot be shown"),
        _ => return None,
    })
}

impl LookerSim {
    pub(super) fn good(&self, shown: &Shown, call: &Call, request: &SimRequest<'_>, tick: u64) -> Message {
        if matches!(shown, Shown::Nothing) {
            return Message::new(StatusCode::NO_CONTENT, JSON, Bytes::new());
        }
        let mut message = Message::json(shown.body(call, tick).into());
        if let Shown::List { total, .. } = shown {
            message.headers.paging = self.paging(*total, call);
        }
        let gzip = self.plan.body.gzip && request.encoding == AcceptEncoding::Gzip && message.body.len() >= GZIP_MIN;
        if gzip { message.gzipped() } else { message }
    }

    /// Looker sends these only where a limit is given, and not for everything.
    fn paging(&self, total: usize, call: &Call) -> Option<Paging> {
        let (limit, offset) = lists::window(call);
        let limit = limit.filter(|limit| self.plan.list.headers && *limit > 0)?;
        Some(Paging { total: total as u64, limit: limit as u64, offset: offset as u64 })
    }

    pub(super) fn spoil(&self, fault: Option<LookerFault>, message: Message) -> Reply {
        let sent = message.body.len() / 2;
        match fault {
            Some(LookerFault::ResetBody) => Reply::ResetBody { message, sent },
            Some(LookerFault::Truncated) if sent > 0 => Reply::Truncated { message, sent, declared: Declared::Whole },
            Some(LookerFault::CutJson) => Reply::Truncated { message, sent, declared: Declared::Sent },
            Some(LookerFault::Slow) => {
                let gap = Duration::from_millis(u64::from(self.plan.body.slow_gap_ms));
                Reply::Slow { message, chunk: self.plan.body.slow_chunk.get() as usize, gap }
            }
            _ => Reply::Full(message),
        }
    }
}
