//! The connections to one origin: idle HTTP/1.1 ones, newest first, and shared HTTP/2 ones. A request that dies on a
//! connection used before, with nothing heard of its answer, may be sent once more on a fresh one.

mod apart;

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Context,
};

use bytes::Bytes;
use highwater_core::{Failure, Moment};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, response::Parts, uri::PathAndQuery};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::{error::Elapsed, timeout};
use tokio_rustls::TlsConnector;

use super::{
    Response, body,
    dial::Dialer,
    fault,
    h1::H1,
    h2::{Drivers, H2, H2Stream},
    origin::Origin,
    settings::TransportSettings,
};
use crate::Clock;

const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("highwater/", env!("CARGO_PKG_VERSION")));
const GZIP: HeaderValue = HeaderValue::from_static("gzip");

pub(super) struct Pool {
    pub(super) origin: Origin,
    shared: Shared,
    dialer: Dialer,
    /// Two short critical sections a request; never held over an await.
    parked: Mutex<Parked>,
    /// Held over a handshake until it is known whether connections are shared: else a hundred first requests would
    /// open a hundred connections where one does.
    handshake: tokio::sync::Mutex<()>,
    speaks_h1: AtomicBool,
    /// What every request carries. HTTP/2 has the host elsewhere.
    headers_h1: HeaderMap,
    headers_h2: HeaderMap,
}

/// What the pools of one transport have in common.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) settings: TransportSettings,
    pub(super) tls: Option<TlsConnector>,
    pub(super) drivers: Drivers,
    pub(super) clock: Clock,
}

#[derive(Default)]
struct Parked {
    /// The longest idle first.
    idle: Vec<(Box<H1>, Moment)>,
    shared: Vec<H2>,
}

enum Connection {
    H1(Box<H1>),
    H2(H2Stream),
}

pub(super) struct Outbound {
    pub(super) method: Method,
    pub(super) path: PathAndQuery,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Which connection a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Any,
    /// None that was used before.
    Fresh,
}

/// A request without a usable answer, and whether it may be sent again on a fresh connection.
pub(super) struct Lost {
    pub(super) failure: Failure,
    pub(super) may_repeat: bool,
}

impl From<Failure> for Lost {
    fn from(failure: Failure) -> Self {
        Lost { failure, may_repeat: false }
    }
}

impl Pool {
    pub(super) fn new(origin: Origin, shared: Shared) -> Self {
        let dialer = Dialer::new(shared.tls.clone(), shared.clock.clone(), shared.settings.deadlines.connect);
        let headers_h2 = HeaderMap::from_iter([(header::USER_AGENT, USER_AGENT), (header::ACCEPT_ENCODING, GZIP)]);
        let mut headers_h1 = headers_h2.clone();
        headers_h1.insert(header::HOST, origin.host_header.clone());
        Pool {
            origin,
            shared,
            dialer,
            parked: Mutex::default(),
            handshake: tokio::sync::Mutex::default(),
            speaks_h1: AtomicBool::new(false),
            headers_h1,
            headers_h2,
        }
    }

    /// Sends once.
    pub(super) async fn exchange(&self, outbound: &Outbound, link: Link) -> Result<Response, Lost> {
        if link == Link::Any
            && let Some(connection) = self.reuse()
        {
            return self.exchange_on(connection, outbound).await;
        }
        // Boxed, so that the many requests that need no new connection are not made larger by it.
        Box::pin(self.exchange_fresh(outbound)).await
    }

    async fn exchange_fresh(&self, outbound: &Outbound) -> Result<Response, Lost> {
        let connection = self.connect().await?;
        let exchanged = self.exchange_on(connection, outbound).await;
        exchanged.map_err(|lost| Lost { may_repeat: false, ..lost })
    }

    pub(super) fn close_idle(&self) {
        let closed = std::mem::take(&mut *self.parked());
        drop(closed);
    }

    async fn exchange_on(&self, connection: Connection, outbound: &Outbound) -> Result<Response, Lost> {
        match connection {
            Connection::H1(h1) => self.exchange_h1(h1, outbound).await,
            Connection::H2(stream) => self.exchange_h2(stream, outbound).await,
        }
    }

    async fn exchange_h1(&self, mut h1: Box<H1>, outbound: &Outbound) -> Result<Response, Lost> {
        let request = request(outbound, &self.headers_h1, Uri::from(outbound.path.clone()));
        let answer = timeout(self.shared.settings.deadlines.first_byte, h1.send(request)).await;
        let (mut head, incoming) = self.head(answer, outbound)?.into_parts();
        let came = self.body(incoming, &mut head, |cx| h1.drive(cx)).await?;
        if came.is_some() && h1.is_reusable().await {
            self.park(h1);
        }
        Ok(response(head, came))
    }

    async fn exchange_h2(&self, mut stream: H2Stream, outbound: &Outbound) -> Result<Response, Lost> {
        let request = request(outbound, &self.headers_h2, self.origin.uri(outbound.path.clone()));
        let answer = timeout(self.shared.settings.deadlines.first_byte, stream.send(request)).await;
        let (mut head, incoming) = self.head(answer, outbound)?.into_parts();
        let came = self.body(incoming, &mut head, |_| {}).await?;
        Ok(response(head, came))
    }

    /// The body, if it came; an `Err` only where the answer says nothing without it.
    async fn body(
        &self,
        incoming: Incoming,
        head: &mut Parts,
        drive: impl FnMut(&mut Context<'_>),
    ) -> Result<Option<body::Whole>, Failure> {
        let status = head.status;
        let read = body::read(incoming, &mut head.headers, self.bounds(status), drive);
        if !says_all(status) {
            return read.await.map(Some);
        }
        // Boxed, so that the many answers that are none of these are not made larger by it.
        Ok(Box::pin(timeout(self.shared.settings.deadlines.page, read)).await.ok().and_then(Result::ok))
    }

    /// An answer that says no holds no memory: whoever gets it often waits before it is dropped, for another answer.
    fn bounds(&self, status: StatusCode) -> body::Bounds<'_> {
        let TransportSettings { body_max, memory, .. } = &self.shared.settings;
        body::Bounds { max: *body_max, memory: memory.as_ref().filter(|_| status.is_success()) }
    }

    fn head(
        &self,
        answer: Result<hyper::Result<http::Response<Incoming>>, Elapsed>,
        outbound: &Outbound,
    ) -> Result<http::Response<Incoming>, Lost> {
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                let may_repeat = error.is_canceled() || (outbound.method.is_idempotent() && !error.is_parse());
                Err(Lost { failure: fault::hyper(&error), may_repeat })
            }
            Err(_) => Err(fault::timeout("the answer", self.shared.settings.deadlines.first_byte).into()),
        }
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let limit = self.shared.settings.deadlines.connect;
        match timeout(limit, self.connect_in_turn()).await {
            Ok(connection) => connection,
            Err(_) => Err(fault::timeout("connecting", limit)),
        }
    }

    async fn connect_in_turn(&self) -> Result<Connection, Failure> {
        if self.origin.is_tls() && !self.speaks_h1.load(Ordering::Relaxed) {
            let _turn = self.handshake.lock().await;
            if let Some(stream) = self.claim_stream() {
                return Ok(Connection::H2(stream));
            }
            if !self.speaks_h1.load(Ordering::Relaxed) {
                return self.open().await;
            }
        }
        self.open().await
    }

    async fn open(&self) -> Result<Connection, Failure> {
        let stream = self.dialer.dial(&self.origin).await?;
        if !stream.negotiated_h2() {
            self.speaks_h1.store(true, Ordering::Relaxed);
            let h1 = H1::open(stream).await.map_err(|e| fault::hyper(&e))?;
            return Ok(Connection::H1(Box::new(h1)));
        }
        let h2 = H2::open(stream, &self.shared.drivers, self.shared.settings.pool.streams_max)
            .await
            .map_err(|e| fault::hyper(&e))?;
        let stream = h2.claim(usize::MAX).expect("a new connection has a free stream");
        self.parked().shared.push(h2);
        Ok(Connection::H2(stream))
    }

    fn reuse(&self) -> Option<Connection> {
        if let Some(stream) = self.claim_stream() {
            return Some(Connection::H2(stream));
        }
        let now = self.shared.clock.moment();
        let (h1, since) = self.parked().idle.pop()?;
        let fresh = now.since(since) < self.shared.settings.pool.idle_timeout;
        fresh.then_some(Connection::H1(h1))
    }

    fn claim_stream(&self) -> Option<H2Stream> {
        let mut parked = self.parked();
        if parked.shared.is_empty() {
            return None;
        }
        parked.shared.retain(H2::is_open);
        parked.shared.iter().find_map(|h2| h2.claim(self.shared.settings.pool.streams_max))
    }

    fn park(&self, h1: Box<H1>) {
        let now = self.shared.clock.moment();
        let limits = self.shared.settings.pool;
        let mut parked = self.parked();
        let kept = parked.idle.partition_point(|(_, since)| now.since(*since) >= limits.idle_timeout);
        let expired: Vec<_> = parked.idle.drain(..kept).collect();
        if parked.idle.len() < limits.idle_max {
            parked.idle.push((h1, now));
        }
        drop(parked);
        drop(expired);
    }

    /// A panic elsewhere leaves the lists as sound as they were.
    fn parked(&self) -> MutexGuard<'_, Parked> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Statuses whose page nobody needs: one that is cut off or damaged must not hide a request to wait.
fn says_all(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

fn response(head: Parts, came: Option<body::Whole>) -> Response {
    let (body, held) = came.unwrap_or_default();
    Response { status: head.status, headers: head.headers, body, held }
}

fn request(outbound: &Outbound, defaults: &HeaderMap, uri: Uri) -> http::Request<Full<Bytes>> {
    let mut request = http::Request::new(Full::new(outbound.body.clone()));
    *request.method_mut() = outbound.method.clone();
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.clone_from(defaults);
    for (name, value) in &outbound.headers {
        headers.insert(name.clone(), value.clone());
    }
    request
}
