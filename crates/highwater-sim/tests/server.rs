//! The simulator over real sockets: what a client's kernel and HTTP library see of each fault.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use highwater_sim::{FaultPlan, HnSim, Seed, World, server};
use http_body_util::{BodyExt, Empty};
use hyper::{Request, StatusCode, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

/// Only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs `client` against a server that must end by itself afterwards, whatever the client left open.
async fn with_server<F: Future<Output = ()>>(plan: &str, client: impl FnOnce(Arc<HnSim>, SocketAddr) -> F) {
    let sim = Arc::new(HnSim::new(World::generated(Seed(4), 2_000), FaultPlan::parse(plan).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(server::serve(listener, Arc::clone(&sim), shutdown.clone()));
    tokio::time::timeout(PATIENCE, client(sim, address)).await.expect("the server answers");
    shutdown.cancel();
    serving.await.unwrap().unwrap();
}

fn one(reply: &str) -> String {
    format!("[[script]]\nid = 1\nreplies = [\"{reply}\"]")
}

struct Client {
    stream: TcpStream,
    read: BytesMut,
}

struct Received {
    head: String,
    body: Vec<u8>,
}

impl Client {
    async fn connect(address: SocketAddr) -> Self {
        Client { stream: TcpStream::connect(address).await.unwrap(), read: BytesMut::new() }
    }

    async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, id: u64) {
        self.send(&get(id)).await;
    }

    /// One reply by its `Content-Length`.
    async fn reply(&mut self) -> io::Result<Received> {
        let end = loop {
            match self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => self.fill().await?,
            }
        };
        let head = String::from_utf8(self.read.split_to(end).to_vec()).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap().parse().unwrap();
        while self.read.len() < length {
            self.fill().await?;
        }
        Ok(Received { head, body: self.read.split_to(length).to_vec() })
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn item(&mut self, id: u64) -> Vec<u8> {
        self.ask(id).await;
        self.reply().await.unwrap().body
    }
}

fn get(id: u64) -> String {
    format!("GET /v0/item/{id}.json HTTP/1.1\r\nHost: sim\r\n\r\n")
}

#[tokio::test]
async fn requests_share_a_connection_one_by_one_and_in_a_pipeline() {
    with_server("", async |sim, address| {
        let mut client = Client::connect(address).await;
        for id in 1..=5 {
            assert_eq!(client.item(id).await, sim.world().item(id).unwrap());
        }
        let pipeline: String = (1..=300).map(get).collect();
        let (head, tail) = pipeline.split_at(pipeline.len() - 7);
        client.send(head).await;
        for id in 1..300 {
            assert_eq!(client.reply().await.unwrap().body, sim.world().item(id).unwrap());
        }
        client.send(tail).await;
        assert_eq!(client.reply().await.unwrap().body, sim.world().item(300).unwrap());
        let report = sim.stats().report();
        assert_eq!([report.connections, report.connections_peak, report.requests], [1, 1, 305]);
    })
    .await;
}

#[tokio::test]
async fn close_and_bad_requests_end_the_connection() {
    with_server("", async |_, address| {
        for (request, status) in [
            ("GET /v0/maxitem.json HTTP/1.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 OK"),
            ("POST /v0/maxitem.json HTTP/1.1\r\n\r\n", "HTTP/1.1 405 Method Not Allowed"),
            ("rubbish\r\n\r\n", "HTTP/1.1 400 Bad Request"),
        ] {
            let mut client = Client::connect(address).await;
            client.send(request).await;
            let head = client.reply().await.unwrap().head;
            assert!(head.starts_with(status) && head.contains("\r\nConnection: close\r\n"), "{head}");
            assert_eq!(client.fill().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
    })
    .await;
}

#[tokio::test]
async fn a_reset_is_a_real_one() {
    with_server(&one("reset"), async |sim, address| {
        let mut client = Client::connect(address).await;
        client.ask(1).await;
        assert_eq!(client.fill().await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        assert!(client.read.is_empty());
        assert_eq!(Client::connect(address).await.item(1).await, sim.world().item(1).unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_reset_within_the_body_comes_after_half_of_it() {
    with_server(&one("reset-body"), async |sim, address| {
        let mut client = Client::connect(address).await;
        client.ask(1).await;
        let Err(error) = client.reply().await else { panic!("the body is not complete") };
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let body = sim.world().item(1).unwrap();
        assert_eq!(client.read[..], body[..body.len() / 2]);
    })
    .await;
}

#[tokio::test]
async fn a_truncated_body_ends_before_its_length() {
    with_server(&one("truncated"), async |sim, address| {
        let mut client = Client::connect(address).await;
        client.ask(1).await;
        let Err(error) = client.reply().await else { panic!("the body is not complete") };
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        let body = sim.world().item(1).unwrap();
        assert_eq!(client.read[..], body[..body.len() / 2]);
    })
    .await;
}

#[tokio::test]
async fn cut_json_is_intact_http() {
    with_server(&one("cut-json"), async |sim, address| {
        let mut client = Client::connect(address).await;
        let body = sim.world().item(1).unwrap();
        assert_eq!(client.item(1).await, body[..body.len() / 2]);
        assert_eq!(client.item(1).await, body);
    })
    .await;
}

#[tokio::test]
async fn a_slow_body_arrives_whole_and_a_delay_is_kept_in_order() {
    let plan = "body = { slow_chunk = 10, slow_gap_ms = 1 }\nlatency.fixed_ms = 1\n".to_owned() + &one("slow");
    with_server(&plan, async |sim, address| {
        let mut client = Client::connect(address).await;
        client.send(&(get(1) + &get(2))).await;
        assert_eq!(client.reply().await.unwrap().body, sim.world().item(1).unwrap());
        assert_eq!(client.reply().await.unwrap().body, sim.world().item(2).unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_hang_says_nothing_while_others_are_served() {
    with_server(&one("hang"), async |sim, address| {
        let mut hanging = Client::connect(address).await;
        hanging.send(&(get(2) + &get(1))).await;
        assert_eq!(hanging.reply().await.unwrap().body, sim.world().item(2).unwrap());
        let mut other = Client::connect(address).await;
        assert_eq!(other.item(2).await, sim.world().item(2).unwrap());
        let silent = hanging.stream.try_read(&mut [0]).unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::WouldBlock);
        let report = sim.stats().report();
        assert_eq!([report.connections_peak, report.in_flight_peak], [2, 2]);
    })
    .await;
}

async fn http2(address: SocketAddr) -> http2::SendRequest<Empty<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn h2_body(sender: &mut http2::SendRequest<Empty<Bytes>>, id: u64) -> hyper::Result<Bytes> {
    let response = sender.send_request(h2_get(id)).await?;
    Ok(response.into_body().collect().await?.to_bytes())
}

fn h2_get(id: u64) -> Request<Empty<Bytes>> {
    Request::get(format!("http://sim/v0/item/{id}.json")).body(Empty::new()).unwrap()
}

#[tokio::test]
async fn http2_with_prior_knowledge_serves_the_same_items_on_one_connection() {
    with_server("", async |sim, address| {
        let mut sender = http2(address).await;
        for id in 1..=20 {
            let response = sender.send_request(h2_get(id)).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()["content-type"], "application/json; charset=utf-8");
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), sim.world().item(id).unwrap());
        }
        assert_eq!(sim.stats().report().connections, 1);
    })
    .await;
}

#[tokio::test]
async fn http2_faults_spoil_one_stream_and_spare_the_connection() {
    let plan = "body = { slow_chunk = 10, slow_gap_ms = 1 }\n\
        [[script]]\nid = 1\nreplies = ['reset', 'reset-body', 'truncated', 'cut-json', 'slow', 'normal', 'hang']";
    with_server(plan, async |sim, address| {
        let mut sender = http2(address).await;
        let body = sim.world().item(1).unwrap();
        for fault in ["reset", "reset-body", "truncated"] {
            assert!(h2_body(&mut sender, 1).await.is_err(), "{fault}");
        }
        for expected in [body.slice(..body.len() / 2), body.clone(), body.clone()] {
            assert_eq!(h2_body(&mut sender, 1).await.unwrap(), expected);
        }
        let hanging = tokio::spawn(sender.send_request(h2_get(1)));
        assert_eq!(h2_body(&mut sender, 2).await.unwrap(), sim.world().item(2).unwrap());
        assert!(!hanging.is_finished());
        assert_eq!(sim.stats().report().connections, 1);
    })
    .await;
}
