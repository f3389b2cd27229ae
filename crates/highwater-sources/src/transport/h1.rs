//! One HTTP/1.1 connection. It is driven by whoever waits for its answer, not by a task of its own: that saves two
//! task switches a request, and an idle connection costs nothing but its socket.

use std::{
    pin::{Pin, pin},
    task::Context,
};

use bytes::Bytes;
use futures_util::future::poll_fn;
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http1::{Builder, Connection, SendRequest},
};
use hyper_util::rt::TokioIo;

use super::stream::Stream;

/// Firebase and Google send under 2 KiB of headers.
const HEADER_BYTES_MAX: usize = 32 * 1024;
const HEADERS_MAX: usize = 100;
/// Read ahead of whoever takes a body: of many that come at once, each has as much in memory that nobody counts.
const READ_BUFFER_MAX: usize = 128 * 1024;

pub(super) struct H1 {
    sender: SendRequest<Full<Bytes>>,
    /// None once the connection has ended.
    driver: Option<Connection<TokioIo<Stream>, Full<Bytes>>>,
}

impl H1 {
    pub(super) async fn open(stream: Stream) -> hyper::Result<Self> {
        let mut builder = Builder::new();
        builder.max_header_size(HEADER_BYTES_MAX).max_headers(HEADERS_MAX).max_buf_size(READ_BUFFER_MAX);
        let (sender, driver) = builder.handshake(TokioIo::new(stream)).await?;
        Ok(H1 { sender, driver: Some(driver) })
    }

    pub(super) fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
    ) -> impl Future<Output = hyper::Result<http::Response<Incoming>>> {
        let answer = self.sender.send_request(request);
        async move {
            let mut answer = pin!(answer);
            poll_fn(|cx| {
                self.drive(cx);
                answer.as_mut().poll(cx)
            })
            .await
        }
    }

    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(cx).is_ready()
        {
            // An error is also reported to the answer or the body that was under way.
            self.driver = None;
        }
    }

    /// Whether the connection takes another request, once the last answer was read.
    pub(super) async fn is_reusable(&mut self) -> bool {
        if !self.sender.is_ready() {
            poll_fn(|cx| {
                self.drive(cx);
                std::task::Poll::Ready(())
            })
            .await;
        }
        self.driver.is_some() && self.sender.is_ready()
    }
}
