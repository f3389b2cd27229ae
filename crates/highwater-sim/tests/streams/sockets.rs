//! What a client's HTTP library sees.

use std::{future::Future, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use highwater_sim::{HnSim, server};
use http_body_util::{BodyExt, Empty};
use hyper::{
    Request, Response,
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{Heard, PATIENCE, sim};

/// Runs `client` against a server that must end by itself afterwards, whatever the client left open.
async fn with_server<F: Future<Output = ()>>(plan: &str, client: impl FnOnce(Arc<HnSim>, SocketAddr) -> F) {
    let sim = sim(plan);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(server::serve(listener, Arc::clone(&sim), shutdown.clone()));
    tokio::time::timeout(PATIENCE, client(sim, address)).await.expect("the server answers");
    shutdown.cancel();
    serving.await.unwrap().unwrap();
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Version {
    Http1,
    Http2,
}

fn request(target: &str, headers: &[(&str, &str)]) -> Request<Empty<Bytes>> {
    let builder = headers.iter().fold(Request::get(target), |builder, (name, value)| builder.header(*name, *value));
    builder.body(Empty::new()).unwrap()
}

async fn get(
    version: Version,
    address: SocketAddr,
    target: &str,
    headers: &[(&str, &str)],
) -> hyper::Result<Response<Incoming>> {
    let io = TokioIo::new(TcpStream::connect(address).await.unwrap());
    match version {
        Version::Http1 => {
            let (mut sender, connection) = http1::handshake(io).await?;
            tokio::spawn(connection);
            sender.send_request(request(target, &[headers, &[("host", "sim")]].concat())).await
        }
        Version::Http2 => {
            let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
            tokio::spawn(connection);
            sender.send_request(request(&format!("http://sim{target}"), headers)).await
        }
    }
}

async fn page(address: SocketAddr, target: &str) -> Value {
    let response = get(Version::Http1, address, target, &[]).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

const STREAM: &[(&str, &str)] = &[("accept", "text/event-stream")];

struct Listener {
    body: Incoming,
    heard: Heard,
}

impl Listener {
    async fn open(version: Version, address: SocketAddr, node: &str) -> Self {
        let response = get(version, address, &format!("/v0/{node}.json"), STREAM).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        Listener { body: response.into_body(), heard: Heard::default() }
    }

    /// Reads until so many frames have come in all.
    async fn until(&mut self, frames: usize) {
        while self.heard.frames() < frames {
            let frame = self.body.frame().await.expect("the stream goes on").unwrap();
            self.heard.add(&frame.into_data().unwrap());
        }
    }

    /// Reads on to the end, and says whether that was a clean one.
    async fn end(&mut self) -> bool {
        loop {
            match self.body.frame().await {
                None => return true,
                Some(Err(_)) => return false,
                Some(Ok(frame)) => self.heard.add(&frame.into_data().unwrap()),
            }
        }
    }
}

/// Opens both feeds, has things happen by hand, and ends the streams with `order`.
async fn session(version: Version, plan: &str, order: &str, ends_cleanly: bool) -> [String; 2] {
    let mut heard = Default::default();
    with_server(plan, async |sim, address| {
        let mut updates = Listener::open(version, address, "updates").await;
        let mut maxitem = Listener::open(version, address, "maxitem").await;
        updates.until(1).await;
        maxitem.until(1).await;
        for nth in 0..5 {
            page(address, &format!("/_sim/mutate?id={}", 1_500 - nth)).await;
            page(address, "/_sim/burst?count=3").await;
            page(address, "/_sim/grow?by=7").await;
        }
        updates.until(11).await;
        maxitem.until(6).await;
        assert_eq!(sim.stats().report().streams_open, 2);
        page(address, &format!("/_sim/stream?do={order}")).await;
        assert_eq!([updates.end().await, maxitem.end().await], [ends_cleanly; 2], "{version:?} {order}");
        heard = [updates, maxitem].map(|listener| listener.heard.text().to_owned());
    })
    .await;
    heard
}

const RESERVE: &str = "head = { behind = 100, every_ms = 4000000000 }\n";

#[tokio::test]
async fn both_versions_and_the_process_hear_the_same() {
    for (order, ends_cleanly) in [("drop", true), ("cut", false), ("cancel", true), ("auth_revoked", true)] {
        let plan = format!("{RESERVE}[stream]\nsplit = 5");
        let one = session(Version::Http1, &plan, order, ends_cleanly).await;
        let two = session(Version::Http2, &plan, order, ends_cleanly).await;
        assert_eq!(one, super::process::session(&plan, order).await, "{order}");
        assert_eq!(one, two, "{order}");
    }
}

#[tokio::test]
async fn a_silent_stream_opens_and_speaks_when_it_may() {
    with_server("", async |sim, address| {
        page(address, "/_sim/stream?do=silence").await;
        let mut listener = Listener::open(Version::Http1, address, "updates").await;
        page(address, "/_sim/mutate?id=9").await;
        assert_eq!(sim.stats().report().stream_events, 0);
        page(address, "/_sim/stream?do=restore").await;
        listener.until(2).await;
        assert!(listener.heard.text().contains("{\"items\":[9]}"), "{:?}", listener.heard);
    })
    .await;
}

#[tokio::test]
async fn a_redirect_leads_to_another_port_and_only_streams_take_it() {
    with_server("stream.redirect = 'port'", async |sim, address| {
        let ordinary = get(Version::Http1, address, "/v0/maxitem.json", &[]).await.unwrap();
        assert_eq!(ordinary.status(), 200);
        for version in [Version::Http1, Version::Http2] {
            let moved = get(version, address, "/v0/maxitem.json?ns=x", STREAM).await.unwrap();
            assert_eq!(moved.status(), 307);
            let location = moved.headers()["location"].to_str().unwrap().to_owned();
            let (there, path) = location.strip_prefix("http://").unwrap().split_once('/').unwrap();
            assert_eq!(path, "v0/maxitem.json?ns=x");
            let there: SocketAddr = there.parse().unwrap();
            assert_ne!(there, address);
            Listener::open(version, there, "maxitem").await.until(1).await;
        }
        assert_eq!(sim.stats().report().by_status[&307], 2);
    })
    .await;
}

#[tokio::test]
async fn streams_that_nobody_hears_are_closed() {
    with_server("", async |sim, address| {
        for version in [Version::Http1, Version::Http2] {
            let listener = Listener::open(version, address, "updates").await;
            drop(listener);
            while sim.stats().report().streams_open > 0 {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(sim.stats().report().streams_opened, 2);
    })
    .await;
}

#[tokio::test]
async fn a_known_body_is_answered_304_without_a_body() {
    with_server("", async |sim, address| {
        for version in [Version::Http1, Version::Http2] {
            let first = get(version, address, "/v0/item/7.json", &[("x-firebase-etag", "true")]).await.unwrap();
            let tag = first.headers()["etag"].to_str().unwrap().to_owned();
            assert_eq!(tag.len(), 28);
            let again = get(version, address, "/v0/item/7.json", &[("if-none-match", &tag)]).await.unwrap();
            assert_eq!((again.status().as_u16(), again.headers()["etag"].to_str().unwrap()), (304, tag.as_str()));
            assert!(again.into_body().collect().await.unwrap().to_bytes().is_empty());
        }
        assert_eq!(sim.stats().report().not_modified, 2);
    })
    .await;
}

#[tokio::test]
async fn while_down_every_request_is_reset() {
    with_server("", async |_, address| {
        page(address, "/_sim/down?for_ms=3600000").await;
        for headers in [STREAM, &[]] {
            for version in [Version::Http1, Version::Http2] {
                assert!(get(version, address, "/v0/updates.json", headers).await.is_err(), "{version:?}");
            }
        }
        page(address, "/_sim/down?for_ms=0").await;
        assert!(page(address, "/v0/updates.json").await["items"].is_array());
    })
    .await;
}
