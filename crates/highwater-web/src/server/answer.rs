//! From a request to its answer: who asks, what for, and what may be shown.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;

use super::Site;
use crate::{Health, Readiness, ServiceView, access::Refusal, metrics};

type Answer = Response<Full<Bytes>>;

/// Whoever cannot say how it is within this time is not well.
const VIEW_TIMEOUT: Duration = Duration::from_secs(5);

const INDEX: &str = "\
highwater

/metrics     for Prometheus
/healthz     whether the process is alive
/readyz      whether it does its work
/api/status  everything, as JSON
";

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

impl Site {
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Answer {
        match self.admit(&request) {
            Ok(()) => self.route(request.uri().path()).await,
            Err(refusal) => refused(refusal),
        }
    }

    fn admit(&self, request: &Request<Incoming>) -> Result<(), Refusal> {
        self.rules.check_host(request.uri(), request.headers())?;
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return Err(Refusal::NoRead);
        }
        // A load balancer has no token; what it learns is little.
        if request.uri().path() == "/healthz" { Ok(()) } else { self.rules.check_token(request.headers()) }
    }

    async fn route(&self, path: &str) -> Answer {
        match path {
            "/" => answer(StatusCode::OK, TEXT, INDEX),
            "/metrics" => self.show(|view| answer(StatusCode::OK, metrics::CONTENT_TYPE, metrics::render(view))).await,
            "/api/status" => self.show(|view| in_json(StatusCode::OK, view)).await,
            "/healthz" => self.show(health).await,
            "/readyz" => self.show(readiness).await,
            _ => trouble(StatusCode::NOT_FOUND, "there is nothing here"),
        }
    }

    async fn show(&self, shown: impl FnOnce(&ServiceView) -> Answer) -> Answer {
        let view: Result<Arc<ServiceView>, _> = timeout(VIEW_TIMEOUT, self.views.view()).await;
        match view {
            Ok(view) => shown(&view),
            Err(_) => trouble(StatusCode::SERVICE_UNAVAILABLE, "the service does not say how it is"),
        }
    }
}

fn health(view: &ServiceView) -> Answer {
    let health = Health::of(view);
    in_json(ok_if(health.is_ok()), &health)
}

fn readiness(view: &ServiceView) -> Answer {
    let readiness = Readiness::of(view);
    in_json(ok_if(readiness.ready), &readiness)
}

fn ok_if(is_ok: bool) -> StatusCode {
    if is_ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

fn refused(refusal: Refusal) -> Answer {
    match refusal {
        Refusal::NoHost => trouble(StatusCode::BAD_REQUEST, "the request names no host"),
        Refusal::WrongHost => trouble(StatusCode::MISDIRECTED_REQUEST, "this host is not served here"),
        Refusal::NoRead => {
            let answer = trouble(StatusCode::METHOD_NOT_ALLOWED, "only reads are answered");
            with_header(answer, header::ALLOW, "GET, HEAD")
        }
        Refusal::NoToken => {
            let answer = trouble(StatusCode::UNAUTHORIZED, "a token is needed");
            with_header(answer, header::WWW_AUTHENTICATE, "Bearer")
        }
    }
}

fn trouble(status: StatusCode, error: &'static str) -> Answer {
    in_json(status, &json!({ "error": error }))
}

fn in_json(status: StatusCode, value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(body) => answer(status, JSON, body),
        Err(_) => answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, "this cannot be written as JSON"),
    }
}

fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let fixed = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    fixed.into_iter().fold(answer, |answer, (name, value)| with_header(answer, name, value))
}

fn with_header(mut answer: Answer, name: header::HeaderName, value: &'static str) -> Answer {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
    answer
}
