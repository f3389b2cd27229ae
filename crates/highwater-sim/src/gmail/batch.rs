//! The batch endpoint: many calls in one request, each admitted, counted and answered for itself.

use std::{io::Write, time::Duration};

use bytes::Bytes;
use http::StatusCode;

use super::{
    GmailSim,
    error::ApiError,
    multipart::{self, Piece},
    route::Route,
};
use crate::answer::{AcceptEncoding, Answer, Declared, Message, Reply, SimRequest, Verb};

const PARTS_MAX: usize = 100;
/// No line of JSON begins like this.
const BOUNDARY: &str = "batch_x1Jc5oYb0Zk";
const MIXED: &str = "multipart/mixed; boundary=batch_x1Jc5oYb0Zk";

impl GmailSim {
    pub(super) fn batch(&self, request: &SimRequest<'_>, now: Duration) -> Answer {
        {
            let mut inside = self.inside(now);
            inside.counts.batches += 1;
            if now < inside.down_until {
                return Answer { delay: Duration::ZERO, reply: Reply::Reset };
            }
        }
        match self.answers(request, now) {
            Ok((delay, message)) => Answer { delay, reply: Reply::Full(message) },
            Err(error) => Answer { delay: Duration::ZERO, reply: Reply::Full(error.message()) },
        }
    }

    /// All parts run at once: the slowest says how long it takes.
    fn answers(&self, request: &SimRequest<'_>, now: Duration) -> Result<(Duration, Message), ApiError> {
        let pieces = multipart::split(request.content_type.unwrap_or(""), request.body);
        let pieces = pieces.filter(|pieces| !pieces.is_empty());
        let pieces = pieces.ok_or_else(|| ApiError::invalid("Failed to parse batch request, no parts found"))?;
        if pieces.len() > PARTS_MAX {
            let text = format!("Inner request count exceeds the limit. Received: {}, Limit: 100", pieces.len());
            return Err(ApiError::invalid(text));
        }
        let (mut slowest, mut body) = (Duration::ZERO, Vec::new());
        for piece in &pieces {
            let answer = self.inner(piece, request, now);
            slowest = slowest.max(answer.delay);
            write_part(&mut body, piece, &as_message(answer.reply));
        }
        write!(body, "--{BOUNDARY}--\r\n").expect("a Vec takes every byte");
        let message = Message::new(StatusCode::OK, MIXED, Bytes::from(body));
        let gzip = self.plan.body.gzip && request.encoding == AcceptEncoding::Gzip;
        Ok((slowest, if gzip { message.gzipped() } else { message }))
    }

    fn inner(&self, piece: &Piece<'_>, outer: &SimRequest<'_>, now: Duration) -> Answer {
        let call = multipart::piece(piece.body);
        let authorization = call.header("authorization");
        let line = piece.body.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split_whitespace();
        let (verb, target) = (words.next().and_then(Verb::parse), words.next().unwrap_or(""));
        let asked = verb.map(|verb| SimRequest {
            authorization: authorization.as_deref().or(outer.authorization),
            ..SimRequest::get(target).sending(verb, call.body)
        });
        match asked.as_ref().map(|asked| (asked, Route::parse(asked))) {
            Some((asked, Route::Call(call))) => self.call(&call, asked, now),
            _ => Answer { delay: Duration::ZERO, reply: Reply::Full(ApiError::not_found().message()) },
        }
    }
}

/// A connection that carries many answers does not break for one of them.
fn as_message(reply: Reply) -> Message {
    match reply {
        Reply::Full(message) | Reply::Slow { message, .. } => message,
        Reply::Truncated { mut message, sent, declared: Declared::Sent } => {
            message.body.truncate(sent);
            message
        }
        _ => ApiError::backend(StatusCode::SERVICE_UNAVAILABLE).message(),
    }
}

fn write_part(out: &mut Vec<u8>, piece: &Piece<'_>, message: &Message) {
    let id = piece.header("content-id").unwrap_or_default();
    let id = id.strip_prefix('<').map(|rest| format!("Content-ID: <response-{rest}\r\n")).unwrap_or_default();
    let reason = message.status.canonical_reason().unwrap_or("");
    write!(
        out,
        "--{BOUNDARY}\r\nContent-Type: application/http\r\n{id}\r\nHTTP/1.1 {} {reason}\r\nContent-Type: {}\r\n\
         Content-Length: {}\r\n\r\n",
        message.status.as_u16(),
        message.headers.content_type,
        message.body.len(),
    )
    .expect("a Vec takes every byte");
    out.extend_from_slice(&message.body);
    out.extend_from_slice(b"\r\n");
}
