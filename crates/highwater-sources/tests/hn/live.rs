//! Feeds as the engine hears them, over a network that is a script.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture, poll};
use highwater_core::{Failure, FailureKind, Key, Position};
use highwater_sources::{Chunks, Feed, Hn, Listening, OpenResponse, Request, Response, Source, Told, Transport};
use http::{HeaderMap, StatusCode};

/// Every opening gets the next answer.
#[derive(Default)]
struct Openings {
    answers: Mutex<VecDeque<Opening>>,
    seen: Mutex<Vec<Request>>,
}

struct Opening {
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    chunks: Vec<Result<Option<&'static str>, FailureKind>>,
}

const EVENTS: &[(&str, &str)] = &[("content-type", "text/event-stream; charset=utf-8")];

impl Transport for Openings {
    fn send(&self, _: Request) -> BoxFuture<'_, Result<Response, Failure>> {
        panic!("a feed is opened, not sent for")
    }

    fn open(&self, request: Request) -> BoxFuture<'_, Result<OpenResponse, Failure>> {
        self.seen.lock().unwrap().push(request);
        let Opening { status, headers, chunks } = self.answers.lock().unwrap().pop_front().unwrap();
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let chunks = Box::new(Script(chunks.into()));
        async move { Ok(OpenResponse { status: StatusCode::from_u16(status).unwrap(), headers, chunks }) }.boxed()
    }
}

/// What is to come; after that nothing comes.
struct Script(VecDeque<Result<Option<&'static str>, FailureKind>>);

impl Chunks for Script {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Failure>> {
        match self.0.pop_front() {
            Some(Ok(chunk)) => async move { Ok(chunk.map(Bytes::from)) }.boxed(),
            Some(Err(kind)) => async move { Err(Failure::new(kind, "broken")) }.boxed(),
            None => std::future::pending().boxed(),
        }
    }
}

fn openings(answers: impl IntoIterator<Item = Opening>) -> (Hn, Arc<Openings>) {
    let openings = Arc::new(Openings { answers: Mutex::new(answers.into_iter().collect()), ..Openings::default() });
    (crate::hn(openings.clone()).0, openings)
}

fn feed(chunks: &[Result<Option<&'static str>, FailureKind>]) -> Opening {
    Opening { status: 200, headers: EVENTS, chunks: chunks.to_vec() }
}

fn named(hn: &Hn, name: &str) -> Feed {
    hn.live().unwrap().feeds().iter().copied().find(|feed| feed.name == name).unwrap()
}

async fn listen(hn: &Hn, name: &str) -> Result<Box<dyn Listening>, Failure> {
    hn.live().unwrap().listen(named(hn, name)).await
}

#[tokio::test]
async fn updates_name_what_changed_and_the_end_is_an_error() {
    let chunks = [
        Ok(Some("event: put\ndata: {\"path\":\"/\",\"data\":{\"items\":[3],\"profiles\":[\"pg\"]}}\n\nevent: keep-al")),
        Ok(Some("ive\ndata: null\n\n")),
        Ok(Some("event: put\ndata: {\"path\":\"/items/0\",\"data\":4}\n\nevent: put\ndata: {")),
        Ok(None),
    ];
    let (hn, openings) = openings([feed(&chunks)]);
    assert!(named(&hn, "updates").tells_changes && !named(&hn, "maxitem").tells_changes);
    let mut updates = listen(&hn, "updates").await.unwrap();
    let [items, users] = [&hn.streams()[0].name, &hn.streams()[1].name];
    let both = vec![(items.clone(), Key::Number(3)), (users.clone(), Key::from("pg"))];
    assert_eq!(updates.next().await, Ok(Told::Changed(both)));
    assert_eq!(updates.next().await, Ok(Told::Alive));
    assert_eq!(updates.next().await, Ok(Told::Changed(vec![(items.clone(), Key::Number(4))])));
    for _ in 0..2 {
        assert_eq!(updates.next().await.unwrap_err().kind, FailureKind::Broken);
    }
    let seen = &openings.seen.lock().unwrap()[0];
    assert_eq!(
        (seen.path.as_str(), &seen.headers["accept"]),
        ("/v0/updates.json", &"text/event-stream".parse().unwrap())
    );
    assert_eq!(seen.headers["cache-control"], "no-cache");
}

#[tokio::test]
async fn the_head_is_told_as_it_moves() {
    let chunks = [Ok(Some("event: put\ndata: {\"path\":\"/\",\"data\":41}\n\n"))];
    let (hn, openings) = openings([feed(&chunks)]);
    let mut maxitem = listen(&hn, "maxitem").await.unwrap();
    let stream = hn.streams()[0].name.clone();
    assert_eq!(maxitem.next().await, Ok(Told::Head { stream, head: Position(42) }));
    assert!(poll!(pin!(maxitem.next())).is_pending());
    assert_eq!(openings.seen.lock().unwrap()[0].path, "/v0/maxitem.json");
}

#[tokio::test]
async fn what_came_before_a_feed_broke_is_told_before_the_break() {
    let put = "event: put\ndata: {\"path\":\"/items/0\",\"data\":4}\n\n";
    let huge: &'static str = format!("{put}data: {}", "x".repeat(9 * 1024 * 1024)).leak();
    for (chunks, kind) in [
        (&[Ok(Some(put)), Err(FailureKind::Broken)][..], FailureKind::Broken),
        (&[Ok(Some(huge))], FailureKind::TooLarge),
    ] {
        let (hn, _) = openings([feed(chunks)]);
        let mut updates = listen(&hn, "updates").await.unwrap();
        assert!(matches!(updates.next().await, Ok(Told::Changed(_))));
        assert_eq!(updates.next().await.unwrap_err().kind, kind);
    }
}

#[tokio::test]
async fn only_a_stream_of_events_is_one() {
    use FailureKind as K;
    let json: &[(&str, &str)] = &[("content-type", "application/json")];
    let packed: &[(&str, &str)] = &[("content-type", "text/event-stream"), ("content-encoding", "gzip")];
    for (status, headers, kind) in [
        (401, EVENTS, K::Denied),
        (404, EVENTS, K::NotFound),
        (500, EVENTS, K::Server),
        (503, EVENTS, K::Server),
        (204, EVENTS, K::Status),
        (200, json, K::Malformed),
        (200, packed, K::Malformed),
        (200, &[], K::Malformed),
    ] {
        let (hn, _) = openings([Opening { status, headers, chunks: Vec::new() }]);
        let failure = listen(&hn, "updates").await.map(drop).unwrap_err();
        assert_eq!(failure.kind, kind, "{status} {headers:?}");
    }
    let (hn, _) = openings([]);
    let unknown = Feed { name: "other", tells_changes: true };
    assert_eq!(hn.live().unwrap().listen(unknown).await.map(drop).unwrap_err().kind, K::Internal);
}
