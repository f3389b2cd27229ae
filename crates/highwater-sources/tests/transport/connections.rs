//! The pool: what is reused, what is not, and what is sent again.

use std::time::Duration;

use highwater_core::FailureKind;
use highwater_sources::{HttpTransport, PoolLimits, Request, Transport, TransportSettings};

use http::HeaderValue;

use crate::{
    get, get_failure,
    server::{Server, Step, ok},
    transport,
};

const PLAIN: HeaderValue = HeaderValue::from_static("text/plain");

#[tokio::test]
async fn one_connection_serves_one_request_after_the_other() {
    let server = Server::replying(ok("x")).await;
    let transport = transport(&format!("{}/base/", server.url));
    for _ in 0..5 {
        get(&transport, "/v0/maxitem.json?print=pretty").await.unwrap();
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 5));
    let seen = &server.requests()[4];
    assert_eq!(seen.path(), "/base/v0/maxitem.json?print=pretty");
    assert_eq!(seen.header("host").unwrap(), server.url.trim_start_matches("http://"));
    assert!(seen.header("user-agent").unwrap().starts_with("highwater/"));
}

#[tokio::test]
async fn a_body_is_sent_with_its_type_and_length_also_when_it_is_empty() {
    let server = Server::replying(ok("x")).await;
    let transport = transport(&server.url);
    for body in ["a=1&b=2", "", "last"] {
        assert_eq!(transport.send(Request::post("/write", PLAIN, body)).await.unwrap().body, "x");
        let seen = server.requests().pop().unwrap();
        assert!(seen.head.starts_with("POST /write "), "{}", seen.head);
        assert_eq!((seen.header("content-type"), seen.body.as_slice()), (Some("text/plain"), body.as_bytes()));
        assert_eq!(seen.header("content-length"), Some(body.len().to_string().as_str()));
    }
    get(&transport, "/").await.unwrap();
    assert_eq!(server.requests().pop().unwrap().header("content-length"), None);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_path_that_is_none_is_refused_before_it_is_sent() {
    let server = Server::replying(ok("x")).await;
    let transport = transport(&server.url);
    for path in ["", "v0", "/a b", "/secret\r\nX: y"] {
        assert_eq!(transport.send(Request::get(path)).await.unwrap_err().kind, FailureKind::Internal, "{path:?}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_request_that_meets_a_closed_idle_connection_is_sent_on_a_fresh_one() {
    let server = Server::start(|_| vec![Step::Send(ok("x")), Step::Close]).await;
    let transport = transport(&server.url);
    for _ in 0..3 {
        assert_eq!(get(&transport, "/").await.unwrap().body, "x");
    }
    assert_eq!((server.connections(), server.requests().len()), (3, 3));
}

#[tokio::test]
async fn a_request_that_dies_on_an_idle_connection_is_sent_once_more_and_not_again() {
    let dies = |step: fn() -> Step| {
        move |seen: &crate::server::Seen| match seen.number {
            0 | 2 => vec![Step::Send(ok("x"))],
            _ => vec![step()],
        }
    };
    for step in [(|| Step::Reset) as fn() -> Step, || Step::Close] {
        let server = Server::start(dies(step)).await;
        let transport = transport(&server.url);
        get(&transport, "/").await.unwrap();
        assert_eq!(get(&transport, "/").await.unwrap().body, "x");
        assert_eq!((server.connections(), server.requests().len()), (2, 3));
        assert_eq!(get_failure(&transport).await, FailureKind::Broken);
        assert_eq!((server.connections(), server.requests().len()), (3, 5));
    }
}

#[tokio::test]
async fn a_write_that_may_have_arrived_is_not_sent_twice() {
    let server = Server::start(|seen| match seen.number {
        0 => vec![Step::Send(ok("x"))],
        _ => vec![Step::Reset],
    })
    .await;
    let transport = transport(&server.url);
    get(&transport, "/").await.unwrap();
    let write = Request::post("/", PLAIN, "secret");
    assert_eq!(transport.send(write).await.unwrap_err().kind, FailureKind::Broken);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_connection_idle_for_too_long_is_not_used_again() {
    let server = Server::replying(ok("x")).await;
    let transport = transport(&server.url);
    for (wait, connections) in [(0, 1), (49, 1), (51, 2)] {
        tokio::time::advance(Duration::from_secs(wait)).await;
        get(&transport, "/").await.unwrap();
        assert_eq!(server.connections(), connections, "after {wait} s");
    }
}

#[tokio::test]
async fn only_so_many_connections_stay_idle() {
    let server = Server::replying(ok("x")).await;
    let pool = PoolLimits { idle_max: 2, ..PoolLimits::default() };
    let transport =
        HttpTransport::new(&server.url, TransportSettings { pool, ..TransportSettings::default() }).unwrap();
    for connections in [4, 6] {
        let four = futures_util::future::join_all((0..4).map(|_| get(&transport, "/"))).await;
        assert!(four.iter().all(Result::is_ok));
        assert_eq!(server.connections(), connections);
    }
}

#[tokio::test]
async fn after_shutdown_nothing_is_sent() {
    let server = Server::replying(ok("x")).await;
    let transport = transport(&server.url);
    get(&transport, "/").await.unwrap();
    transport.shutdown().await;
    assert_eq!(get_failure(&transport).await, FailureKind::Connect);
    assert_eq!(server.requests().len(), 1);
}
