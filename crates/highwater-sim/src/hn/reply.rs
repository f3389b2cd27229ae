//! What each fault looks like when this API commits it.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::StatusCode;
use serde_json::value::RawValue;

use super::{
    HnSim,
    json::{self, Json},
    route::{Endpoint, Print},
};
use crate::{
    answer::{AcceptEncoding, Declared, Etag, HTML, IfNoneMatch, JSON, Message, Reply, RetryAfter},
    fault::Fault,
};

pub(super) const NULL: Bytes = Bytes::from_static(b"null");

/// Clients are expected to stop reading at 8 MiB.
const OVERSIZED: usize = (8 << 20) + (64 << 10);
/// Below this gzip gains nothing.
const GZIP_MIN: usize = 200;

const ERROR_PAGE: &[u8] = b"<!DOCTYPE html>\n<html><head><title>Error</title></head>\
    <body><h1>Error: Server Error</h1><p>The server encountered a temporary error.</p></body></html>\n";

/// How the client wants its body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form<'a> {
    pub(super) print: Print,
    pub(super) encoding: AcceptEncoding,
    pub(super) tag: IfNoneMatch<'a>,
}

impl HnSim {
    pub(super) fn normal(&self, body: Bytes, form: Form<'_>) -> Message {
        if form.tag == IfNoneMatch::Unasked || !self.plan.body.etag {
            return self.printed(body, form);
        }
        let etag = Etag::of(&body);
        if form.tag.matches(&etag) {
            return Message::not_modified(etag);
        }
        let mut message = self.printed(body, form);
        message.headers.etag = Some(etag);
        message
    }

    fn printed(&self, body: Bytes, form: Form<'_>) -> Message {
        let body = match form.print {
            Print::Compact => body,
            Print::Pretty => json::pretty(&body).into(),
        };
        if self.plan.body.gzip && form.encoding == AcceptEncoding::Gzip && body.len() >= GZIP_MIN {
            return Message::json(body).gzipped();
        }
        Message::json(body)
    }

    /// `None` when the fault cannot happen to this body: `[delayed]` needs a text, half a body needs a body.
    pub(super) fn faulty(&self, fault: Fault, endpoint: Endpoint<'_>, body: &Bytes, form: Form<'_>) -> Option<Reply> {
        let normal = || self.normal(body.clone(), form);
        Some(match fault {
            Fault::Null => Reply::Full(self.normal(NULL, form)),
            Fault::Delayed => Reply::Full(self.normal(delayed(body)?, form)),
            Fault::WrongId => Reply::Full(self.normal(self.neighbour(endpoint)?, form)),
            Fault::Oversized => Reply::Full(Message::json(oversized(endpoint)?)),
            Fault::Html => Reply::Full(Message::new(StatusCode::OK, HTML, Bytes::from_static(ERROR_PAGE))),
            Fault::Reset => Reply::Reset,
            Fault::ResetBody => halved(normal(), |message, sent| Reply::ResetBody { message, sent }),
            Fault::Truncated => truncated(normal(), Declared::Whole),
            Fault::CutJson if *body == NULL => return None,
            Fault::CutJson => truncated(normal(), Declared::Sent),
            Fault::Slow => self.slow(normal()),
            Fault::Hang => Reply::Hang,
            _ => Reply::Full(self.error(fault)),
        })
    }

    fn error(&self, fault: Fault) -> Message {
        let status = fault.status().expect("faults without a status have their own replies");
        let retry_after = || Some(self.plan.quota.retry_after().unwrap_or(RetryAfter(1)));
        match fault {
            Fault::BadGateway => Message::new(status, HTML, Bytes::from_static(ERROR_PAGE)),
            Fault::UnavailableRetryAfter | Fault::TooManyRetryAfter => {
                error_message(status).with_retry_after(retry_after())
            }
            _ => error_message(status),
        }
    }

    fn slow(&self, message: Message) -> Reply {
        let chunk = self.plan.body.slow_chunk.get() as usize;
        Reply::Slow { message, chunk, gap: self.plan.body.slow_gap() }
    }

    fn neighbour(&self, endpoint: Endpoint<'_>) -> Option<Bytes> {
        let Endpoint::Item(id) = endpoint else { return None };
        self.item_body(id + 1).or_else(|| self.item_body(id.checked_sub(1)?))
    }
}

/// Firebase prints its errors pretty.
pub(super) fn error_message(status: StatusCode) -> Message {
    let text = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "Permission denied",
        _ => status.canonical_reason().unwrap_or("Error"),
    };
    let mut error = Json::with_capacity(64);
    error.text("error", text.as_bytes());
    Message::new(status, JSON, json::pretty(&error.finish()).into())
}

fn halved(message: Message, reply: impl FnOnce(Message, usize) -> Reply) -> Reply {
    let sent = message.body.len() / 2;
    reply(message, sent)
}

fn truncated(message: Message, declared: Declared) -> Reply {
    halved(message, |message, sent| Reply::Truncated { message, sent, declared })
}

/// The same comment with its text withheld. Raw values, because a real text may not be valid Unicode.
fn delayed(body: &[u8]) -> Option<Bytes> {
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(body).ok()?;
    if fields.get("type")?.get() != "\"comment\"" || fields.contains_key("dead") {
        return None;
    }
    *fields.get_mut("text")? = RawValue::from_string("\"[delayed]\"".to_owned()).ok()?;
    serde_json::to_vec(&fields).ok().map(Bytes::from)
}

/// A valid comment that no real one comes near.
fn oversized(endpoint: Endpoint<'_>) -> Option<Bytes> {
    let Endpoint::Item(id) = endpoint else { return None };
    let mut json = Json::with_capacity(OVERSIZED + 64);
    json.number("id", id as i64);
    json.text_with("text", |out| out.resize(out.len() + OVERSIZED, b'x'));
    json.text("type", b"comment");
    Some(json.finish().into())
}
