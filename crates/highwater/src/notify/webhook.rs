//! An alert as a POST with JSON.

use anyhow::Context;
use highwater_sources::{Deadlines, HttpTransport, Request, Transport, TransportSettings};
use http::{HeaderValue, StatusCode, Uri};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::{Note, Setback, TRY_MAX};

pub(super) struct Webhook {
    transport: HttpTransport,
    /// Path and query: where such URLs carry their secret.
    path: SecretString,
}

impl Webhook {
    pub(super) fn new(url: &SecretString) -> anyhow::Result<Self> {
        // The parser's own error is left out, for it might repeat the URL.
        let url: Uri = url.expose_secret().parse().ok().context("alerts.webhook: not a URL")?;
        let (scheme, host) = url.scheme_str().zip(url.authority()).context("alerts.webhook: not a URL")?;
        let deadlines = Deadlines { total: TRY_MAX, ..Deadlines::default() };
        let settings = TransportSettings { deadlines, ..TransportSettings::default() };
        let transport = HttpTransport::new(&format!("{scheme}://{host}"), settings).context("alerts.webhook")?;
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        Ok(Webhook { transport, path: path.into() })
    }

    pub(super) async fn deliver(&self, note: &Note) -> Result<(), Setback> {
        let body = json!({
            "condition": note.condition.as_str(),
            "severity": note.severity.as_str(),
            "state": note.state,
            "message": note.message,
            "source": note.source,
            "at": note.at(),
        });
        let request =
            Request::post(self.path.expose_secret(), HeaderValue::from_static("application/json"), body.to_string());
        let answer = self.transport.send(request).await.map_err(|failure| Setback::passing(failure.message))?;
        match answer.status {
            status if status.is_success() => Ok(()),
            status if may_repeat(status) => Err(Setback::passing(format!("status {}", status.as_u16()))),
            status => Err(Setback::lasting(format!("status {}", status.as_u16()))),
        }
    }

    pub(super) async fn shutdown(&self) {
        self.transport.shutdown().await;
    }
}

fn may_repeat(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
}
