//! Answers that are read as they come: their pieces, their end, and where they are led.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::poll;
use highwater_core::FailureKind;
use highwater_sources::{Chunks, HttpTransport, OpenResponse, Request, Transport};
use http::header::AUTHORIZATION;
use hyper::{
    body::{Body, Frame},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc, oneshot},
    time::Instant,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    get,
    secure::{Authority, BOTH},
    server::{Server, Step, chunk_of, chunked, ok, redirect},
    transport,
};

async fn open(transport: &HttpTransport) -> OpenResponse {
    transport.open(Request::get("/secret")).await.unwrap()
}

async fn open_failure(transport: &HttpTransport) -> FailureKind {
    let failure = transport.open(Request::get("/secret")).await.map(|answer| answer.status).unwrap_err();
    assert!(!failure.message.contains("secret"), "{failure}");
    failure.kind
}

async fn next(chunks: &mut Box<dyn Chunks>) -> Result<Option<String>, FailureKind> {
    let chunk = chunks.next().await.map_err(|failure| failure.kind)?;
    Ok(chunk.map(|chunk| String::from_utf8(chunk.to_vec()).unwrap()))
}

fn some(text: &str) -> Result<Option<String>, FailureKind> {
    Ok(Some(text.into()))
}

#[tokio::test]
async fn pieces_are_told_as_they_come_and_then_the_end() {
    let word = Arc::new(Notify::new());
    let server = Server::start({
        let word = word.clone();
        move |_| {
            let rest = [chunk_of("second"), b"0\r\n\r\n".into()].concat();
            vec![Step::Send(chunked("first")), Step::Await(word.clone()), Step::Send(rest)]
        }
    })
    .await;
    let mut answer = open(&transport(&server.url)).await;
    assert_eq!((answer.status.as_u16(), &answer.headers["content-type"]), (200, &"text/event-stream".parse().unwrap()));
    assert_eq!(next(&mut answer.chunks).await, some("first"));
    // Nothing is lost by not waiting for it.
    assert!(poll!(pin!(answer.chunks.next())).is_pending());
    word.notify_one();
    assert_eq!(next(&mut answer.chunks).await, some("second"));
    assert_eq!(next(&mut answer.chunks).await, Ok(None));
    assert_eq!(next(&mut answer.chunks).await, Ok(None));
    assert_eq!(server.requests()[0].header("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn a_feed_that_is_cut_off_has_not_ended() {
    for step in [(|| Step::Close) as fn() -> Step, || Step::Reset] {
        let server = Server::start(move |_| vec![Step::Send(chunked("secret")), step()]).await;
        let mut answer = open(&transport(&server.url)).await;
        while let Ok(chunk) = next(&mut answer.chunks).await {
            assert_eq!(chunk.as_deref(), Some("secret"));
        }
        assert_eq!(next(&mut answer.chunks).await, Err(FailureKind::Broken), "also when asked again");
    }
}

#[tokio::test]
async fn a_feed_has_its_connection_to_itself_and_takes_it_along() {
    let server = Server::start(|seen| match seen.path() {
        "/secret" => vec![Step::Send(chunked("first"))],
        _ => vec![Step::Send(ok("x"))],
    })
    .await;
    let transport = transport(&server.url);
    get(&transport, "/").await.unwrap();
    let answer = open(&transport).await;
    get(&transport, "/").await.unwrap();
    assert_eq!(server.connections(), 2);
    drop(answer);
    server.closed().await;
    get(&transport, "/").await.unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_feed_is_led_to_another_host_without_credentials() {
    let owner = Server::replying(chunked("there")).await;
    let home = Server::replying(redirect(&format!("{}/owned?ns=hn", owner.url))).await;
    let mut request = Request::get("/v0/updates.json");
    request.headers.insert(AUTHORIZATION, "Bearer secret".parse().unwrap());
    let mut answer = transport(&home.url).open(request).await.unwrap();
    assert_eq!(next(&mut answer.chunks).await, some("there"));
    home.closed().await;
    let seen = &owner.requests()[0];
    assert_eq!((seen.path(), seen.header("authorization")), ("/owned?ns=hn", None));
    assert_eq!(home.requests()[0].header("authorization"), Some("Bearer secret"));
}

#[tokio::test]
async fn a_feed_is_led_on_five_times() {
    let countdown = |first: u32| {
        Server::start(move |seen| {
            let left = seen.path().trim_start_matches('/').parse().unwrap_or(first);
            vec![Step::Send(if left == 0 { chunked("there") } else { redirect(&format!("/{}", left - 1)) })]
        })
    };
    assert_eq!(next(&mut open(&transport(&countdown(5).await.url)).await.chunks).await, some("there"));
    assert_eq!(open_failure(&transport(&countdown(6).await.url)).await, FailureKind::Redirect);
}

#[tokio::test(start_paused = true)]
async fn a_feed_has_deadlines_until_it_begins_and_none_after() {
    let silent = Server::start(|_| vec![Step::Hang]).await;
    #[expect(clippy::disallowed_methods, reason = "virtual time is what this measures")]
    let start = Instant::now();
    assert_eq!(open_failure(&transport(&silent.url)).await, FailureKind::Timeout);
    assert_eq!(start.elapsed().as_secs(), 30);
    let feed = Server::start(|_| vec![Step::Send(chunked("first")), Step::Hang]).await;
    let mut answer = open(&transport(&feed.url)).await;
    assert_eq!(next(&mut answer.chunks).await, some("first"));
    let an_hour = tokio::time::timeout(Duration::from_secs(3600), answer.chunks.next()).await;
    assert!(an_hour.is_err());
}

#[tokio::test]
async fn shutdown_ends_feeds() {
    let server = Server::replying(chunked("first")).await;
    let transport = transport(&server.url);
    let mut answer = open(&transport).await;
    assert_eq!(next(&mut answer.chunks).await, some("first"));
    let (end, ()) = tokio::join!(next(&mut answer.chunks), transport.shutdown());
    assert_eq!(end, Err(FailureKind::Connect));
    assert_eq!(open_failure(&transport).await, FailureKind::Connect);
}

/// Says the version of HTTP, then what it is told to say.
struct SecureFeed {
    url: String,
    say: mpsc::UnboundedSender<&'static str>,
    /// Told when the connection has ended.
    closed: oneshot::Receiver<()>,
}

struct Said(mpsc::UnboundedReceiver<&'static str>);

impl Body for Said {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|said| said.map(|said| Ok(Frame::data(Bytes::from_static(said.as_bytes())))))
    }
}

impl SecureFeed {
    async fn start(authority: &Authority, alpn: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let acceptor = TlsAcceptor::from(Arc::new(authority.server_config("127.0.0.1", alpn)));
        let ((say, said), (end, closed)) = (mpsc::unbounded_channel(), oneshot::channel());
        let (first, said) = (say.clone(), std::sync::Mutex::new(Some(said)));
        tokio::spawn(async move {
            let (tcp, _) = listener.accept().await.unwrap();
            let tls = acceptor.accept(tcp).await.unwrap();
            let service = service_fn(|request: http::Request<hyper::body::Incoming>| {
                first.send(if request.version() == http::Version::HTTP_2 { "h2" } else { "h1" }).unwrap();
                let body = Said(said.lock().unwrap().take().unwrap());
                async { Ok::<_, Infallible>(http::Response::new(body)) }
            });
            auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(tls), service).await.ok();
            end.send(()).unwrap();
        });
        SecureFeed { url, say, closed }
    }
}

#[tokio::test]
async fn feeds_are_spoken_over_tls_in_the_best_protocol_there_is() {
    let authority = Authority::new();
    for (alpn, version) in [(BOTH, "h2"), (&["http/1.1"], "h1")] {
        let SecureFeed { url, say, closed } = SecureFeed::start(&authority, alpn).await;
        let transport = authority.transport(&url);
        let mut answer = open(&transport).await;
        assert_eq!(next(&mut answer.chunks).await, some(version));
        assert!(poll!(pin!(answer.chunks.next())).is_pending());
        say.send("second").unwrap();
        assert_eq!(next(&mut answer.chunks).await, some("second"));
        drop(answer);
        closed.await.unwrap();
        transport.shutdown().await;
    }
}

#[tokio::test]
async fn a_feed_is_led_from_plain_text_to_tls_but_not_back() {
    let authority = Authority::new();
    let SecureFeed { url, .. } = SecureFeed::start(&authority, BOTH).await;
    let home = Server::replying(redirect(&url)).await;
    let mut answer = open(&authority.transport(&home.url)).await;
    assert_eq!(next(&mut answer.chunks).await, some("h2"));

    let plain = Server::replying(chunked("secret")).await;
    let away = authority.redirecting(&plain.url).await;
    assert_eq!(open_failure(&authority.transport(&away)).await, FailureKind::Redirect);
    assert_eq!(plain.requests().len(), 0);
}
