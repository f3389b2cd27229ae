//! The gateway on virtual time, over a network that is a script.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::{
    collections::VecDeque,
    future::Future,
    num::NonZeroU32,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture, poll};
use highwater_core::{
    Failure, FailureKind, Lane, Moment, Timestamp,
    throttle::{GateState, InFlight, PauseReason, Rate, Settings},
};
use highwater_sources::{
    Answers, Beat, Call, Chunks, Clock, Gateway, GatewayError, LATENCY_BOUNDS, Line, OpenResponse, Request, Response,
    Stopped, Traffic, Transport,
};
use http::{HeaderMap, StatusCode};
use tokio::{sync::Semaphore, task::JoinHandle};

/// Answers in the order of the script, then 200 for ever. Every answer takes 100 ms.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<Result<Response, Failure>>>,
    sent: Mutex<Vec<String>>,
}

impl Transport for Script {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Failure>> {
        self.sent.lock().unwrap().push(request.path);
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or_else(|| Ok(answer(200, None)));
        tokio::time::sleep(Duration::from_millis(100)).map(move |()| answer).boxed()
    }

    fn open(&self, request: Request) -> BoxFuture<'_, Result<OpenResponse, Failure>> {
        let opened = |Response { status, headers, .. }| OpenResponse { status, headers, chunks: Box::new(Ended) };
        self.send(request).map(move |answer| answer.map(opened)).boxed()
    }
}

struct Ended;

impl Chunks for Ended {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Failure>> {
        std::future::ready(Ok(None)).boxed()
    }
}

fn answer(status: u16, retry_after: Option<&str>) -> Response {
    let mut headers = HeaderMap::new();
    if let Some(text) = retry_after {
        headers.insert("retry-after", text.parse().unwrap());
    }
    Response::new(StatusCode::from_u16(status).unwrap(), headers, Bytes::from_static(b"body"))
}

struct World {
    script: Arc<Script>,
    gateway: Arc<Gateway>,
    driver: JoinHandle<()>,
}

fn world(rate: Rate, in_flight: u32, answers: impl IntoIterator<Item = Result<Response, Failure>>) -> World {
    let script = Arc::new(Script { answers: Mutex::new(answers.into_iter().collect()), ..Script::default() });
    let settings = Settings::new(rate, InFlight { start: in_flight, max: in_flight });
    let clock = Clock::simulated(Timestamp::from_millis(1_000_000));
    let gateway = Arc::new(Gateway::new(script.clone(), settings, clock, Box::new(|| 0.0)));
    let driver = tokio::spawn({
        let gateway = gateway.clone();
        async move { gateway.drive().await }
    });
    World { script, gateway, driver }
}

fn unlimited(in_flight: u32) -> World {
    world(Rate::Unlimited, in_flight, [])
}

impl World {
    async fn get(&self, path: &str, lane: Lane) -> Result<Response, GatewayError> {
        let call = Call::new(lane, Beat::new(self.gateway.clock().clone()));
        self.gateway.get(&Request::get(path), &call, 1.0).await
    }

    fn line(&self, requests: u32) -> Line<'_> {
        self.gateway.line(Lane::Backfill, 1.0, NonZeroU32::new(requests).unwrap())
    }

    /// How many are under way, and how many wait.
    fn places(&self) -> (u32, usize) {
        let snapshot = self.gateway.snapshot();
        (snapshot.in_flight, snapshot.waiting.iter().sum())
    }

    fn now(&self) -> Moment {
        self.gateway.clock().moment()
    }

    fn sent(&self) -> Vec<String> {
        self.script.sent.lock().unwrap().clone()
    }

    async fn seconds_of<T>(&self, work: impl Future<Output = T>) -> (f64, T) {
        let start = self.now();
        let done = work.await;
        (self.now().since(start).as_secs_f64(), done)
    }
}

#[tokio::test(start_paused = true)]
async fn a_throttled_answer_is_waited_out_and_never_seen() {
    let answers = [answer(429, Some("30")), answer(503, Some("5")), answer(429, None)].map(Ok);
    let world = world(Rate::Unlimited, 4, answers);
    let (seconds, response) = world.seconds_of(world.get("/1", Lane::Backfill)).await;
    assert_eq!(response.unwrap().status, 200);
    assert!((35.4..38.0).contains(&seconds), "{seconds}");
    assert_eq!(world.gateway.traffic(), Traffic { requests: 4, throttled: 3, bytes: 16 });
}

#[tokio::test(start_paused = true)]
async fn a_pause_stops_everybody_on_the_account() {
    let world = world(Rate::Unlimited, 4, [Ok(answer(429, Some("30")))]);
    let (first, second) = tokio::join!(world.get("/1", Lane::Backfill), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.seconds_of(world.get("/2", Lane::Live)).await
    });
    assert!(first.is_ok() && second.1.is_ok());
    assert!((29.0..31.0).contains(&second.0), "{}", second.0);
}

#[tokio::test(start_paused = true)]
async fn everything_else_is_returned_at_once() {
    let broken = Failure::new(FailureKind::Broken, "broken");
    let world = world(Rate::Unlimited, 4, [Ok(answer(503, None)), Ok(answer(404, Some("9"))), Err(broken.clone())]);
    let (seconds, ()) = world
        .seconds_of(async {
            assert_eq!(world.get("/1", Lane::Live).await.unwrap().status, 503);
            assert_eq!(world.get("/2", Lane::Live).await.unwrap().status, 404);
            assert_eq!(world.get("/3", Lane::Live).await.unwrap_err(), GatewayError::Failed(broken));
        })
        .await;
    assert!(seconds < 0.4, "{seconds}");
    assert_eq!(world.sent(), ["/1", "/2", "/3"]);
}

#[tokio::test(start_paused = true)]
async fn permits_go_by_lane_and_then_in_turn() {
    let world = unlimited(1);
    let get = |path, lane| world.get(path, lane);
    let _ = tokio::join!(
        get("/first", Lane::Backfill),
        get("/b1", Lane::Backfill),
        get("/r1", Lane::Retry),
        get("/b2", Lane::Backfill),
        get("/l1", Lane::Live),
    );
    assert_eq!(world.sent(), ["/first", "/l1", "/r1", "/b1", "/b2"]);
}

#[tokio::test(start_paused = true)]
async fn time_alone_hands_out_permits_at_the_rate() {
    let world = world(Rate::Limited { start: 10.0, max: 10.0 }, 100, []);
    let all = futures_util::future::join_all((0..21).map(|_| world.get("/", Lane::Backfill)));
    let (seconds, answers) = world.seconds_of(all).await;
    assert!(answers.iter().all(Result::is_ok));
    assert!((2.0..2.2).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn giving_up_while_waiting_costs_nobody_a_permit() {
    let world = unlimited(1);
    let mut first = Box::pin(world.get("/1", Lane::Backfill));
    let mut second = Box::pin(world.get("/2", Lane::Backfill));
    let third = world.get("/3", Lane::Backfill);
    assert!(poll!(first.as_mut()).is_pending());
    assert!(poll!(second.as_mut()).is_pending());
    drop(second);
    assert_eq!(world.gateway.snapshot().waiting, [0; 3]);
    let (first, third) = tokio::join!(first, third);
    assert!(first.is_ok() && third.is_ok());
    assert_eq!(world.sent(), ["/1", "/3"]);
}

#[tokio::test(start_paused = true)]
async fn a_permit_that_arrives_at_somebody_who_leaves_goes_to_the_next() {
    let world = unlimited(1);
    let mut second = Box::pin(world.get("/2", Lane::Backfill));
    let mut third = Box::pin(world.get("/3", Lane::Backfill));
    let mut first = Box::pin(world.get("/1", Lane::Backfill));
    for future in [&mut first, &mut second, &mut third] {
        assert!(poll!(future.as_mut()).is_pending());
    }
    first.await.unwrap();
    assert_eq!(world.gateway.snapshot().in_flight, 1, "the permit is on its way to the second");
    drop(second);
    third.await.unwrap();
    assert_eq!(world.sent(), ["/1", "/3"]);
    assert_eq!(world.gateway.snapshot().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_left_gives_back_what_it_did_not_use() {
    let world = unlimited(3);
    let mut line = world.line(5);
    let used = line.next().await.unwrap();
    assert_eq!(world.places(), (3, 2), "two more have come and are not taken");
    drop(line);
    assert_eq!(world.places(), (1, 0));
    drop(used);
    assert_eq!(world.places(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn whoever_is_more_urgent_comes_between_the_turns_of_a_line() {
    let world = unlimited(1);
    let mut line = world.line(2);
    let first = line.next().await.unwrap();
    let mut live = Box::pin(world.get("/live", Lane::Live));
    assert!(poll!(live.as_mut()).is_pending());
    drop(first);
    assert!(line.next().now_or_never().is_none());
    live.await.unwrap();
    assert!(line.next().now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_told_to_whoever_stands_in_a_line() {
    let world = unlimited(2);
    let mut line = world.line(4);
    let under_way = [line.next().await, line.next().await];
    let (told, ()) = tokio::join!(line.next(), async { world.gateway.stop() });
    assert!(told.is_err() && under_way.iter().all(Result::is_ok));
    assert_eq!(world.places(), (2, 0));
    assert!(world.line(1).next().await.is_err(), "nothing comes after a stop");
    assert_eq!(world.places(), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_given_up_under_way_frees_its_place() {
    let world = unlimited(1);
    let mut first = Box::pin(world.get("/1", Lane::Backfill));
    assert!(poll!(first.as_mut()).is_pending());
    drop(first);
    world.get("/2", Lane::Backfill).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_the_waiting_but_not_what_is_under_way() {
    let world = unlimited(1);
    let (first, second, ()) =
        tokio::join!(world.get("/1", Lane::Live), world.seconds_of(world.get("/2", Lane::Live)), async {
            world.gateway.stop();
        });
    assert_eq!(first.unwrap().status, 200);
    assert_eq!(second, (0.0, Err(GatewayError::Stopped(Stopped))));
    assert_eq!(world.get("/3", Lane::Live).await, Err(GatewayError::Stopped(Stopped)));
    assert_eq!(world.gateway.get_probe(Request::get("/4")).await, Err(GatewayError::Stopped(Stopped)));
    world.gateway.drive().await;
    assert_eq!(world.sent(), ["/1"]);
}

#[tokio::test(start_paused = true)]
async fn a_throttled_request_does_not_outlive_the_stop() {
    let world = world(Rate::Unlimited, 1, [Ok(answer(429, Some("99999999999999999999")))]);
    let (answer, ()) = tokio::join!(world.get("/1", Lane::Live), async {
        tokio::time::sleep(Duration::from_secs(24 * 3600 - 1)).await;
        assert!(matches!(world.gateway.snapshot().gate, GateState::Closed { reason: PauseReason::RetryAfter, .. }));
        world.gateway.stop();
    });
    assert_eq!(answer, Err(GatewayError::Stopped(Stopped)));
    world.driver.await.expect("no wait is too long for the driver");
}

#[tokio::test(start_paused = true)]
async fn a_probe_passes_an_outage_but_not_a_wish_of_the_source() {
    let world = world(Rate::Unlimited, 4, [Ok(answer(200, None)), Ok(answer(429, Some("20")))]);
    let hour = world.now() + Duration::from_secs(3600);
    world.gateway.pause(hour, PauseReason::Outage);
    let mut waiting = pin!(world.get("/waiting", Lane::Live));
    assert!(poll!(waiting.as_mut()).is_pending());
    let probe = || world.seconds_of(world.gateway.get_probe(Request::get("/probe")));
    assert!(probe().await.0 < 0.2);
    // The second one meets the 429, waits as long as it says, and asks again.
    let (seconds, answer) = probe().await;
    assert_eq!(answer.unwrap().status, 200);
    assert!((20.0..20.4).contains(&seconds), "{seconds}");
    world.gateway.resume();
    assert!(world.seconds_of(waiting).await.0 < 1.2);
    assert_eq!(world.sent(), ["/probe", "/probe", "/probe", "/waiting"]);
}

#[tokio::test(start_paused = true)]
async fn a_longer_outage_does_not_hide_a_retry_after_from_the_probe() {
    let world = world(Rate::Unlimited, 4, [Ok(answer(429, Some("20")))]);
    let mut throttled = pin!(world.get("/1", Lane::Live));
    assert!(poll!(throttled.as_mut()).is_pending());
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(poll!(throttled.as_mut()).is_pending());
    world.gateway.pause(world.now() + Duration::from_secs(3600), PauseReason::Outage);
    let (seconds, _) = world.seconds_of(world.gateway.get_probe(Request::get("/probe"))).await;
    assert!((19.5..21.5).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn a_feed_needs_no_permit_but_is_not_opened_while_the_source_wants_none() {
    let answers = [Ok(answer(200, None)), Ok(answer(429, Some("20"))), Ok(answer(200, None))];
    let world = world(Rate::Unlimited, 1, answers);
    let mut busy = pin!(world.get("/busy", Lane::Live));
    assert!(poll!(busy.as_mut()).is_pending());
    world.gateway.pause(world.now() + Duration::from_secs(3600), PauseReason::Outage);
    let open =
        || world.seconds_of(async { world.gateway.open(Request::get("/feed")).await.map(|opened| opened.status) });
    let (seconds, refused) = open().await;
    let GatewayError::Failed(refused) = refused.unwrap_err() else { panic!("not stopped") };
    assert_eq!((refused.kind, refused.retry_after), (FailureKind::Throttled, Some(Duration::from_secs(20))));
    assert!(seconds < 0.2, "{seconds}");
    let (seconds, opened) = open().await;
    assert_eq!(opened.unwrap(), 200);
    assert!((19.5..20.5).contains(&seconds), "{seconds}");
    world.gateway.stop();
    assert_eq!(open().await.1, Err(GatewayError::Stopped(Stopped)));
    assert_eq!(world.sent(), ["/busy", "/feed", "/feed"]);
    let expected = Answers { served: 1, throttled: 1, ..Answers::default() };
    assert_eq!(world.gateway.meter().aside, expected);
}

#[tokio::test(start_paused = true)]
async fn the_meter_counts_every_request_once() {
    let broken = Failure::new(FailureKind::Broken, "broken");
    let answers = [Ok(answer(304, None)), Ok(answer(429, Some("30"))), Ok(answer(404, None)), Err(broken)];
    let world = world(Rate::Unlimited, 4, answers.into_iter().chain([Ok(answer(500, None))]));
    world.get("/live", Lane::Live).await.unwrap();
    world.get("/waits", Lane::Backfill).await.unwrap();
    world.get("/fails", Lane::Retry).await.unwrap_err();
    world.get("/fails", Lane::Retry).await.unwrap();
    world.gateway.get_probe(Request::get("/probe")).await.unwrap();
    let mut given_up = Box::pin(world.get("/given-up", Lane::Backfill));
    assert!(poll!(given_up.as_mut()).is_pending());
    assert_eq!(world.gateway.meter().throttle.in_flight, 1);
    drop(given_up);

    let meter = world.gateway.meter();
    let none = Answers::default();
    assert_eq!(meter.lanes[Lane::Live.index()], Answers { not_modified: 1, ..none });
    assert_eq!(meter.lanes[Lane::Backfill.index()], Answers { served: 1, throttled: 1, ..none });
    assert_eq!(meter.lanes[Lane::Retry.index()], Answers { failed: 2, ..none });
    assert_eq!(meter.aside, Answers { served: 1, ..none });
    assert_eq!(meter.traffic, Traffic { requests: 7, throttled: 1, bytes: 20 });
    assert_eq!(meter.traffic, world.gateway.traffic());
    let class = LATENCY_BOUNDS.iter().position(|bound| *bound == Duration::from_millis(100)).unwrap();
    assert_eq!((meter.latency.counts[class], meter.latency.counts.iter().sum()), (3, 3_u64));
    assert_eq!(meter.latency.sum, Duration::from_millis(300));
    let closed = meter.throttle.totals.closed;
    assert_eq!(closed.because(PauseReason::RetryAfter), Duration::from_secs(30));
    assert_eq!(closed.because(PauseReason::Outage), Duration::ZERO);
    assert_eq!((meter.throttle.in_flight, meter.throttle.rate, meter.throttle.waiting), (0, None, [0; 3]));
}

/// Many tasks that come, go and give up on real threads: at the end nothing is in flight, and nobody waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_permit_is_lost_among_threads() {
    struct Instantly(Semaphore);
    impl Transport for Instantly {
        fn send(&self, _: Request) -> BoxFuture<'_, Result<Response, Failure>> {
            Box::pin(async move {
                let _place = self.0.try_acquire().expect("never more in flight than allowed");
                tokio::task::yield_now().await;
                Ok(answer(200, None))
            })
        }
    }
    let settings = Settings::new(Rate::Unlimited, InFlight { start: 3, max: 3 });
    let clock = Clock::system();
    let transport = Arc::new(Instantly(Semaphore::new(3)));
    let gateway = Arc::new(Gateway::new(transport, settings, clock.clone(), Box::new(|| 0.0)));
    let tasks = (0..2_000_u64).map(|n| {
        let (gateway, call) = (gateway.clone(), Call::new(Lane::Backfill, Beat::new(clock.clone())));
        tokio::spawn(async move {
            let request = Request::get("/");
            let mut get = pin!(gateway.get(&request, &call, 1.0));
            for _ in 0..n % 4 {
                if poll!(get.as_mut()).is_ready() {
                    return;
                }
                tokio::task::yield_now().await;
            }
            if n % 2 == 0 {
                get.await.unwrap();
            }
        })
    });
    for done in futures_util::future::join_all(tasks).await {
        done.unwrap();
    }
    let snapshot = gateway.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.waiting), (0, [0; 3]));
}
