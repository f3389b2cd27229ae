//! Reads a body to its end within a bound, and undoes its compression within the same bound.

use std::{
    io::{self, Read},
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use futures_util::future::poll_fn;
use highwater_core::{Failure, FailureKind};
use http::{HeaderMap, header::CONTENT_ENCODING};
use hyper::body::{Body, Frame, Incoming};

use super::fault;

/// `drive` gives the connection below a turn, when nobody else does.
pub(super) async fn collect(
    mut body: Incoming,
    max: usize,
    mut drive: impl FnMut(&mut Context<'_>),
) -> Result<Bytes, Failure> {
    if body.size_hint().lower() > max as u64 {
        return Err(fault::too_large("the body", max));
    }
    let mut whole = Whole::default();
    while !body.is_end_stream() {
        let Some(frame) = poll_fn(|cx| poll_frame(&mut body, cx, &mut drive)).await else { break };
        // What is no data are trailers, which nobody here has a use for.
        if let Ok(data) = frame.map_err(|e| fault::hyper(&e))?.into_data() {
            whole.add(data, max)?;
        }
    }
    Ok(whole.finish())
}

pub(super) type NextFrame = Poll<Option<hyper::Result<Frame<Bytes>>>>;

pub(super) fn poll_frame(
    body: &mut Incoming,
    cx: &mut Context<'_>,
    drive: &mut impl FnMut(&mut Context<'_>),
) -> NextFrame {
    match Pin::new(&mut *body).poll_frame(cx) {
        Poll::Pending => {
            drive(cx);
            Pin::new(body).poll_frame(cx)
        }
        ready => ready,
    }
}

/// A smaller piece is copied out, which gives the connection its read buffer back: else every answer costs it a new one.
const COPIED_BELOW: usize = 4096;

#[derive(Default)]
struct Whole {
    first: Bytes,
    joined: BytesMut,
}

impl Whole {
    fn add(&mut self, data: Bytes, max: usize) -> Result<(), Failure> {
        if self.first.len() + self.joined.len() + data.len() > max {
            return Err(fault::too_large("the body", max));
        }
        if self.first.is_empty() && self.joined.is_empty() {
            self.first = if data.len() < COPIED_BELOW { Bytes::copy_from_slice(&data) } else { data };
            return Ok(());
        }
        let first = std::mem::take(&mut self.first);
        self.joined.extend_from_slice(&first);
        self.joined.extend_from_slice(&data);
        Ok(())
    }

    fn finish(self) -> Bytes {
        if self.joined.is_empty() { self.first } else { self.joined.freeze() }
    }
}

/// Takes the encoding off the body and, with it, off the headers.
pub(super) fn decompress(headers: &mut HeaderMap, body: Bytes, max: usize) -> Result<Bytes, Failure> {
    let Some(encoding) = headers.get(CONTENT_ENCODING) else { return Ok(body) };
    let plain = match encoding.as_bytes() {
        b"identity" => body,
        b"gzip" | b"x-gzip" => gunzip(&body, max)?,
        _ => return Err(Failure::new(FailureKind::Malformed, "the body has an encoding that was not asked for")),
    };
    headers.remove(CONTENT_ENCODING);
    Ok(plain)
}

fn gunzip(packed: &[u8], max: usize) -> Result<Bytes, Failure> {
    if packed.is_empty() {
        return Ok(Bytes::new());
    }
    let mut plain = Vec::with_capacity((packed.len() * 4).min(max));
    let limit = max as u64 + 1;
    MultiGzDecoder::new(packed).take(limit).read_to_end(&mut plain).map_err(|e| unreadable(&e))?;
    if plain.len() > max {
        return Err(fault::too_large("the decompressed body", max));
    }
    Ok(plain.into())
}

fn unreadable(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        Failure::new(FailureKind::Broken, "the compressed body ends early")
    } else {
        Failure::new(FailureKind::Malformed, "the compressed body is damaged")
    }
}
