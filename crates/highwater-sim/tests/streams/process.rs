//! What a source sees that is given the simulator as its transport, on virtual time.

use std::{sync::Arc, time::Duration};

use highwater_core::{Failure, FailureKind, Timestamp};
use highwater_sim::{HnSim, MutationKind, Publicity, SimTransport, StreamOrder};
use highwater_sources::{Clock, OpenResponse, Request, Transport};
use http::{HeaderValue, header};

use super::{Heard, sim};

fn transport(sim: &Arc<HnSim>) -> (SimTransport, Clock) {
    let clock = Clock::simulated(Timestamp::EPOCH);
    (SimTransport::new(Arc::clone(sim), clock.clone(), Duration::ZERO), clock)
}

fn stream(node: &str) -> Request {
    let mut request = Request::get(format!("/v0/{node}.json"));
    request.headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
    request
}

struct Listener {
    response: OpenResponse,
    heard: Heard,
}

impl Listener {
    async fn open(transport: &SimTransport, node: &str) -> Self {
        let response = transport.open(stream(node)).await.unwrap();
        assert_eq!(
            (response.status.as_u16(), &response.headers["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        Listener { response, heard: Heard::default() }
    }

    async fn until(&mut self, frames: usize) {
        while self.heard.frames() < frames {
            let piece = self.response.chunks.next().await.unwrap().expect("the stream goes on");
            self.heard.add(&piece);
        }
    }

    async fn end(&mut self) -> Result<(), Failure> {
        while let Some(piece) = self.response.chunks.next().await? {
            self.heard.add(&piece);
        }
        Ok(())
    }
}

/// The same as over sockets, by methods instead of pages.
pub(super) async fn session(plan: &str, order: &str) -> [String; 2] {
    let sim = sim(plan);
    let (transport, clock) = transport(&sim);
    let now = || clock.moment().since_start();
    let mut updates = Listener::open(&transport, "updates").await;
    let mut maxitem = Listener::open(&transport, "maxitem").await;
    updates.until(1).await;
    maxitem.until(1).await;
    for nth in 0..5 {
        sim.mutate(1_500 - nth, None, Publicity::Published, now()).unwrap();
        sim.burst(3, now());
        sim.grow(7, now());
    }
    updates.until(11).await;
    maxitem.until(6).await;
    sim.order(order.parse().unwrap(), now());
    drop((updates.end().await, maxitem.end().await));
    [updates, maxitem].map(|listener| listener.heard.text().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_hand_wakes_a_stream_at_once_and_keep_alives_come_in_time() {
    let sim = sim("");
    let (transport, clock) = transport(&sim);
    let now = || clock.moment().since_start();
    let mut listener = Listener::open(&transport, "updates").await;
    listener.until(2).await;
    assert_eq!(now(), Duration::from_secs(30), "the first keep-alive");
    let hand = async {
        clock.sleep(Duration::from_secs(7)).await;
        sim.mutate(1_999, Some(MutationKind::Dead), Publicity::Published, now()).unwrap();
    };
    tokio::join!(hand, listener.until(3));
    assert_eq!(now(), Duration::from_secs(37));
    assert!(listener.heard.text().ends_with("event: put\ndata: {\"path\":\"/\",\"data\":{\"items\":[1999]}}\n\n"));
}

#[tokio::test(start_paused = true)]
async fn a_piece_that_was_not_waited_for_is_not_lost() {
    let sim = sim("mutations.every_ms = 400");
    let (transport, clock) = transport(&sim);
    let mut listener = Listener::open(&transport, "updates").await;
    while listener.heard.frames() < 12 {
        let next = listener.response.chunks.next();
        if let Ok(piece) = tokio::time::timeout(Duration::from_millis(90), next).await {
            listener.heard.add(&piece.unwrap().unwrap());
        }
    }
    let mut patient = Listener::open(&transport_of_the_same_seed(&clock), "updates").await;
    patient.until(12).await;
    assert_eq!(listener.heard.text(), patient.heard.text());
}

fn transport_of_the_same_seed(clock: &Clock) -> SimTransport {
    let started = Clock::simulated(clock.now());
    SimTransport::new(sim("mutations.every_ms = 400"), started, Duration::ZERO)
}

#[tokio::test(start_paused = true)]
async fn refusals_redirects_and_breaks_are_as_over_sockets() {
    let sim = sim("stream = { status_first = [503], redirect = 'port', cut_after_events = 1 }");
    let (transport, clock) = transport(&sim);
    let refused = transport.open(stream("updates")).await.unwrap();
    assert_eq!(refused.status, 503);
    let mut listener = Listener::open(&transport, "updates").await;
    listener.until(1).await;
    sim.mutate(5, None, Publicity::Published, clock.moment().since_start()).unwrap();
    assert_eq!(listener.end().await.unwrap_err().kind, FailureKind::Broken);
    sim.go_down(Duration::from_secs(3_600));
    let Err(failure) = transport.open(stream("updates")).await else { panic!("it is down") };
    assert_eq!(failure.kind, FailureKind::Broken);
}

#[tokio::test(start_paused = true)]
async fn an_order_ends_a_silent_stream() {
    let sim = sim("");
    let (transport, clock) = transport(&sim);
    let mut listener = Listener::open(&transport, "updates").await;
    listener.until(1).await;
    sim.order(StreamOrder::Silence, clock.moment().since_start());
    let silent = tokio::time::timeout(Duration::from_secs(600), listener.until(2)).await;
    assert!(silent.is_err());
    sim.order(StreamOrder::Drop, clock.moment().since_start());
    listener.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn tags_pass_in_both_directions() {
    let sim = sim("");
    let (transport, _) = transport(&sim);
    let ask = async |name: &'static str, value: &HeaderValue| {
        let mut request = Request::get("/v0/item/7.json");
        request.headers.insert(name, value.clone());
        transport.send(request).await.unwrap()
    };
    let first = ask("x-firebase-etag", &HeaderValue::from_static("true")).await;
    let again = ask("if-none-match", &first.headers[header::ETAG]).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16(), again.body.len()), (200, 304, 0));
}
