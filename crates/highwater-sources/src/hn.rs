//! Hacker News: items by id and users by name, one request each. Every id is a key, and nothing an object contains can
//! make it fail.

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
pub use search::searched;
use streams::Kind;
use tags::Marks;

const COST: f64 = 1.0;

/// Bytes of a body: more than any item has, less than a user who wrote for years.
const SMALL: usize = 32 << 10;

pub struct Hn {
    gateway: Gateway,
    streams: [StreamSpec; 2],
    decoding: Decoding,
}

impl Hn {
    pub fn new(gateway: Gateway, decoding: Decoding) -> Self {
        Hn { gateway, streams: [streams::items(), streams::users()], decoding }
    }

    /// Asks for all of them, each when its turn has come. What has come is taken before more is asked for: what it makes
    /// room for then goes out together, and the remote is not woken for every single request.
    async fn ask_all(&self, kind: Kind, keys: &[Key], call: &Call) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(keys.len());
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
                    Some(answer) = asked.next() => answers.push(answer),
                    turn = line.next() => break turn,
                }
            };
            match turn {
                Ok(pass) => asked.push(self.ask(pass, kind, key, call)),
                Err(Stopped) => answers.push(Answer::new(key.clone(), Fetched::Skipped)),
            }
        }
        while let Some(answer) = asked.next().await {
            answers.push(answer);
        }
        answers
    }

    async fn ask(&self, pass: Pass<'_>, kind: Kind, key: &Key, call: &Call) -> Answer {
        let mut request = kind.request(key);
        let marks = Marks::put(&call.tags, key, &mut request);
        let fetched = match self.gateway.get_with(pass, &request, call).await {
            Ok(response) if response.body.len() <= SMALL => read(kind, key, marks, &response, self.now()),
            // Boxed, so that the many that are small are not made larger by it.
            Ok(response) => Box::pin(self.read_beside(kind, key.clone(), marks, response)).await,
            Err(GatewayError::Failed(failure)) => Fetched::Failed(failure),
            Err(GatewayError::Stopped(_)) => Fetched::Skipped,
        };
        Answer::new(key.clone(), fetched)
    }

    /// Only what is large: a small one takes a microsecond where it arrives, less than to hand it to another thread.
    async fn read_beside(&self, kind: Kind, key: Key, marks: Marks, response: Response) -> Fetched {
        let (now, items) = (self.now(), response.body.len() / DECODED_LIKE_AN_ITEM);
        self.decoding.run(items, move || read(kind, &key, marks, &response, now)).await
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

fn read(kind: Kind, key: &Key, marks: Marks, response: &Response, now: Timestamp) -> Fetched {
    if marks.is_unchanged(response) {
        return Fetched::Unchanged;
    }
    let read = expect_ok(response).and_then(|body| kind.read(key, body, now));
    let mut fetched = read.unwrap_or_else(Fetched::Failed);
    marks.take(&response.headers, &mut fetched);
    fetched
}
