//! The feeds of Hacker News: Firebase tells by server-sent events what is written to a place. What was written is read
//! in `written`; here feeds are opened, and their events given a meaning.

mod written;

use std::collections::VecDeque;

use futures_util::future::BoxFuture;
use highwater_core::{Failure, FailureKind, StreamName};
use http::{HeaderValue, header};

use super::{Hn, expect_status, field, head_of};
use crate::{
    Chunks, Feed, Listening, Live, OpenResponse, Request, Told,
    sse::{Decoder, Event},
};
use written::Write;

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");

const UPDATES: Feed = Feed { name: "updates", tells_changes: true };
/// New items are found without it, only later.
const MAXITEM: Feed = Feed { name: "maxitem", tells_changes: false };

impl Live for Hn {
    fn feeds(&self) -> &'static [Feed] {
        &[UPDATES, MAXITEM]
    }

    fn listen(&self, feed: Feed) -> BoxFuture<'_, Result<Box<dyn Listening>, Failure>> {
        Box::pin(async move {
            let [items, users] = self.streams.each_ref().map(|spec| spec.name.clone());
            let topic = match feed {
                UPDATES => Topic::Updates { items, users },
                MAXITEM => Topic::MaxItem { items },
                _ => return Err(Failure::new(FailureKind::Internal, "there is no such feed")),
            };
            let opened = self.gateway.open(request(feed)).await?;
            expect_events(&opened)?;
            let OpenResponse { chunks, .. } = opened;
            Ok(Box::new(Heard { topic, chunks, decoder: Decoder::default(), events: VecDeque::new(), failed: None })
                as _)
        })
    }
}

fn request(feed: Feed) -> Request {
    let mut request = Request::get(format!("/v0/{}.json", feed.name));
    request.headers.insert(header::ACCEPT, EVENT_STREAM);
    request.headers.insert(header::CACHE_CONTROL, NO_CACHE);
    request
}

fn expect_events(opened: &OpenResponse) -> Result<(), Failure> {
    expect_status(opened.status)?;
    let text = |name| opened.headers.get(name).and_then(|value| value.to_str().ok());
    let kind = text(header::CONTENT_TYPE).and_then(|text| text.split(';').next());
    let are_events = kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"));
    let are_plain = text(header::CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity");
    if are_events && are_plain { Ok(()) } else { Err(malformed("the answer is not a stream of events")) }
}

struct Heard {
    topic: Topic,
    chunks: Box<dyn Chunks>,
    decoder: Decoder,
    /// Read, but not told yet.
    events: VecDeque<Event>,
    /// Told once all that came before it is.
    failed: Option<Failure>,
}

enum Topic {
    Updates { items: StreamName, users: StreamName },
    MaxItem { items: StreamName },
}

impl Listening for Heard {
    fn next(&mut self) -> BoxFuture<'_, Result<Told, Failure>> {
        Box::pin(async move {
            loop {
                if let Some(event) = self.events.pop_front() {
                    return self.topic.told(&event);
                }
                if let Some(failure) = &self.failed {
                    return Err(failure.clone());
                }
                self.failed = self.read_on().await.err();
            }
        })
    }
}

impl Heard {
    async fn read_on(&mut self) -> Result<(), Failure> {
        let ended = || Failure::new(FailureKind::Broken, "the feed ended");
        let chunk = self.chunks.next().await?.ok_or_else(ended)?;
        let pushed = self.decoder.push(&chunk, &mut self.events);
        pushed.map_err(|error| Failure::new(FailureKind::TooLarge, error.to_string()))
    }
}

impl Topic {
    fn told(&self, event: &Event) -> Result<Told, Failure> {
        let denied = |message| Err(Failure::new(FailureKind::Denied, message));
        match event.name.as_str() {
            "put" => self.read(&written::put(&event.data).ok_or_else(unreadable)?),
            "patch" => self.read(&written::patch(&event.data).ok_or_else(unreadable)?),
            "cancel" => denied("the remote does not let this feed be read any more"),
            "auth_revoked" => denied("the remote does not know us any more"),
            _ => Ok(Told::Alive),
        }
    }

    fn read(&self, writes: &[Write<'_>]) -> Result<Told, Failure> {
        match self {
            Topic::Updates { items, users } => {
                let changed = writes.iter().flat_map(|write| write.changed(items, users)).collect::<Vec<_>>();
                Ok(if changed.is_empty() { Told::Alive } else { Told::Changed(changed) })
            }
            Topic::MaxItem { items } => {
                // What is written elsewhere, or deleted, says nothing about the head.
                let Some(value) = writes.iter().rev().find_map(Write::of_root) else { return Ok(Told::Alive) };
                Ok(Told::Head { stream: items.clone(), head: head_of(field::int(value))? })
            }
        }
    }
}

/// It is not to be trusted further: the state told when the feed is opened again is.
fn unreadable() -> Failure {
    malformed("the feed tells what cannot be read")
}

fn malformed(message: &str) -> Failure {
    Failure::new(FailureKind::Malformed, message)
}

#[cfg(test)]
mod tests;
