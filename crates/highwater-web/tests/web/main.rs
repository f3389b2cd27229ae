//! What the service shows, read as others read it: metrics by a strict parser, pages over real sockets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod exposition;
mod metrics;
mod sample;
mod server;
