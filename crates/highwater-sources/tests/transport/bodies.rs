//! Bodies: their bounds, their compression, and what comes with them.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use highwater_core::FailureKind;
use highwater_sources::{HttpTransport, Memory, TransportSettings};

use crate::{
    get, get_failure,
    server::{Server, Step, ok, with_headers},
    transport,
};

const GZIP: &str = "Content-Encoding: gzip\r\n";

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn small(url: &str) -> HttpTransport {
    HttpTransport::new(url, TransportSettings { body_max: 1_000, ..TransportSettings::default() }).unwrap()
}

async fn failure_of(answer: Vec<u8>) -> FailureKind {
    get_failure(&small(&Server::replying(answer).await.url)).await
}

#[tokio::test]
async fn any_status_is_an_answer_with_its_headers_and_body() {
    let server = Server::replying("HTTP/1.1 401 Unauthorized\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbody").await;
    let answer = get(&transport(&server.url), "/").await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (401, &b"body"[..]));
    assert_eq!(answer.headers["retry-after"], "7");
}

#[tokio::test]
async fn a_body_may_come_in_many_pieces() {
    let body: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let server = Server::replying(ok(&body)).await;
    assert_eq!(get(&transport(&server.url), "/").await.unwrap().body, body);
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-End: 1\r\n\r\n";
    let server = Server::replying(chunks).await;
    let transport = transport(&server.url);
    assert_eq!(get(&transport, "/").await.unwrap().body, "abcde");
    assert_eq!(get(&transport, "/").await.unwrap().body, "abcde");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_body_without_a_length_ends_with_the_connection() {
    let server = Server::start(|_| vec![Step::Send(b"HTTP/1.1 200 OK\r\n\r\nwhole".into()), Step::Close]).await;
    assert_eq!(get(&transport(&server.url), "/").await.unwrap().body, "whole");
}

#[tokio::test]
async fn compressed_bodies_are_asked_for_and_undone() {
    let server = Server::replying(with_headers(GZIP, gzip(b"plain text"))).await;
    let answer = get(&transport(&server.url), "/").await.unwrap();
    assert_eq!(answer.body, "plain text");
    assert!(!answer.headers.contains_key("content-encoding"));
    assert_eq!(server.requests()[0].header("accept-encoding"), Some("gzip"));
    let loud = Server::replying(with_headers("Content-Encoding: GZIP\r\n", gzip(b"plain text"))).await;
    assert_eq!(get(&transport(&loud.url), "/").await.unwrap().body, "plain text");
}

#[tokio::test]
async fn a_damaged_compressed_body_is_told_from_one_that_ends_early() {
    let packed = gzip("secret ".repeat(50).as_bytes());
    assert_eq!(failure_of(with_headers(GZIP, &packed[..packed.len() - 9])).await, FailureKind::Broken);
    assert_eq!(failure_of(with_headers(GZIP, b"secret and not compressed")).await, FailureKind::Malformed);
    let mut damaged = packed.clone();
    let checksum = damaged.len() - 6;
    damaged[checksum] ^= 1;
    assert_eq!(failure_of(with_headers(GZIP, damaged)).await, FailureKind::Malformed);
    assert_eq!(failure_of(with_headers("Content-Encoding: br\r\n", b"secret")).await, FailureKind::Malformed);
}

#[tokio::test]
async fn nothing_may_be_larger_than_its_bound() {
    let fits = Server::replying(ok("x".repeat(1_000))).await;
    assert_eq!(get(&small(&fits.url), "/").await.unwrap().body.len(), 1_000);
    assert_eq!(failure_of(ok("x".repeat(1_001))).await, FailureKind::TooLarge);
    let chunk = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n200\r\n{}\r\n", "x".repeat(512));
    let chunks = format!("{chunk}200\r\n{}\r\n", "x".repeat(512));
    assert_eq!(failure_of(chunks.into()).await, FailureKind::TooLarge);
    let bomb = gzip(&vec![0; 100_000]);
    assert!(bomb.len() < 1_000);
    assert_eq!(failure_of(with_headers(GZIP, bomb)).await, FailureKind::TooLarge);
    let header = format!("X-Big: {}\r\n", "secret".repeat(20_000));
    assert_eq!(failure_of(with_headers(&header, "")).await, FailureKind::TooLarge);
    let headers: String = (0..1_000).map(|n| format!("X-{n}: secret\r\n")).collect();
    assert_eq!(failure_of(with_headers(&headers, "")).await, FailureKind::TooLarge);
}

/// Room that is held is not waited for by anybody who need not.
#[tokio::test]
async fn an_answer_that_was_cut_or_says_no_waits_for_no_memory() {
    let settings = TransportSettings { memory: Some(Memory::new(4 << 20)), ..TransportSettings::default() };
    let bounded = |url: &str| HttpTransport::new(url, settings.clone()).unwrap();
    let server = Server::replying(ok("kept")).await;
    let kept = get(&bounded(&server.url), "/").await.unwrap();
    assert!(kept.held.is_some());
    let noise: Vec<u8> = (0..5_000_u32).flat_map(|n| (n * n).to_le_bytes()).collect();
    let mut cut = gzip(&noise);
    cut.truncate(6_000);
    cut[5_996..].fill(0xff);
    let cut = Server::replying(with_headers(GZIP, cut)).await;
    assert_ne!(get_failure(&bounded(&cut.url)).await, FailureKind::Timeout);
    let no = Server::replying("HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\n\r\nbody").await;
    assert!(get(&bounded(&no.url), "/").await.unwrap().held.is_none());
}
