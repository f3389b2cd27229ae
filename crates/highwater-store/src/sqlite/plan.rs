//! Laying segments, a bounded number a transaction, so that they tile `[origin, target)` after each.

use highwater_core::{Extension, Purpose, Span, StreamId};
use rusqlite::{Connection, params};

use super::{
    error::{Fault, Sql},
    streams,
};

/// Segments a transaction.
const CHUNK: u64 = 1_000;

/// What is to be laid, as far as it is not laid yet.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    pub(super) stream: StreamId,
    pub(super) purpose: Purpose,
    pub(super) span: Span,
    pub(super) segment_size: u64,
}

impl Rest {
    /// Lays the next chunk; what is left after it.
    pub(super) fn lay(self, db: &Connection) -> Sql<Option<Rest>> {
        match self.purpose {
            Purpose::Catchup => self.extend(db),
            Purpose::Rescan => self.lay_rescan(db),
        }
    }

    /// Judged by the stream's row each time, so that a plan broken off and one laid twice end the same.
    fn extend(self, db: &Connection) -> Sql<Option<Rest>> {
        let row = streams::read(db, &self.stream)?;
        let missing = Extension::of(row.span, self.span.start(), self.span.end());
        if !row.span.is_empty() && (self.span.start() > row.span.end() || self.span.end() < row.span.start()) {
            return Err(Fault::refused(format!("a plan of {} leaves a gap to {}", self.span, row.span)));
        }
        let (chunk, laid, frontier) = if !missing.above.is_empty() {
            let chunk = first_chunk(missing.above, self.segment_size);
            if row.span.is_empty() {
                (chunk, chunk, chunk.start())
            } else {
                (chunk, Span::new(row.span.start(), chunk.end()), row.frontier)
            }
        } else if !missing.below.is_empty() {
            let chunk = last_chunk(missing.below, self.segment_size);
            (chunk, Span::new(chunk.start(), row.span.end()), chunk.start())
        } else {
            return Ok(None);
        };
        self.lay_chunk(db, chunk)?;
        streams::place(db, &self.stream, laid, frontier)?;
        let done = laid.start() <= self.span.start() && laid.end() >= self.span.end();
        Ok((!done).then_some(self))
    }

    fn lay_rescan(self, db: &Connection) -> Sql<Option<Rest>> {
        let chunk = first_chunk(self.span, self.segment_size);
        self.lay_chunk(db, chunk)?;
        let span = Span::new(chunk.end(), self.span.end());
        Ok((!span.is_empty()).then_some(Rest { span, ..self }))
    }

    fn lay_chunk(&self, db: &Connection, chunk: Span) -> Sql<()> {
        // A rescan that is still to be done need not be done twice.
        let mut insert = db.prepare_cached(
            "INSERT INTO ingest_segments (source, stream, purpose, start_pos, end_pos)
             SELECT ?1, ?2, ?3, ?4, ?5 WHERE ?3 <> 'rescan' OR NOT EXISTS (
                 SELECT 1 FROM ingest_segments
                 WHERE source = ?1 AND stream = ?2 AND start_pos = ?4 AND end_pos = ?5
                   AND purpose = 'rescan' AND status IN ('pending', 'in_progress'))",
        )?;
        let (source, stream) = (self.stream.source.as_str(), self.stream.stream.as_str());
        for piece in chunk.cut(self.segment_size) {
            insert.execute(params![source, stream, self.purpose.as_str(), piece.start().0, piece.end().0])?;
        }
        Ok(())
    }
}

fn first_chunk(span: Span, segment_size: u64) -> Span {
    Span::new(span.start(), span.start().plus(reach(segment_size)).min(span.end()))
}

fn last_chunk(span: Span, segment_size: u64) -> Span {
    Span::new(span.end().minus(reach(segment_size)).max(span.start()), span.end())
}

fn reach(segment_size: u64) -> u64 {
    segment_size.max(1).saturating_mul(CHUNK)
}
