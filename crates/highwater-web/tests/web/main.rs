//! What the service shows, read as others read it: metrics by a strict parser, pages over real sockets, and the files of
//! `deploy` against the metrics there are.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod deploy;
mod exposition;
mod metrics;
mod sample;
mod server;
