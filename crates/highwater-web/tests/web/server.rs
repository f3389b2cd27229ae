//! The server over real sockets.

use std::{net::SocketAddr, sync::Arc};

use futures_util::future::BoxFuture;
use highwater_web::{AccessRules, ServeError, ServiceView, Token, Views, serve};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    exposition,
    sample::{secs, service},
};

struct Fixed(ServiceView);

impl Views for Fixed {
    fn view(&self) -> BoxFuture<'_, Arc<ServiceView>> {
        Box::pin(async { Arc::new(self.0.clone()) })
    }
}

/// Tells when it is asked, and never answers.
#[derive(Clone, Default)]
struct Silent {
    asked: Arc<Notify>,
}

impl Views for Silent {
    fn view(&self) -> BoxFuture<'_, Arc<ServiceView>> {
        self.asked.notify_one();
        Box::pin(std::future::pending())
    }
}

struct Server {
    address: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), ServeError>>,
}

impl Server {
    async fn start(rules: AccessRules, views: impl Views + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(serve(listener, rules, Arc::new(views), shutdown.clone()));
        Server { address, shutdown, task }
    }

    async fn open(view: ServiceView) -> Self {
        Server::start(AccessRules::default(), Fixed(view)).await
    }

    /// Sends the lines as one request and reads until the end.
    async fn say(&self, lines: &[&str]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = lines.iter().map(|line| format!("{line}\r\n")).collect::<String>() + "\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn get(&self, path: &str, more: &[&str]) -> String {
        let first = format!("GET {path} HTTP/1.1");
        let fixed = [first.as_str(), "Host: localhost", "Connection: close"];
        self.say(&[&fixed, more].concat()).await
    }

    async fn finish(self) {
        self.shutdown.cancel();
        self.task.await.unwrap().unwrap();
    }
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer:?}"))
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

fn json(answer: &str) -> serde_json::Value {
    serde_json::from_str(body(answer)).unwrap()
}

#[tokio::test]
async fn every_page_answers_and_says_what_it_is() {
    let server = Server::open(service()).await;
    let metrics = server.get("/metrics", &[]).await;
    assert!(metrics.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{metrics}");
    exposition::parse(body(&metrics)).unwrap();
    for header in ["content-security-policy: default-src 'none'", "x-content-type-options: nosniff"] {
        assert!(metrics.contains(header), "{header}");
    }
    assert!(!metrics.contains("access-control-"));
    assert_eq!(json(&server.get("/healthz", &[]).await), serde_json::json!({ "status": "ok" }));
    let ready = server.get("/readyz?verbose", &[]).await;
    assert_eq!((status(&ready), json(&ready)["ready"].as_bool()), (200, Some(true)));
    let shown = json(&server.get("/api/status", &[]).await);
    assert_eq!(shown["sources"][1]["live"]["last_event_age_seconds"], 10.0);
    assert_eq!(shown["alerts"][0]["condition"], "listener_down");
    assert!(body(&server.get("/", &[]).await).contains("/metrics"));
    assert_eq!(status(&server.get("/nothing", &[]).await), 404);
    server.finish().await;
}

#[tokio::test]
async fn who_is_not_ready_says_why() {
    let mut view = service();
    view.sources[0].live.as_mut().unwrap().connected = false;
    view.dead_loops.push("rescan".into());
    let server = Server::open(view).await;
    let ready = server.get("/readyz", &[]).await;
    assert_eq!(status(&ready), 503);
    let reasons = serde_json::json!([{ "source": "hn", "reason": "the feed is not connected" }]);
    assert_eq!(json(&ready)["reasons"], reasons);
    let health = server.get("/healthz", &[]).await;
    assert_eq!((status(&health), &json(&health)["dead_loops"][0]), (503, &"rescan".into()));
    server.finish().await;
}

#[tokio::test]
async fn another_host_and_another_method_are_turned_away() {
    let server = Server::open(service()).await;
    for path in ["/metrics", "/healthz", "/api/status", "/"] {
        let first = format!("GET {path} HTTP/1.1");
        assert_eq!(status(&server.say(&[&first, "Host: evil.example", "Connection: close"]).await), 421, "{path}");
        assert_eq!(status(&server.say(&[&first, "Connection: close"]).await), 400, "{path}");
        let first = format!("POST {path} HTTP/1.1");
        let post = server.say(&[&first, "Host: localhost", "Content-Length: 0", "Connection: close"]).await;
        assert_eq!(status(&post), 405, "{path}");
        assert!(post.contains("allow: GET, HEAD\r\n"));
    }
    let head = server.say(&["HEAD /metrics HTTP/1.1", "Host: [::1]:99", "Connection: close"]).await;
    assert_eq!((status(&head), body(&head)), (200, ""));
    server.finish().await;
}

#[tokio::test]
async fn a_token_opens_everything_but_the_one_word_of_health() {
    let rules = AccessRules { token: Some(Token::new("S3CRET").unwrap()), ..AccessRules::default() };
    let server = Server::start(rules, Fixed(service())).await;
    for path in ["/", "/metrics", "/readyz", "/api/status", "/nothing", "/metrics?token=S3CRET"] {
        let answer = server.get(path, &[]).await;
        assert_eq!(status(&answer), 401, "{path}");
        assert!(answer.contains("www-authenticate: Bearer\r\n"));
        assert_eq!(status(&server.get(path, &["Authorization: Bearer S3CRETS"]).await), 401, "{path}");
    }
    assert_eq!(status(&server.get("/healthz", &[]).await), 200);
    let answer = server.get("/metrics", &["Authorization: Bearer S3CRET"]).await;
    assert_eq!(status(&answer), 200);
    assert!(!answer.contains("S3CRET"));
    server.finish().await;
}

#[tokio::test]
async fn an_open_address_without_a_token_is_not_served() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let over = CancellationToken::new();
    over.cancel();
    let refused = serve(listener, AccessRules::default(), Arc::new(Fixed(service())), over).await;
    assert!(matches!(refused, Err(ServeError::Access(_))), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_does_not_say_how_it_is_is_not_healthy() {
    let server = Server::start(AccessRules::default(), Silent::default()).await;
    assert_eq!(status(&server.get("/healthz", &[]).await), 503);
    server.finish().await;
}

#[tokio::test]
async fn a_head_too_large_is_refused() {
    let server = Server::open(service()).await;
    let large = format!("X-Large: {}", "x".repeat(32 << 10));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{large}\r\n\r\n");
    // The server may hang up before it has read all.
    stream.write_all(request.as_bytes()).await.ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok();
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&answer));
    server.finish().await;
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_is_hung_up_on() {
    let server = Server::open(service()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: loc").await.unwrap();
    let mut answer = String::new();
    timeout(secs(20), stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(!answer.contains("200 OK"), "{answer}");
    server.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_for_idle_connections() {
    let server = Server::open(service()).await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    idle.read_u8().await.unwrap();
    timeout(secs(1), server.finish()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_long_for_an_answer() {
    let views = Silent::default();
    let server = Server::start(AccessRules::default(), views.clone()).await;
    let mut busy = TcpStream::connect(server.address).await.unwrap();
    busy.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    views.asked.notified().await;
    timeout(secs(6), server.finish()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn connections_beyond_the_bound_wait_for_a_place() {
    let server = Server::open(service()).await;
    let mut idle = Vec::new();
    for _ in 0..64 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        // One byte of the answer: the connection has its place.
        stream.read_u8().await.unwrap();
        idle.push(stream);
    }
    let mut next = Box::pin(server.get("/", &[]));
    assert!(timeout(secs(1), &mut next).await.is_err(), "there is no place for it");
    idle.pop();
    let answer = timeout(secs(1), next).await;
    assert_eq!(status(&answer.unwrap()), 200);
    server.finish().await;
}
