//! The transport over real sockets, against servers that misbehave in every way we know of. Time is paused: a deadline
//! of a minute costs nothing, and is checked to the second.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod bodies;
mod connections;
mod faults;
mod feeds;
mod permits;
mod redirects;
mod secure;
mod server;

use highwater_core::{Failure, FailureKind};
use highwater_sources::{HttpTransport, Request, Response, Transport, TransportSettings};

fn transport(url: &str) -> HttpTransport {
    HttpTransport::new(url, TransportSettings::default()).unwrap()
}

async fn get(transport: &HttpTransport, path: &str) -> Result<Response, Failure> {
    transport.send(Request::get(path)).await
}

/// Paths and bodies in these tests carry the word `secret`, which may never come up again.
async fn get_failure(transport: &HttpTransport) -> FailureKind {
    let failure = get(transport, "/secret").await.unwrap_err();
    assert!(!failure.message.contains("secret"), "{failure}");
    failure.kind
}
