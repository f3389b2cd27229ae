//! Laying segments a bounded number at a time, so that they tile `[origin, target)` after each.

use highwater_core::{Extension, Position, Purpose, Span, StreamId};

use crate::{ErrorKind, Result, StoreError, StreamRow};

/// Segments a transaction.
const CHUNK: u64 = 1_000;

/// What is to be laid, as far as it is not laid yet.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    pub(crate) stream: StreamId,
    pub(crate) purpose: Purpose,
    pub(crate) span: Span,
    pub(crate) segment_size: u64,
    pub(crate) bare_until: Option<Position>,
}

/// A chunk to be laid, and where the stream stands when it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Laid {
    pub(crate) chunk: Span,
    /// None if the stream's row stays as it is.
    pub(crate) place: Option<(Span, Position)>,
}

impl Rest {
    /// The next chunk for a stream that stands like this; none if all is laid. Judged by the stream's row each time, so
    /// that a plan broken off and one laid twice end the same.
    pub(crate) fn next(&self, row: &StreamRow) -> Result<Option<Laid>> {
        if self.purpose == Purpose::Rescan {
            let chunk = self.first_chunk(self.span);
            return Ok((!chunk.is_empty()).then_some(Laid { chunk, place: None }));
        }
        if !row.span.is_empty() && (self.span.start() > row.span.end() || self.span.end() < row.span.start()) {
            let gap = format!("a plan of {} leaves a gap to {}", self.span, row.span);
            return Err(StoreError::new(ErrorKind::Refused, gap));
        }
        let missing = Extension::of(row.span, self.span.start(), self.span.end());
        Ok(if !missing.above.is_empty() {
            let chunk = self.first_chunk(missing.above);
            let place = if row.span.is_empty() {
                (chunk, chunk.start())
            } else {
                (Span::new(row.span.start(), chunk.end()), row.frontier)
            };
            Some(Laid { chunk, place: Some(place) })
        } else if !missing.below.is_empty() {
            let chunk = self.last_chunk(missing.below);
            Some(Laid { chunk, place: Some((Span::new(chunk.start(), row.span.end()), chunk.start())) })
        } else {
            None
        })
    }

    /// What is left after a chunk; none if all is laid.
    pub(crate) fn after(self, laid: &Laid) -> Option<Rest> {
        match laid.place {
            Some((span, _)) => {
                let done = span.start() <= self.span.start() && span.end() >= self.span.end();
                (!done).then_some(self)
            }
            None => {
                let span = Span::new(laid.chunk.end(), self.span.end());
                (!span.is_empty()).then_some(Rest { span, ..self })
            }
        }
    }

    /// The segments of a chunk.
    pub(crate) fn pieces(&self, chunk: Span) -> impl Iterator<Item = Span> {
        let bare = self.bare(chunk);
        let rest = Span::new(bare.end(), chunk.end());
        std::iter::once(bare).filter(|bare| !bare.is_empty()).chain(rest.cut(self.segment_size))
    }

    fn first_chunk(&self, span: Span) -> Span {
        Span::new(span.start(), self.bare(span).end().plus(self.reach()).min(span.end()))
    }

    fn last_chunk(&self, span: Span) -> Span {
        let start = span.end().minus(self.reach());
        Span::new(if start <= self.bare(span).end() { span.start() } else { start }, span.end())
    }

    /// The part of a span that is one segment.
    fn bare(&self, span: Span) -> Span {
        let until = self.bare_until.map_or(span.start(), |until| until.max(span.start()).min(span.end()));
        Span::new(span.start(), until)
    }

    fn reach(&self) -> u64 {
        self.segment_size.max(1).saturating_mul(CHUNK)
    }
}
