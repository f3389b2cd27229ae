//! Requests whose answer is read as it comes: each on a connection of its own, which ends with it.

use bytes::Bytes;
use futures_util::future::{BoxFuture, poll_fn};
use highwater_core::Failure;
use http::Uri;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Connection, Lost, Outbound, Pool, request};
use crate::{
    Chunks, OpenResponse,
    transport::{
        body, fault,
        h1::H1,
        h2::{Drivers, H2},
    },
};

impl Pool {
    /// Without a deadline for the body, and without a second try.
    pub(in crate::transport) async fn open_apart(&self, outbound: &Outbound) -> Result<OpenResponse, Failure> {
        let drivers = self.shared.drivers.apart();
        let stop = drivers.stop.clone();
        let end = stop.clone().drop_guard();
        let opened = stop.run_until_cancelled(self.ask_apart(outbound, &drivers)).await;
        let (head, connection) = opened.unwrap_or_else(|| Err(fault::shut_down()))?;
        let (head, body) = head.into_parts();
        let chunks = Box::new(Apart { body, connection, failed: None, stop, _end: end });
        Ok(OpenResponse { status: head.status, headers: head.headers, chunks })
    }

    async fn ask_apart(
        &self,
        outbound: &Outbound,
        drivers: &Drivers,
    ) -> Result<(http::Response<Incoming>, Connection), Failure> {
        let deadlines = self.shared.settings.deadlines;
        let mut connection = match timeout(deadlines.connect, self.connect_apart(drivers)).await {
            Ok(connection) => connection?,
            Err(_) => return Err(fault::timeout("connecting", deadlines.connect)),
        };
        let answer = match &mut connection {
            Connection::H1(h1) => {
                let request = request(outbound, &self.headers_h1, Uri::from(outbound.path.clone()));
                timeout(deadlines.first_byte, h1.send(request)).await
            }
            Connection::H2(stream) => {
                let request = request(outbound, &self.headers_h2, self.origin.uri(outbound.path.clone()));
                timeout(deadlines.first_byte, stream.send(request)).await
            }
        };
        let head = self.head(answer, outbound).map_err(|Lost { failure, .. }| failure)?;
        Ok((head, connection))
    }

    async fn connect_apart(&self, drivers: &Drivers) -> Result<Connection, Failure> {
        let stream = self.dialer.dial(&self.origin).await?;
        if !stream.negotiated_h2() {
            let h1 = H1::open(stream).await.map_err(|e| fault::hyper(&e))?;
            return Ok(Connection::H1(Box::new(h1)));
        }
        let h2 = H2::open(stream, drivers, 1).await.map_err(|e| fault::hyper(&e))?;
        Ok(Connection::H2(h2.claim(1).expect("a new connection has a free stream")))
    }
}

struct Apart {
    body: Incoming,
    connection: Connection,
    /// What ended the body: from then on that is all there is to tell.
    failed: Option<Failure>,
    stop: CancellationToken,
    /// The driver of an HTTP/2 connection goes with its only user, also when the other side has fallen silent.
    _end: DropGuard,
}

impl Apart {
    async fn next_data(&mut self) -> Result<Option<Bytes>, Failure> {
        while !self.body.is_end_stream() {
            let Apart { body, connection, .. } = self;
            let mut drive = |cx: &mut std::task::Context<'_>| {
                if let Connection::H1(h1) = &mut *connection {
                    h1.drive(cx);
                }
            };
            let Some(frame) = poll_fn(|cx| body::poll_frame(body, cx, &mut drive)).await else { break };
            // What is no data are trailers, which nobody here has a use for.
            if let Ok(data) = frame.map_err(|e| fault::hyper(&e))?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

impl Chunks for Apart {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Failure>> {
        Box::pin(async move {
            if let Some(failure) = &self.failed {
                return Err(failure.clone());
            }
            let stop = self.stop.clone();
            let next = stop.run_until_cancelled(self.next_data()).await.unwrap_or_else(|| Err(fault::shut_down()));
            self.failed = next.as_ref().err().cloned();
            next
        })
    }
}
