//! The transport over real sockets: deadlines, redirects and decompression around the pool.

use futures_util::future::BoxFuture;
use highwater_core::{Failure, FailureKind};
use http::{Method, StatusCode, header, uri::PathAndQuery};
use tokio::time::timeout;

use super::{
    Request, Response, Transport, body, fault,
    h2::Drivers,
    origin::{self, Origin},
    pool::{Outbound, Pool, Shared},
    settings::{Redirects, SetupError, TransportSettings},
    tls,
};
use crate::Clock;

const REDIRECTS_MAX: usize = 5;

pub struct HttpTransport {
    shared: Shared,
    home: Pool,
    /// What the base URL puts before every path.
    prefix: String,
}

impl HttpTransport {
    pub fn new(base_url: &str, settings: TransportSettings) -> Result<Self, SetupError> {
        let (origin, prefix) = origin::parse_base(base_url)?;
        let may_need_tls = origin.is_tls() || settings.redirects == Redirects::AnyHost;
        let tls = if may_need_tls { Some(tls::connector(&settings.roots)?) } else { None };
        let shared = Shared { settings, tls, drivers: Drivers::default(), clock: Clock::system() };
        Ok(HttpTransport { home: Pool::new(origin, shared.clone()), shared, prefix })
    }

    /// Ends every connection and waits for their drivers. Requests still under way fail.
    pub async fn shutdown(&self) {
        self.home.close_idle();
        self.shared.drivers.shutdown().await;
    }

    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        if self.shared.drivers.stop.is_cancelled() {
            return Err(fault::connect("the transport was shut down"));
        }
        let Request { method, path, headers, body } = request;
        let outbound = Outbound { path: self.path(path)?, method, headers, body };
        let answer = self.home.exchange(&outbound).await?;
        let mut answer =
            if is_redirect(answer.status) { Box::pin(self.redirected(outbound, answer)).await? } else { answer };
        answer.body = body::decompress(&mut answer.headers, answer.body, self.shared.settings.body_max)?;
        Ok(answer)
    }

    fn path(&self, path: String) -> Result<PathAndQuery, Failure> {
        let whole = if self.prefix.is_empty() { path } else { format!("{}{path}", self.prefix) };
        let parsed = if whole.starts_with('/') { PathAndQuery::try_from(whole).ok() } else { None };
        parsed.ok_or_else(|| Failure::new(FailureKind::Internal, "the request has no valid path"))
    }

    async fn redirected(&self, mut outbound: Outbound, mut answer: Response) -> Result<Response, Failure> {
        let mut at = self.home.origin.clone();
        for _ in 0..REDIRECTS_MAX {
            (at, outbound.path) = self.target(&at, &outbound, &answer)?;
            answer = if at == self.home.origin {
                self.home.exchange(&outbound).await?
            } else {
                outbound.headers.remove(header::AUTHORIZATION);
                outbound.headers.remove(header::COOKIE);
                Pool::new(at.clone(), self.shared.clone()).exchange(&outbound).await?
            };
            if !is_redirect(answer.status) {
                return Ok(answer);
            }
        }
        Err(fault::redirect("more than 5 redirects in a row"))
    }

    fn target(&self, at: &Origin, outbound: &Outbound, answer: &Response) -> Result<(Origin, PathAndQuery), Failure> {
        if outbound.method != Method::GET && outbound.method != Method::HEAD {
            return Err(fault::redirect("a request that is not a read was redirected"));
        }
        let location = answer.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
        let location = location.ok_or_else(|| fault::redirect("a redirect without a readable Location"))?;
        let (to, path) = origin::resolve(at, &outbound.path, location)
            .ok_or_else(|| fault::redirect("a redirect to something that is no URL"))?;
        if self.shared.settings.redirects == Redirects::SameOrigin && to != self.home.origin {
            return Err(fault::redirect("a redirect to another host"));
        }
        if at.is_tls() && !to.is_tls() {
            return Err(fault::redirect("a redirect from TLS to plain text"));
        }
        Ok((to, path))
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Failure>> {
        Box::pin(async move {
            let total = self.shared.settings.deadlines.total;
            match timeout(total, self.exchange(request)).await {
                Ok(answer) => answer,
                Err(_) => Err(fault::timeout("the whole answer", total)),
            }
        })
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}
