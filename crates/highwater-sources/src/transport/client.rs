//! The transport over real sockets: deadlines and redirects around the pool.

use std::sync::OnceLock;

use futures_util::future::BoxFuture;
use highwater_core::{Failure, FailureKind};
use http::{HeaderValue, header, uri::PathAndQuery};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::{
    OpenResponse, Request, Response, Sent, Transport, fault,
    h2::Drivers,
    origin::{self, Origin},
    pool::{Link, Lost, Outbound, Pool, Shared},
    redirect,
    settings::{Redirects, SetupError, TransportSettings},
    tls,
};
use crate::Clock;

pub struct HttpTransport {
    shared: Shared,
    home: Pool,
    /// What the base URL puts before every path.
    prefix: String,
    /// Made when a feed is first led from plain text to TLS: few ever are.
    late_tls: OnceLock<TlsConnector>,
}

impl HttpTransport {
    pub fn new(base_url: &str, settings: TransportSettings) -> Result<Self, SetupError> {
        let (origin, prefix) = origin::parse_base(base_url)?;
        let may_need_tls = origin.is_tls() || settings.redirects == Redirects::AnyHost;
        let tls = if may_need_tls { Some(tls::connector(&settings.roots)?) } else { None };
        let shared = Shared { settings, tls, drivers: Drivers::default(), clock: Clock::system() };
        Ok(HttpTransport { home: Pool::new(origin, shared.clone()), shared, prefix, late_tls: OnceLock::new() })
    }

    /// Ends every connection and waits for their drivers. Requests still under way fail.
    pub async fn shutdown(&self) {
        self.home.close_idle();
        self.shared.drivers.shutdown().await;
    }

    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        let mut sent = self.first(request).await?;
        loop {
            match sent {
                Sent::Answer(answer) => return Ok(answer),
                Sent::Again(again) => sent = self.step(*again).await?,
            }
        }
    }

    async fn first(&self, request: Request) -> Result<Sent, Failure> {
        let outbound = self.outbound(request)?;
        match self.home.exchange(&outbound, Link::Any).await {
            Ok(answer) if !redirect::is_redirect(answer.status) => Ok(Sent::Answer(answer)),
            // Boxed, so that the many requests that end here are not made larger by it.
            other => self.further(Box::new(Again { outbound, at: None, link: Link::Any, redirects: 0 }), other),
        }
    }

    async fn step(&self, again: Again) -> Result<Sent, Failure> {
        let exchanged = match &again.at {
            None => self.home.exchange(&again.outbound, again.link).await,
            Some(at) => Pool::new(at.clone(), self.shared.clone()).exchange(&again.outbound, again.link).await,
        };
        self.further(Box::new(again), exchanged)
    }

    /// What comes after an exchange that may not be the last.
    fn further(&self, mut again: Box<Again>, exchanged: Result<Response, Lost>) -> Result<Sent, Failure> {
        match exchanged {
            Err(Lost { may_repeat: true, .. }) => {
                again.link = Link::Fresh;
                Ok(Sent::Again(again))
            }
            Err(lost) => Err(lost.failure),
            Ok(answer) if redirect::is_redirect(answer.status) => {
                self.follow(&mut again, &answer)?;
                Ok(Sent::Again(again))
            }
            Ok(answer) => Ok(Sent::Answer(answer)),
        }
    }

    fn follow(&self, again: &mut Again, answer: &Response) -> Result<(), Failure> {
        if again.redirects == redirect::MAX {
            return Err(redirect::too_many());
        }
        let from = again.at.as_ref().unwrap_or(&self.home.origin);
        let (to, path) = redirect::target(from, &again.outbound, &answer.headers, self.shared.settings.redirects)?;
        let at = (to != self.home.origin).then_some(to);
        if at.is_some() {
            redirect::leave_credentials(&mut again.outbound);
        }
        again.outbound.path = path;
        (again.at, again.link, again.redirects) = (at, Link::Any, again.redirects + 1);
        Ok(())
    }

    fn outbound(&self, request: Request) -> Result<Outbound, Failure> {
        if self.shared.drivers.stop.is_cancelled() {
            return Err(fault::shut_down());
        }
        let Request { method, path, headers, body } = request;
        Ok(Outbound { path: self.path(path)?, method, headers, body })
    }

    fn path(&self, path: String) -> Result<PathAndQuery, Failure> {
        let whole = if self.prefix.is_empty() { path } else { format!("{}{path}", self.prefix) };
        let parsed = if whole.starts_with('/') { PathAndQuery::try_from(whole).ok() } else { None };
        parsed.ok_or_else(|| Failure::new(FailureKind::Internal, "the request has no valid path"))
    }
}

/// What is to be sent next: the same once more, or what a redirect leads to.
pub struct Again {
    outbound: Outbound,
    /// None for where the first went.
    at: Option<Origin>,
    link: Link,
    redirects: usize,
}

impl HttpTransport {
    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let total = self.shared.settings.deadlines.total;
        match timeout(total, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(fault::timeout("the whole answer", total)),
        }
    }

    async fn open_following(&self, request: Request) -> Result<OpenResponse, Failure> {
        let mut outbound = self.outbound(request)?;
        outbound.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let mut answer = self.home.open_apart(&outbound).await?;
        let mut at = self.home.origin.clone();
        for _ in 0..redirect::MAX {
            if !redirect::is_redirect(answer.status) {
                return Ok(answer);
            }
            (at, outbound.path) = redirect::target(&at, &outbound, &answer.headers, Redirects::AnyHost)?;
            if at != self.home.origin {
                redirect::leave_credentials(&mut outbound);
            }
            answer = self.pool_at(&at)?.open_apart(&outbound).await?;
        }
        if redirect::is_redirect(answer.status) { Err(redirect::too_many()) } else { Ok(answer) }
    }

    /// A pool for one request elsewhere. Feeds are led to any host, also from plain text to TLS.
    fn pool_at(&self, origin: &Origin) -> Result<Pool, Failure> {
        let mut shared = self.shared.clone();
        if origin.is_tls() && shared.tls.is_none() {
            shared.tls = Some(self.late_tls()?);
        }
        Ok(Pool::new(origin.clone(), shared))
    }

    fn late_tls(&self) -> Result<TlsConnector, Failure> {
        if let Some(connector) = self.late_tls.get() {
            return Ok(connector.clone());
        }
        let connector =
            tls::connector(&self.shared.settings.roots).map_err(|e| fault::connect(&format!("TLS: {e}")))?;
        Ok(self.late_tls.get_or_init(|| connector).clone())
    }
}

impl Transport for HttpTransport {
    fn open(&self, request: Request) -> BoxFuture<'_, Result<OpenResponse, Failure>> {
        Box::pin(self.open_following(request))
    }

    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Failure>> {
        Box::pin(self.in_time(self.exchange(request)))
    }

    fn send_once(&self, request: Request) -> BoxFuture<'_, Result<Sent, Failure>> {
        Box::pin(self.in_time(self.first(request)))
    }

    fn go_on(&self, again: Again) -> BoxFuture<'_, Result<Sent, Failure>> {
        Box::pin(self.in_time(self.step(again)))
    }
}
