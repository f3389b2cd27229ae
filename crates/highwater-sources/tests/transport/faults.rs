//! Answers that never come, break off, or are no answers.

use std::time::Duration;

use highwater_core::FailureKind;
use highwater_sources::TransportSettings;
use tokio::{net::TcpListener, time::Instant};

use crate::{
    get, get_failure,
    server::{Server, Step, ok},
    transport,
};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";

async fn failure_of(steps: impl Fn() -> Vec<Step> + Send + Sync + 'static) -> FailureKind {
    let server = Server::start(move |_| steps()).await;
    let kind = get_failure(&transport(&server.url)).await;
    assert_eq!(server.requests().len(), 1, "a request on a fresh connection is not repeated");
    kind
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_breaks_the_request() {
    assert_eq!(failure_of(|| vec![Step::Reset]).await, FailureKind::Broken);
    assert_eq!(failure_of(|| vec![Step::Close]).await, FailureKind::Broken);
    assert_eq!(failure_of(|| vec![Step::Send(b"HTTP/1.1 20".into()), Step::Close]).await, FailureKind::Broken);
    assert_eq!(failure_of(|| vec![Step::Send(HEAD.into()), Step::Reset]).await, FailureKind::Broken);
    let half = || vec![Step::Send([HEAD, b"secret"].concat()), Step::Close];
    assert_eq!(failure_of(half).await, FailureKind::Broken);
    let chunk = || {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nsecret\r\n";
        vec![Step::Send(head.into()), Step::Close]
    };
    assert_eq!(failure_of(chunk).await, FailureKind::Broken);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_http_is_malformed() {
    assert_eq!(failure_of(|| vec![Step::Send(b"220 secret ESMTP\r\n\r\n".into())]).await, FailureKind::Malformed);
}

#[tokio::test(start_paused = true)]
async fn every_wait_has_its_deadline() {
    for (steps, seconds) in [
        ((|| vec![Step::Hang]) as fn() -> Vec<Step>, 30),
        (|| vec![Step::Send(b"HTTP/1.1 200 OK\r\n".into()), Step::Hang], 30),
        (|| vec![Step::Send(HEAD.into()), Step::Hang], 60),
        (|| vec![Step::Send(HEAD.into()), Step::Drip], 60),
    ] {
        #[expect(clippy::disallowed_methods, reason = "virtual time is what this measures")]
        let start = Instant::now();
        assert_eq!(failure_of(steps).await, FailureKind::Timeout);
        assert_eq!(start.elapsed().as_secs(), seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_hangs_is_given_up_after_the_time_to_connect() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let roots = highwater_sources::Roots::Only(vec![crate::secure::Authority::new().root()]);
    let settings = TransportSettings { roots, ..TransportSettings::default() };
    let transport = highwater_sources::HttpTransport::new(&url, settings).unwrap();
    #[expect(clippy::disallowed_methods, reason = "virtual time is what this measures")]
    let start = Instant::now();
    let (first, second) = tokio::join!(get_failure(&transport), get_failure(&transport));
    assert_eq!((first, second), (FailureKind::Timeout, FailureKind::Timeout));
    assert_eq!(start.elapsed().as_secs(), Duration::from_secs(10).as_secs());
}

#[tokio::test]
async fn where_nobody_listens_there_is_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(get_failure(&transport(&url)).await, FailureKind::Connect);
    assert_eq!(get_failure(&transport("http://no-such-host.invalid")).await, FailureKind::Connect);
}

#[tokio::test(start_paused = true)]
async fn a_request_to_wait_is_heard_whatever_becomes_of_its_page() {
    let head = |rest: &str| format!("HTTP/1.1 429 Slow Down\r\nRetry-After: 60\r\n{rest}\r\n").into_bytes();
    let long = head("Content-Length: 100\r\n");
    let pages: [fn(Vec<u8>) -> Vec<Step>; 5] = [
        |head| vec![Step::Send(head), Step::Close],
        |head| vec![Step::Send(head), Step::Reset],
        |head| vec![Step::Send(head), Step::Hang],
        |head| vec![Step::Send(head), Step::Drip],
        |head| vec![Step::Send([head, vec![b'x'; 100]].concat())],
    ];
    let odd = ["Content-Length: 100\r\nContent-Encoding: br\r\n", "Content-Length: 99999999\r\n"].map(head);
    let odd = odd.map(|head| vec![vec![Step::Send(head.clone()), Step::Hang], vec![Step::Send(head), Step::Close]]);
    for steps in pages.map(|page| page(long.clone())).into_iter().chain(odd.into_iter().flatten()) {
        let steps = std::sync::Mutex::new(Some(steps));
        let server = Server::start(move |_| steps.lock().unwrap().take().unwrap_or(vec![Step::Send(ok("fine"))])).await;
        let transport = transport(&server.url);
        let answer = get(&transport, "/").await.unwrap();
        assert_eq!((answer.status.as_u16(), &answer.headers["retry-after"]), (429, "60".parse().as_ref().unwrap()));
        assert!(matches!(answer.body.len(), 0 | 100), "a page is whole or none");
        assert_eq!(get(&transport, "/").await.unwrap().body, "fine");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_request_does_not_spoil_the_next() {
    let server = Server::start(|seen| match seen.number {
        0 => vec![Step::Send(HEAD.into()), Step::Reset],
        1 => vec![Step::Send(HEAD.into()), Step::Hang],
        _ => vec![Step::Send(ok("fine"))],
    })
    .await;
    let transport = transport(&server.url);
    assert_eq!(get_failure(&transport).await, FailureKind::Broken);
    assert_eq!(get_failure(&transport).await, FailureKind::Timeout);
    assert_eq!(crate::get(&transport, "/").await.unwrap().body, "fine");
    assert_eq!(server.connections(), 3);
}
