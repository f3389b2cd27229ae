//! The seam to the network: one request out, one bounded answer back.

mod body;
mod client;
mod dial;
mod fault;
mod h1;
mod h2;
mod origin;
mod pieces;
mod pool;
mod redirect;
mod settings;
mod stream;
mod tls;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use highwater_core::{Failure, FailureKind};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::Held;

pub use client::{Again, HttpTransport};
pub use origin::{check_base_url, port_of};
pub use settings::{Deadlines, PoolLimits, Redirects, Roots, SetupError, TransportSettings};

/// Sends requests to one origin. Answers with any status are `Ok`; an `Err` had no complete answer.
pub trait Transport: Send + Sync {
    /// Follows redirects, and sends once more what dies with a connection that was used before.
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Failure>>;
    /// As `send`, for who counts what is sent: one exchange, and whether another must follow.
    fn send_once(&self, request: Request) -> BoxFuture<'_, Result<Sent, Failure>> {
        Box::pin(async move { self.send(request).await.map(Sent::Answer) })
    }
    /// The exchange that must follow.
    fn go_on(&self, _again: Again) -> BoxFuture<'_, Result<Sent, Failure>> {
        Box::pin(async { Err(Failure::new(FailureKind::Internal, "this transport asks for no second exchange")) })
    }
    /// As `send`, but the body is read as it comes and may have no end. Redirects are followed to any host, never from
    /// TLS to plain text.
    fn open(&self, _request: Request) -> BoxFuture<'_, Result<OpenResponse, Failure>> {
        Box::pin(async { Err(Failure::new(FailureKind::Internal, "this transport opens no feeds")) })
    }
}

/// What came of one exchange.
pub enum Sent {
    Answer(Response),
    Again(Box<Again>),
}

/// An answer whose body is still coming, as it is on the wire: nothing is decompressed, no bound applies to the whole.
pub struct OpenResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub chunks: Box<dyn Chunks>,
}

pub trait Chunks: Send {
    /// The next piece; `None` at the end. May be dropped before it is ready without loss.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Failure>>;
}

#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// Path and query, beginning with `/`, behind the base URL.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Request {
    pub fn get(path: impl Into<String>) -> Self {
        Request { method: Method::GET, path: path.into(), headers: HeaderMap::new(), body: Bytes::new() }
    }

    pub fn post(path: impl Into<String>, content_type: HeaderValue, body: impl Into<Bytes>) -> Self {
        let (path, body) = (path.into(), body.into());
        let mut headers = HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]);
        if body.is_empty() {
            // Left out, it says nothing about whether a body follows, and some servers refuse that.
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Request { method: Method::POST, path, headers, body }
    }
}

/// An answer with its whole body, decompressed, within the size bound.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The memory it takes up, where that is bounded.
    pub held: Option<Held>,
}

impl Response {
    pub fn new(status: StatusCode, headers: HeaderMap, body: Bytes) -> Self {
        Response { status, headers, body, held: None }
    }
}
