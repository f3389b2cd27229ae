//! Reads a body to its end within a bound, and undoes its compression within the same bound. Memory for it is asked
//! for before it is read, or as it grows.

use std::{
    io::{self, Read},
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use futures_util::future::poll_fn;
use highwater_core::{Failure, FailureKind};
use http::{HeaderMap, header::CONTENT_ENCODING};
use hyper::body::{Body, Frame, Incoming};

use super::{fault, pieces::Pieces};
use crate::{
    Held, Memory,
    memory::{FREE, Growth},
};

#[derive(Clone, Copy)]
pub(super) struct Bounds<'a> {
    pub(super) max: usize,
    pub(super) memory: Option<&'a Memory>,
}

/// A body without its encoding, and the memory it takes up.
pub(super) type Whole = (Bytes, Option<Held>);

/// Reads a body to its end; its encoding goes from the headers as well. `drive` gives the
/// connection below a turn, when nobody else does.
pub(super) async fn read(
    body: Incoming,
    headers: &mut HeaderMap,
    bounds: Bounds<'_>,
    drive: impl FnMut(&mut Context<'_>),
) -> Result<Whole, Failure> {
    let encoding = Encoding::of(headers)?;
    let mut growth = Growth::new(bounds.memory);
    let pieces = collect(body, encoding, bounds.max, &mut growth, drive).await?;
    let plain = match encoding {
        Encoding::Identity => pieces.join(),
        Encoding::Gzip => {
            // What was cut off ends in anything: believed, it would wait for all memory there is.
            let said = pieces.said_length().min(pieces.len().saturating_mul(LIKELY_RATIO_MAX)).min(bounds.max);
            growth.reach(said, Some(said)).await;
            gunzip(pieces, said, bounds.max)?
        }
    };
    headers.remove(CONTENT_ENCODING);
    let held = growth.finish(plain.len()).await;
    Ok((plain, held))
}

async fn collect(
    mut body: Incoming,
    encoding: Encoding,
    max: usize,
    growth: &mut Growth<'_>,
    mut drive: impl FnMut(&mut Context<'_>),
) -> Result<Pieces, Failure> {
    if body.size_hint().lower() > max as u64 {
        return Err(fault::too_large("the body", max));
    }
    // What is compressed says nothing of how long it will be.
    let length = body.size_hint().exact().filter(|_| encoding == Encoding::Identity).map(|length| length as usize);
    let mut pieces = Pieces::default();
    while !body.is_end_stream() {
        let Some(frame) = poll_fn(|cx| poll_frame(&mut body, cx, &mut drive)).await else { break };
        // What is no data are trailers, which nobody here has a use for.
        if let Ok(data) = frame.map_err(|e| fault::hyper(&e))?.into_data() {
            let len = pieces.len() + data.len();
            if len > max {
                return Err(fault::too_large("the body", max));
            }
            growth.reach(len, length).await;
            if let Some(length) = length.filter(|_| len > FREE) {
                pieces.make_room(length);
            }
            pieces.add(data);
        }
    }
    Ok(pieces)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
}

impl Encoding {
    fn of(headers: &HeaderMap) -> Result<Self, Failure> {
        let Some(encoding) = headers.get(CONTENT_ENCODING) else { return Ok(Encoding::Identity) };
        match encoding.as_bytes().to_ascii_lowercase().as_slice() {
            b"identity" => Ok(Encoding::Identity),
            b"gzip" | b"x-gzip" => Ok(Encoding::Gzip),
            _ => Err(Failure::new(FailureKind::Malformed, "the body has an encoding that was not asked for")),
        }
    }
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

/// `said` is believed only as it proves true.
fn gunzip(packed: Pieces, said: usize, max: usize) -> Result<Bytes, Failure> {
    if packed.len() == 0 {
        return Ok(Bytes::new());
    }
    let mut plain = Vec::with_capacity(said);
    let limit = max as u64 + 1;
    MultiGzDecoder::new(packed.into_reader()).take(limit).read_to_end(&mut plain).map_err(|e| unreadable(&e))?;
    if plain.len() > max {
        return Err(fault::too_large("the decompressed body", max));
    }
    Ok(plain.into())
}

/// JSON of many equal lines shrinks that far.
const LIKELY_RATIO_MAX: usize = 20;

fn unreadable(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        Failure::new(FailureKind::Broken, "the compressed body ends early")
    } else {
        Failure::new(FailureKind::Malformed, "the compressed body is damaged")
    }
}
