//! Hacker News: items by id and users by name, one request each. Every id is a key, and nothing an object contains can
//! make it fail.

mod arrival;
mod dates;
mod decode;
mod extra;
mod field;
mod item;
mod live;
mod members;
mod plain;
mod schema;
mod search;
mod streams;
mod tags;
mod user;

use std::num::NonZeroU32;

use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use highwater_core::{Failure, FailureKind, Key, KeySet, Position, Span, StreamName, Timestamp};
use http::StatusCode;

use crate::{
    Answer, Call, Decoding, Discovered, Fetched, Gateway, GatewayError, Live, Pass, Request, Response, Source, Stopped,
    StreamSpec, decoding::DECODED_LIKE_AN_ITEM,
};
use arrival::{Arrival, Came};
pub use search::searched;
use streams::Kind;
use tags::Marks;

const COST: f64 = 1.0;

/// A body of so many bytes does not wait for the others of its job. A smaller one, as nearly every item is, was copied out
/// of the connection's buffer, and keeps no more than itself in memory.
const SMALL: usize = 4 << 10;

pub struct Hn {
    gateway: Gateway,
    streams: [StreamSpec; 2],
    decoding: Decoding,
}

impl Hn {
    /// The stream of items, and what its positions count.
    pub const ITEMS: &str = streams::ITEMS_NAME;
    pub const AXIS: &str = streams::AXIS;

    pub fn new(gateway: Gateway, decoding: Decoding) -> Self {
        Hn { gateway, streams: [streams::items(), streams::users()], decoding }
    }

    /// Asks for all of them, each when its turn has come. What has come is taken before more is asked for: what it makes
    /// room for then goes out together, and the remote is not woken for every single request.
    async fn ask_all(&self, kind: Kind, keys: &[Key], call: &Call) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(keys.len());
        let mut all = Vec::with_capacity(keys.len());
        let mut unasked = Vec::with_capacity(keys.len());
        for key in keys {
            match kind.objection(key) {
                Some(objection) => answers.push(Answer::new(key.clone(), objection)),
                None => unasked.push(key),
            }
        }
        let requests = u32::try_from(unasked.len()).expect("a job is bounded");
        let Some(requests) = NonZeroU32::new(requests) else { return answers };
        // Dropped after the line: a permit that one of them gives back is not for who leaves as well.
        let mut asked = FuturesUnordered::new();
        let mut line = self.gateway.line(call.lane, COST, requests);
        for key in unasked {
            let turn = loop {
                tokio::select! {
                    biased;
                    Some(came) = asked.next() => all.push(came),
                    turn = line.next() => break turn,
                }
            };
            match turn {
                Ok(pass) => asked.push(self.ask(pass, kind, key, call)),
                Err(Stopped) => all.push(Came::Read(Answer::new(key.clone(), Fetched::Skipped))),
            }
        }
        while let Some(came) = asked.next().await {
            all.push(came);
        }
        self.read_all(kind, all, answers).await
    }

    async fn ask(&self, pass: Pass<'_>, kind: Kind, key: &Key, call: &Call) -> Came {
        let mut request = kind.request(key);
        let marks = Marks::put(&call.tags, key, &mut request);
        match self.gateway.get_with(pass, &request, call).await {
            Ok(response) if response.body.len() < SMALL => Came::Small(Arrival::new(key, marks, response)),
            // Boxed, so that the many that are small are not made larger by it.
            Ok(response) => Came::Read(Box::pin(self.read_one(kind, Arrival::new(key, marks, response))).await),
            Err(GatewayError::Failed(failure)) => Came::Read(Answer::new(key.clone(), Fetched::Failed(failure))),
            Err(GatewayError::Stopped(_)) => Came::Read(Answer::new(key.clone(), Fetched::Skipped)),
        }
    }

    async fn read_one(&self, kind: Kind, arrival: Arrival) -> Answer {
        let (now, bytes) = (self.now(), arrival.len());
        self.decoding.run(bytes / DECODED_LIKE_AN_ITEM, move || arrival.read(kind, now)).await
    }

    /// Adds what has come to `answers`, in its order: failures at the end of a job say something else than those before
    /// a success. Read on another thread unless there is little: the one that fetches has the next job to ask for.
    async fn read_all(&self, kind: Kind, all: Vec<Came>, mut answers: Vec<Answer>) -> Vec<Answer> {
        let (now, bytes) = (self.now(), all.iter().map(Came::unread).sum::<usize>());
        let read = move || {
            answers.extend(all.into_iter().map(|came| came.read(kind, now)));
            answers
        };
        self.decoding.run(bytes / DECODED_LIKE_AN_ITEM, read).await
    }

    async fn probe_key(&self, kind: Kind, key: &Key) -> Result<(), Failure> {
        let response = self.gateway.get_probe(kind.request(key)).await?;
        let read = expect_ok(&response).and_then(|body| kind.read(key, body, self.now()));
        match read {
            Err(failure) if failure.kind.is_systemic() => Err(failure),
            _ => Ok(()),
        }
    }

    fn now(&self) -> Timestamp {
        self.gateway.clock().now()
    }
}

impl Source for Hn {
    fn streams(&self) -> &[StreamSpec] {
        &self.streams
    }

    fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    fn head<'a>(&'a self, stream: &'a StreamName, call: &'a Call) -> BoxFuture<'a, Result<Position, Failure>> {
        Box::pin(async move {
            Kind::expect_items(stream)?;
            read_head(&self.gateway.get(&head_request(), call, COST).await?)
        })
    }

    fn position_at<'a>(
        &'a self,
        stream: &'a StreamName,
        at: Timestamp,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Position, Failure>> {
        Box::pin(async move {
            Kind::expect_items(stream)?;
            self.first_since(at, call).await
        })
    }

    fn discover<'a>(
        &'a self,
        stream: &'a StreamName,
        span: Span,
        _call: &'a Call,
    ) -> BoxFuture<'a, Result<Discovered, Failure>> {
        Box::pin(async move { Kind::expect_items(stream).map(|()| Discovered::Keys(KeySet::Range(span))) })
    }

    fn fetch<'a>(
        &'a self,
        stream: &'a StreamName,
        keys: &'a [Key],
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Vec<Answer>, Failure>> {
        Box::pin(async move {
            let kind = Kind::of(stream)?;
            Ok(self.ask_all(kind, keys, call).await)
        })
    }

    fn probe<'a>(&'a self, stream: &'a StreamName, canary: Option<&'a Key>) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let kind = Kind::of(stream)?;
            match canary.filter(|key| kind.objection(key).is_none()) {
                Some(key) => self.probe_key(kind, key).await,
                None => read_head(&self.gateway.get_probe(head_request()).await?).map(drop),
            }
        })
    }

    fn live(&self) -> Option<&dyn Live> {
        Some(self)
    }
}

fn head_request() -> Request {
    Request::get("/v0/maxitem.json")
}

fn read_head(response: &Response) -> Result<Position, Failure> {
    head_of(str::from_utf8(expect_ok(response)?).ok().and_then(|text| text.trim().parse().ok()))
}

/// One behind the highest id.
fn head_of(id: Option<i64>) -> Result<Position, Failure> {
    let head = id.filter(|id| *id > 0).and_then(|id| id.checked_add(1));
    head.map(Position).ok_or_else(|| Failure::new(FailureKind::Malformed, "maxitem is not a positive integer"))
}

fn expect_ok(response: &Response) -> Result<&[u8], Failure> {
    expect_status(response.status).map(|()| &response.body[..])
}

fn expect_status(status: StatusCode) -> Result<(), Failure> {
    let kind = match status {
        StatusCode::OK => return Ok(()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => FailureKind::Denied,
        StatusCode::NOT_FOUND | StatusCode::GONE => FailureKind::NotFound,
        status if status.is_server_error() => FailureKind::Server,
        _ => FailureKind::Status,
    };
    Err(Failure::new(kind, format!("status {}", status.as_u16())))
}
