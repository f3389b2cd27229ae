//! How a stream begins: counted, refused, sent elsewhere, or opened.

use std::{
    fmt::Display,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use http::StatusCode;

use super::EventStream;
use crate::{
    answer::{AcceptEncoding, Answer, Arrival, IfNoneMatch, Reply, SimRequest},
    fault::Fault,
    hn::{
        HnSim, Turn, page_number,
        reply::{Form, NULL, error_message},
        route::{Endpoint, Print, Route},
    },
    plan::Redirect,
};

/// Where redirects within the server lead to.
const MOVED: &str = "/moved";

/// The answer to a request for a stream.
#[derive(Debug)]
pub enum Opening {
    Stream {
        delay: Duration,
        stream: EventStream,
    },
    /// 307, and open it there.
    Moved {
        delay: Duration,
        moved: Moved,
    },
    /// Not a stream.
    Answer(Answer),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub to: Redirect,
    /// Path and query of the stream.
    pub target: String,
}

impl Moved {
    /// The value of `Location`; `elsewhere` is host and port of the second listener.
    pub fn location(&self, elsewhere: impl Display) -> String {
        match self.to {
            Redirect::Path => format!("{MOVED}{}", self.target),
            Redirect::Port => format!("http://{elsewhere}{}", self.target),
        }
    }
}

/// How often each kind of node was asked for as a stream, and opened.
#[derive(Debug, Default)]
pub(in crate::hn) struct Attempts {
    asked: [AtomicU64; Endpoint::NAMES.len()],
    opened: [AtomicU64; Endpoint::NAMES.len()],
}

impl HnSim {
    /// What a request with `Accept: text/event-stream` gets. The simulator's own pages are not streamed.
    pub fn open_stream(self: &Arc<Self>, request: &SimRequest<'_>, now: Duration) -> Opening {
        let (target, arrival) = match request.target.strip_prefix(MOVED) {
            Some(target) => (target, Arrival::Redirected),
            None => (request.target, request.arrival),
        };
        let Route::Api { endpoint, .. } = Route::parse(target) else {
            return Opening::Answer(self.answer(request, now));
        };
        if let Some(answer) = self.refusal(endpoint, now) {
            return self.refused_stream(answer, now);
        }
        let turn = self.page_turn(page_number(endpoint));
        let delay = self.dice.latency(turn.key, turn.nth);
        match self.spoiled(endpoint, arrival, &turn) {
            Some(reply) => self.refused_stream(Answer { delay, reply }, now),
            None => self.opened(target, endpoint, arrival, delay, now),
        }
    }

    fn refused_stream(&self, answer: Answer, now: Duration) -> Opening {
        self.remember_retry_after(&answer, now);
        Opening::Answer(answer)
    }

    fn opened(
        self: &Arc<Self>,
        target: &str,
        endpoint: Endpoint<'_>,
        arrival: Arrival,
        delay: Duration,
        now: Duration,
    ) -> Opening {
        if let Some(to) = self.plan.stream.redirect.filter(|_| arrival == Arrival::FirstHand) {
            self.stats.count_reply(Some(StatusCode::TEMPORARY_REDIRECT), None);
            return Opening::Moved { delay, moved: Moved { to, target: target.to_owned() } };
        }
        self.stats.count_reply(Some(StatusCode::OK), None);
        let number = self.streams.opened[endpoint.index()].fetch_add(1, Relaxed);
        let stream = EventStream::new(Arc::clone(self), target.to_owned(), number, now);
        Opening::Stream { delay, stream }
    }

    /// What takes the place of a stream.
    fn spoiled(&self, endpoint: Endpoint<'_>, arrival: Arrival, turn: &Turn) -> Option<Reply> {
        if arrival == Arrival::FirstHand
            && let Some(status) = self.status_first(endpoint)
        {
            self.stats.count_reply(Some(status), None);
            return Some(Reply::Full(error_message(status)));
        }
        let plain = Form { print: Print::Compact, encoding: AcceptEncoding::Identity, tag: IfNoneMatch::Unasked };
        let fault = turn.fault.filter(|fault| strikes_streams(*fault))?;
        let reply = self.faulty(fault, endpoint, &NULL, plain)?;
        self.stats.count_reply(reply.status(), Some(fault));
        Some(reply)
    }

    fn status_first(&self, endpoint: Endpoint<'_>) -> Option<StatusCode> {
        let nth = usize::try_from(self.streams.asked[endpoint.index()].fetch_add(1, Relaxed)).ok()?;
        StatusCode::from_u16(*self.plan.stream.status_first.get(nth)?).ok()
    }
}

/// Faults of whole bodies have no meaning where the body has no end; streams have breaks of their own.
const fn strikes_streams(fault: Fault) -> bool {
    !matches!(fault, Fault::ResetBody | Fault::Truncated | Fault::CutJson | Fault::Slow) && !fault.only_for_items()
}
