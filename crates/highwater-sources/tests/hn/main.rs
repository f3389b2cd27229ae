//! Hacker News as the engine sees it, over a network that is a table.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod live;
mod marks;
mod users;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use highwater_core::{
    Failure, FailureKind, Key, KeySet, Lane, Position, Span, Timestamp, Value,
    throttle::{InFlight, PauseReason, Rate, Settings},
};
use highwater_sources::{
    Beat, Call, Clock, Decoder, Decoding, Discovered, Fetched, Gateway, Hn, Request, Response, Source, Transport,
};
use http::{HeaderMap, StatusCode};

const NOW: i64 = 1_700_000_000;

/// A status and a body by path; the rest is not found.
#[derive(Default)]
struct Table {
    answers: BTreeMap<String, (u16, String)>,
    /// The rest cannot even be asked for.
    unreachable: bool,
    requests: AtomicUsize,
}

impl Transport for Table {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Failure>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let found = self.answers.get(&request.path).cloned();
        if self.unreachable && found.is_none() {
            return async { Err(Failure::new(FailureKind::Connect, "refused")) }.boxed();
        }
        let (status, body) = found.unwrap_or((404, String::new()));
        let status = StatusCode::from_u16(status).unwrap();
        async move { Ok(Response::new(status, HeaderMap::new(), Bytes::from(body))) }.boxed()
    }
}

struct World {
    hn: Hn,
    table: Arc<Table>,
    call: Call,
}

fn hn(transport: Arc<dyn Transport>) -> (Hn, Call) {
    hn_decoding(transport, Decoding::Inline)
}

fn hn_decoding(transport: Arc<dyn Transport>, decoding: Decoding) -> (Hn, Call) {
    let clock = Clock::simulated(Timestamp::from_millis(NOW * 1000));
    let settings = Settings::new(Rate::Unlimited, InFlight { start: 8, max: 8 });
    let call = Call::new(Lane::Backfill, Beat::new(clock.clone()));
    (Hn::new(Gateway::new(transport, settings, clock, Box::new(|| 0.0)), decoding), call)
}

fn world<'a>(answers: impl IntoIterator<Item = (&'a str, u16, &'a str)>) -> World {
    let answers = answers.into_iter().map(|(path, status, body)| (path.to_owned(), (status, body.to_owned())));
    let table = Arc::new(Table { answers: answers.collect(), ..Table::default() });
    let (hn, call) = hn(table.clone());
    World { hn, table, call }
}

impl World {
    async fn head(&self) -> Result<Position, FailureKind> {
        let stream = &self.hn.streams()[0].name;
        self.hn.head(stream, &self.call).await.map_err(|failure| failure.kind)
    }

    async fn position_at(&self, seconds: i64) -> Result<Position, FailureKind> {
        let (stream, at) = (&self.hn.streams()[0].name, Timestamp::from_millis(seconds * 1000));
        self.hn.position_at(stream, at, &self.call).await.map_err(|failure| failure.kind)
    }

    async fn fetch(&self, ids: impl IntoIterator<Item = i64>) -> BTreeMap<Key, Fetched> {
        let keys: Vec<Key> = ids.into_iter().map(Key::Number).collect();
        let answers = self.hn.fetch(&self.hn.streams()[0].name, &keys, &self.call).await.unwrap();
        assert_eq!(answers.len(), keys.len());
        answers.into_iter().map(|answer| (answer.key, answer.fetched)).collect()
    }

    async fn probe(&self, canary: Option<i64>) -> Result<(), FailureKind> {
        let canary = canary.map(Key::Number);
        self.hn.probe(&self.hn.streams()[0].name, canary.as_ref()).await.map_err(|failure| failure.kind)
    }
}

async fn fetch_one(status: u16, body: &str) -> Fetched {
    world([("/v0/item/7.json", status, body)]).fetch([7]).await.into_values().next().unwrap()
}

#[tokio::test]
async fn items_of_any_size_are_decoded_alike_here_and_beside() {
    // Those of a usual size are many, so that they too are handed over.
    let sizes: Vec<usize> = (400..480).chain([10, 4_000, 4_096, 30_000, 500_000]).collect();
    let body = |size: &usize| format!("{{\"id\":{size},\"text\":\"{}\"}}", "x".repeat(*size));
    let answers = sizes.iter().map(|size| (item_path(*size as i64), (200, body(size))));
    let table = Arc::new(Table { answers: answers.collect(), ..Table::default() });
    for decoding in [Decoding::Inline, Decoding::Blocking, Decoding::Beside(Decoder::start().unwrap())] {
        let (hn, call) = hn_decoding(table.clone(), decoding.clone());
        let world = World { hn, table: table.clone(), call };
        let all = world.fetch(sizes.iter().map(|size| *size as i64)).await;
        assert_eq!(all.len(), sizes.len(), "by {decoding:?}");
        for (key, fetched) in all {
            let Fetched::Found(record) = fetched else { panic!("{key} is {fetched:?}") };
            let text = record.body.values.iter().find_map(|value| match value {
                Value::Text(text) => Some(text.len() as i64),
                _ => None,
            });
            assert_eq!(text, key.number(), "by {decoding:?}");
        }
    }
}

#[tokio::test]
async fn what_failed_on_the_way_keeps_its_place_among_what_came() {
    let body = |id: i64| format!("{{\"id\":{id},\"text\":\"{}\"}}", "x".repeat(400));
    let answers = (1..=60).map(|id| (item_path(id), (200, body(id))));
    // Those behind them cannot be reached.
    let table = Arc::new(Table { answers: answers.collect(), unreachable: true, ..Table::default() });
    let keys: Vec<Key> = (1..=80).map(Key::Number).collect();
    for decoding in [Decoding::Inline, Decoding::Blocking, Decoding::Beside(Decoder::start().unwrap())] {
        let (hn, call) = hn_decoding(table.clone(), decoding.clone());
        let answers = hn.fetch(&hn.streams()[0].name, &keys, &call).await.unwrap();
        let failed: Vec<bool> = answers.iter().map(|answer| matches!(answer.fetched, Fetched::Failed(_))).collect();
        let expected: Vec<bool> = (1..=80).map(|id| id > 60).collect();
        assert_eq!(failed, expected, "by {decoding:?}");
    }
}

#[tokio::test]
async fn the_head_is_one_behind_the_highest_id() {
    let head = async |status, body| world([("/v0/maxitem.json", status, body)]).head().await;
    assert_eq!(head(200, "41\n").await, Ok(Position(42)));
    for bad in ["", "null", "0", "-1", "4.5", "\"41\"", "{}", "<html>", "9223372036854775807", "99999999999999999999"] {
        assert_eq!(head(200, bad).await, Err(FailureKind::Malformed), "{bad}");
    }
    assert_eq!(head(500, "41").await, Err(FailureKind::Server));
}

/// A hundred items, ten seconds apart; `odd` replaces bodies.
fn dated(odd: &[(i64, u16, &str)]) -> World {
    let body = |id: i64| format!("{{\"id\":{id},\"time\":{},\"type\":\"comment\"}}", FIRST + 10 * id);
    let mut answers: BTreeMap<i64, (u16, String)> = (1..=100).map(|id| (id, (200, body(id)))).collect();
    answers.extend(odd.iter().map(|(id, status, body)| (*id, (*status, (*body).to_owned()))));
    let paths: Vec<_> = answers.into_iter().map(|(id, (status, body))| (item_path(id), status, body)).collect();
    let answers = paths.iter().map(|(path, status, body)| (path.as_str(), *status, body.as_str()));
    world(answers.chain([("/v0/maxitem.json", 200, "100")]))
}

const FIRST: i64 = 1_600_000_000;

fn item_path(id: i64) -> String {
    format!("/v0/item/{id}.json")
}

#[tokio::test]
async fn a_date_is_found_in_few_requests_whatever_is_odd_about_items_on_the_way() {
    let far_off = format!("{{\"id\":51,\"time\":{},\"type\":\"story\"}}", FIRST + 30_000_000);
    let odd = [
        (99, 200, "null"),
        (100, 200, "null"),
        (50, 200, "null"),
        (51, 200, far_off.as_str()),
        (52, 200, "{\"id\":52,\"type\":\"story\"}"),
        (76, 500, ""),
        (77, 404, ""),
    ];
    for (odd, requests_max) in [(&[][..], 14), (&odd[..], 28)] {
        for (seconds, id) in [(-1_000_000, 1), (10, 1), (11, 2), (300, 30), (301, 31), (700, 70), (980, 98), (981, 99)]
        {
            let world = dated(odd);
            assert_eq!(world.position_at(FIRST + seconds).await, Ok(Position(id)), "{seconds} s after the first");
            let requests = world.table.requests.load(Ordering::Relaxed);
            assert!(requests <= requests_max, "{requests} requests");
        }
    }
}

#[tokio::test]
async fn the_newest_item_alone_does_not_say_how_late_it_is() {
    for off in [-300_000_000, -200_000] {
        let wrong = format!("{{\"id\":100,\"time\":{},\"type\":\"story\"}}", FIRST + off);
        for (seconds, id) in [(500, 50), (901, 91), (-250_000, 1)] {
            let found = dated(&[(100, 200, &wrong)]).position_at(FIRST + seconds).await;
            assert_eq!(found, Ok(Position(id)), "{seconds} s after the first, {off} s off");
        }
    }
}

#[tokio::test]
async fn a_date_is_not_guessed_when_nothing_answers() {
    let all: Vec<_> = (1..=100).map(|id| (id, 500, "")).collect();
    assert_eq!(dated(&all).position_at(FIRST).await, Err(FailureKind::Server));
}

#[tokio::test]
async fn every_id_of_a_span_is_a_key() {
    let world = world([]);
    let span = Span::new(Position(1), Position(1001));
    let keys = world.hn.discover(&world.hn.streams()[0].name, span, &world.call).await.unwrap();
    assert_eq!(keys, Discovered::Keys(KeySet::Range(span)));
    assert_eq!(world.table.requests.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_job_costs_one_request_a_key_and_answers_each() {
    let bodies: Vec<_> = (1..=100).map(|id| (format!("/v0/item/{id}.json"), format!("{{\"id\":{id}}}"))).collect();
    let world = world(bodies.iter().map(|(path, body)| (path.as_str(), 200, body.as_str())));
    let answers = world.fetch(1..=100).await;
    assert_eq!(world.table.requests.load(Ordering::Relaxed), 100);
    for (key, fetched) in &answers {
        let Fetched::Found(record) = fetched else { panic!("{key}: {fetched:?}") };
        assert_eq!((&record.key, &record.body.values[0]), (key, &Value::Int(key.number().unwrap())));
    }
    assert_eq!(answers.len(), 100);
}

#[tokio::test]
async fn what_an_answer_means_for_its_key() {
    assert!(matches!(fetch_one(200, "null").await, Fetched::Absent));
    assert!(matches!(fetch_one(200, " null\n").await, Fetched::Absent));
    use FailureKind as K;
    for (status, body, kind) in [
        (401, "{\"error\":\"Permission denied\"}", K::Denied),
        (403, "", K::Denied),
        (404, "null", K::NotFound),
        (410, "", K::NotFound),
        (500, "null", K::Server),
        (503, "{\"id\":7}", K::Server),
        (204, "", K::Status),
        (304, "", K::Status),
        (400, "", K::Status),
        (200, "", K::Malformed),
        (200, "<html>oops</html>", K::Malformed),
        (200, "{\"id\":7,\"text\":\"hal", K::Malformed),
        (200, "{\"id\":7}{", K::Malformed),
        (200, "[7]", K::Malformed),
        (200, "7", K::Malformed),
        (200, "{\"id\":8}", K::WrongIdentity),
        (200, "{\"type\":\"story\"}", K::WrongIdentity),
        (200, "{\"id\":null}", K::WrongIdentity),
    ] {
        match fetch_one(status, body).await {
            Fetched::Failed(failure) => {
                assert_eq!(failure.kind, kind, "{status} {body}");
                assert!(!failure.message.contains("oops") && !failure.message.contains("hal"), "{failure}");
            }
            other => panic!("{status} {body}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn held_back_texts_are_looked_at_again_more_often_when_new() {
    let day = 24 * 3600;
    for (time, expected) in [
        (Some(NOW - 60), 8),
        (Some(NOW - day), 8),
        (Some(NOW - day - 1), 3),
        (Some(NOW + 5 * day), 8),
        (Some(i64::MAX), 8),
        (None, 3),
    ] {
        let time = time.map(|time| format!(",\"time\":{time}")).unwrap_or_default();
        match fetch_one(200, &format!("{{\"id\":7,\"text\":\"[delayed]\"{time}}}")).await {
            Fetched::Delayed { record, looks } => {
                assert_eq!(looks, expected, "{time}");
                assert_eq!(record.body.values[6], Value::Text("[delayed]".into()));
            }
            other => panic!("{time}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn once_stopped_keys_are_skipped() {
    let world = world([("/v0/item/7.json", 200, "{\"id\":7}")]);
    world.hn.gateway().stop();
    assert!(matches!(world.fetch([7]).await[&Key::Number(7)], Fetched::Skipped));
    assert_eq!(world.head().await, Err(FailureKind::Internal));
    assert_eq!(world.table.requests.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_probe_takes_any_sound_answer_about_its_key_also_in_an_outage() {
    let answers = [
        ("/v0/item/1.json", 200, "null"),
        ("/v0/item/2.json", 200, "{\"id\":3}"),
        ("/v0/item/3.json", 500, ""),
        ("/v0/item/4.json", 200, "<html>"),
        ("/v0/maxitem.json", 200, "41"),
    ];
    let world = world(answers);
    let until = world.hn.gateway().clock().moment() + Duration::from_secs(3600);
    world.hn.gateway().pause(until, PauseReason::Outage);
    assert_eq!(world.probe(Some(1)).await, Ok(()));
    assert_eq!(world.probe(Some(2)).await, Err(FailureKind::WrongIdentity));
    assert_eq!(world.probe(Some(3)).await, Err(FailureKind::Server));
    assert_eq!(world.probe(Some(4)).await, Err(FailureKind::Malformed));
    assert_eq!(world.probe(None).await, Ok(()));
}
