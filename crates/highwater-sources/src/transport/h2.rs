//! HTTP/2 connections, shared by many requests. They need drivers of their own, which are tracked until shutdown.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http2::{Builder, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::stream::Stream;

const HEADER_BYTES_MAX: u32 = 32 * 1024;
/// What may come in unread for one request: eight megabytes a second at thirty milliseconds.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Windows are numbers of 31 bits.
const STREAMS_MAX: u32 = i32::MAX.cast_unsigned() / STREAM_WINDOW;

/// Where the drivers run. The one place outside the engine that spawns: nobody else can wait for all users of a
/// connection.
#[derive(Clone, Default)]
pub(super) struct Drivers {
    tracker: TaskTracker,
    pub(super) stop: CancellationToken,
}

impl Drivers {
    /// Waited for together with all others, but stopped apart.
    pub(super) fn apart(&self) -> Self {
        Drivers { tracker: self.tracker.clone(), stop: self.stop.child_token() }
    }

    pub(super) async fn shutdown(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for Drivers {
    fn execute(&self, driver: F) {
        let stop = self.stop.clone();
        self.tracker.spawn(async move { stop.run_until_cancelled(driver).await });
    }
}

pub(super) struct H2 {
    sender: SendRequest<Full<Bytes>>,
    streams: Arc<AtomicUsize>,
}

impl H2 {
    /// All windows together are the connection's: an answer that nobody reads for a while may not keep others from coming.
    pub(super) async fn open(stream: Stream, drivers: &Drivers, streams_max: usize) -> hyper::Result<Self> {
        let streams = u32::try_from(streams_max).unwrap_or(STREAMS_MAX).min(STREAMS_MAX);
        let mut builder = Builder::new(drivers.clone());
        builder.max_header_list_size(HEADER_BYTES_MAX);
        builder.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(STREAM_WINDOW * streams);
        let (sender, driver) = builder.handshake(TokioIo::new(stream)).await?;
        // An error is also reported to every answer that was under way.
        hyper::rt::Executor::execute(drivers, driver);
        Ok(H2 { sender, streams: Arc::default() })
    }

    /// False from the moment a GOAWAY arrived.
    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Called under the lock of the pool, which makes the check and the count one step.
    pub(super) fn claim(&self, streams_max: usize) -> Option<H2Stream> {
        if self.streams.load(Ordering::Relaxed) >= streams_max {
            return None;
        }
        self.streams.fetch_add(1, Ordering::Relaxed);
        Some(H2Stream { sender: self.sender.clone(), streams: self.streams.clone() })
    }
}

/// The right to one request on a shared connection.
pub(super) struct H2Stream {
    sender: SendRequest<Full<Bytes>>,
    streams: Arc<AtomicUsize>,
}

impl H2Stream {
    pub(super) fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
    ) -> impl Future<Output = hyper::Result<http::Response<Incoming>>> + use<> {
        self.sender.send_request(request)
    }
}

impl Drop for H2Stream {
    fn drop(&mut self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }
}
