//! Hacker News: items by id, one request each. Every id is a key, and nothing an item contains can make it fail.

mod dates;
mod decode;
mod extra;
mod field;
mod members;
mod schema;
mod text;

use std::time::Duration;

use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use highwater_core::{
    AbsenceRule, DeadLetterPolicy, Failure, FailureKind, Key, KeySet, Position, Record, Span, StreamName, Timestamp,
};
use http::StatusCode;

use crate::{
    Answer, Call, Decoding, Density, Fetched, Gateway, GatewayError, Request, Response, Source, StreamPolicy,
    StreamSpec,
};
use decode::{Document, Item};
use schema::ITEMS;

const COST: f64 = 1.0;

/// Held-back texts were seen to appear within minutes; what is older than this hardly changes any more.
const DELAY_IS_OLD: Duration = Duration::from_secs(24 * 3600);
const LOOKS_WHEN_OLD: u32 = 3;
const LOOKS_WHEN_NEW: u32 = 8;

pub struct Hn {
    gateway: Gateway,
    streams: [StreamSpec; 1],
    decoding: Decoding,
}

/// A key and what the remote sent for it.
type Heard = (Key, Result<Response, Fetched>);

impl Hn {
    pub fn new(gateway: Gateway, decoding: Decoding) -> Self {
        Hn { gateway, streams: [items()], decoding }
    }

    async fn ask(&self, key: &Key, call: &Call) -> Heard {
        let Some(id) = key.number() else {
            let failure = Failure::new(FailureKind::Internal, "the key is not an item id");
            return (key.clone(), Err(Fetched::Failed(failure)));
        };
        let heard = self.gateway.get(item_request(id), call, COST).await.map_err(|error| match error {
            GatewayError::Failed(failure) => Fetched::Failed(failure),
            GatewayError::Stopped(_) => Fetched::Skipped,
        });
        (key.clone(), heard)
    }

    async fn probe_item(&self, id: i64) -> Result<(), Failure> {
        let response = self.gateway.get_probe(item_request(id)).await?;
        match read_item(id, &response, self.now()) {
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

    fn head<'a>(&'a self, _stream: &'a StreamName, call: &'a Call) -> BoxFuture<'a, Result<Position, Failure>> {
        Box::pin(async move { read_head(&self.gateway.get(head_request(), call, COST).await?) })
    }

    fn position_at<'a>(
        &'a self,
        _stream: &'a StreamName,
        at: Timestamp,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Position, Failure>> {
        Box::pin(self.first_since(at, call))
    }

    fn discover<'a>(
        &'a self,
        _stream: &'a StreamName,
        span: Span,
        _call: &'a Call,
    ) -> BoxFuture<'a, Result<KeySet, Failure>> {
        Box::pin(async move { Ok(KeySet::Range(span)) })
    }

    fn fetch<'a>(
        &'a self,
        _stream: &'a StreamName,
        keys: &'a [Key],
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Vec<Answer>, Failure>> {
        Box::pin(async move {
            let asked: FuturesUnordered<_> = keys.iter().map(|key| self.ask(key, call)).collect();
            let heard: Vec<Heard> = asked.collect().await;
            let now = self.now();
            Ok(self.decoding.run(move || heard.into_iter().map(|heard| answer(heard, now)).collect()).await)
        })
    }

    fn probe<'a>(&'a self, _stream: &'a StreamName, canary: Option<&'a Key>) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            match canary.and_then(Key::number) {
                Some(id) => self.probe_item(id).await,
                None => read_head(&self.gateway.get_probe(head_request()).await?).map(drop),
            }
        })
    }

    fn live(&self) -> Option<&dyn crate::Live> {
        None
    }
}

fn items() -> StreamSpec {
    StreamSpec {
        name: "items".parse().expect("a plain word is a name"),
        axis: "id",
        origin: Position(1),
        table: &ITEMS,
        density: Density::Dense,
        policy: StreamPolicy {
            segment_size: 1_000,
            job_size: 100,
            dead_letters: DeadLetterPolicy::Hold,
            absence: AbsenceRule { confirmations: 3, over: Duration::from_secs(5) },
            settled_behind: 50,
        },
    }
}

fn head_request() -> Request {
    Request::get("/v0/maxitem.json")
}

fn item_request(id: i64) -> Request {
    Request::get(format!("/v0/item/{id}.json"))
}

fn read_head(response: &Response) -> Result<Position, Failure> {
    let id = str::from_utf8(expect_ok(response)?).ok().and_then(|text| text.trim().parse::<i64>().ok());
    let head = id.filter(|id| *id > 0).and_then(|id| id.checked_add(1));
    head.map(Position).ok_or_else(|| Failure::new(FailureKind::Malformed, "maxitem is not a positive integer"))
}

fn expect_ok(response: &Response) -> Result<&[u8], Failure> {
    let kind = match response.status {
        StatusCode::OK => return Ok(&response.body),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => FailureKind::Denied,
        StatusCode::NOT_FOUND | StatusCode::GONE => FailureKind::NotFound,
        status if status.is_server_error() => FailureKind::Server,
        _ => FailureKind::Status,
    };
    Err(Failure::new(kind, format!("status {}", response.status.as_u16())))
}

fn answer((key, heard): Heard, now: Timestamp) -> Answer {
    let fetched = match (key.number(), heard) {
        (Some(id), Ok(response)) => read_item(id, &response, now).unwrap_or_else(Fetched::Failed),
        (None, Ok(_)) => unreachable!("only numbers are asked for"),
        (_, Err(unheard)) => unheard,
    };
    Answer { key, fetched }
}

fn read_item(id: i64, response: &Response, now: Timestamp) -> Result<Fetched, Failure> {
    let item = match decode::decode(expect_ok(response)?)? {
        Document::Null => return Ok(Fetched::Absent),
        Document::Item(item) => item,
    };
    if item.id != Some(id) {
        return Err(Failure::new(FailureKind::WrongIdentity, wrong_identity(item.id)));
    }
    let looks = looks(&item, now);
    let record = Record { key: Key::Number(id), table: &ITEMS, body: item.body, tag: None };
    Ok(match looks {
        Some(looks) => Fetched::Delayed { record, looks },
        None => Fetched::Found(record),
    })
}

fn wrong_identity(id: Option<i64>) -> String {
    match id {
        Some(id) => format!("the body is about item {id}"),
        None => "the body has no id".into(),
    }
}

fn looks(item: &Item, now: Timestamp) -> Option<u32> {
    if !item.is_delayed {
        return None;
    }
    let is_new =
        item.time.is_some_and(|time| now.since(Timestamp::from_millis(time.saturating_mul(1000))) <= DELAY_IS_OLD);
    Some(if is_new { LOOKS_WHEN_NEW } else { LOOKS_WHEN_OLD })
}
