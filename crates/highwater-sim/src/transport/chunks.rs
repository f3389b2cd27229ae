//! Bodies that are read as they come.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use highwater_core::{Failure, FailureKind};
use highwater_sources::Chunks;

use super::SimTime;
use crate::{EventStream, StreamStep};

pub(super) struct SimChunks {
    stream: EventStream,
    time: SimTime,
}

impl SimChunks {
    pub(super) const fn new(stream: EventStream, time: SimTime) -> Self {
        SimChunks { stream, time }
    }
}

impl Chunks for SimChunks {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Failure>> {
        Box::pin(async {
            match self.stream.next(|| self.time.now()).await {
                StreamStep::Send(piece) => Ok(Some(piece)),
                StreamStep::End => Ok(None),
                StreamStep::Reset => Err(Failure::new(FailureKind::Broken, "the connection broke")),
            }
        })
    }
}

/// A whole body as one piece.
pub(super) struct Once(Option<Bytes>);

impl Once {
    pub(super) fn new(body: Bytes) -> Self {
        Once(Some(body).filter(|body| !body.is_empty()))
    }
}

impl Chunks for Once {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, Failure>> {
        Box::pin(async { Ok(self.0.take()) })
    }
}
