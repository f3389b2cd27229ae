//! The mirror's own books: segments tile the axis, the frontier follows from them, and every position has one state.

use std::collections::BTreeMap;

use highwater_core::{Exception, ExceptionState, Frontier, Key, Position, Purpose, Segment, SegmentStatus, Span};
use highwater_sources::{Density, StreamSpec};
use highwater_store::{ExceptionFilter, Page, StoredRow};

use super::{FindingKind, StreamVerdict};
use crate::{Engine, error::Result};

pub(super) type Exceptions = BTreeMap<Key, ExceptionState>;

const PAGE: u32 = 2000;

pub(super) async fn audit(engine: &Engine, spec: &StreamSpec, verdict: &mut StreamVerdict) -> Result<Exceptions> {
    let exceptions = read_exceptions(engine, spec).await?;
    let segments = read_segments(engine, spec).await?;
    audit_segments(&segments, verdict);
    if spec.density == Density::Dense {
        audit_positions(engine, spec, &segments, &exceptions, verdict).await?;
    }
    Ok(exceptions)
}

async fn read_exceptions(engine: &Engine, spec: &StreamSpec) -> Result<Exceptions> {
    let id = engine.stream_id(spec);
    let mut all = Exceptions::new();
    let mut after = None;
    loop {
        let page = Page { after: after.clone(), limit: PAGE };
        let exceptions: Vec<Exception> = engine.store.exceptions(&id, ExceptionFilter::default(), page).await?;
        let Some(last) = exceptions.last() else { return Ok(all) };
        after = Some(last.key.clone());
        all.extend(exceptions.into_iter().map(|exception| (exception.key, exception.state)));
    }
}

/// Catch-up segments only; a rescan may lie over them.
async fn read_segments(engine: &Engine, spec: &StreamSpec) -> Result<Vec<Segment>> {
    let id = engine.stream_id(spec);
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let segments = engine.store.segments(&id, Page { after, limit: PAGE }).await?;
        let Some(last) = segments.last() else { return Ok(all) };
        after = Some((last.span.start(), last.id));
        all.extend(segments.into_iter().filter(|segment| segment.purpose == Purpose::Catchup));
    }
}

fn audit_segments(segments: &[Segment], verdict: &mut StreamVerdict) {
    let (origin, target) = (verdict.status.origin, verdict.status.target);
    let mut next = origin;
    let mut frontier = Frontier::new(origin);
    for segment in segments {
        if segment.span.start() != next {
            verdict.book_errors.push(format!("segment {} does not begin at {next}", segment.span));
        }
        next = segment.span.end();
        if segment.status == SegmentStatus::Sealed
            && let Err(overlap) = frontier.seal(segment.span)
        {
            verdict.book_errors.push(overlap.to_string());
        }
    }
    if next != target {
        verdict.book_errors.push(format!("segments end at {next}, not at the target {target}"));
    }
    if frontier.position() != verdict.status.frontier {
        let (said, found) = (verdict.status.frontier, frontier.position());
        verdict.book_errors.push(format!("the frontier says {said}, the segments say {found}"));
    }
}

/// Walks rows and positions side by side.
async fn audit_positions(
    engine: &Engine,
    spec: &StreamSpec,
    segments: &[Segment],
    exceptions: &Exceptions,
    verdict: &mut StreamVerdict,
) -> Result<()> {
    let span = Span::new(verdict.status.origin, verdict.status.target);
    let mut next = span.start();
    let mut after = Some(Key::Number(span.start().minus(1).0));
    while next < span.end() {
        let rows = engine.store.rows(spec.table, Page { after, limit: PAGE }).await?;
        let done = rows.len() < PAGE as usize;
        for row in &rows {
            let Some(position) = row.key.number().map(Position).filter(|position| span.contains(*position)) else {
                continue;
            };
            audit_gap(Span::new(next, position), segments, exceptions, verdict);
            audit_row(row, exceptions, verdict);
            next = position.plus(1);
        }
        if done {
            break;
        }
        after = rows.last().map(|row| row.key.clone());
    }
    audit_gap(Span::new(next, span.end()), segments, exceptions, verdict);
    if verdict.stored != verdict.status.stored {
        let (said, found) = (verdict.status.stored, verdict.stored);
        verdict.book_errors.push(format!("{found} rows are stored, {said} were counted when they were written"));
    }
    Ok(())
}

fn audit_row(row: &StoredRow, exceptions: &Exceptions, verdict: &mut StreamVerdict) {
    verdict.stored += 1;
    if row.body.checksum() != row.row_check {
        verdict.found(row.key.clone(), FindingKind::Differs, "the row is not the one that was written");
    }
    if let Some(state) = exceptions.get(&row.key)
        && *state != ExceptionState::RetryWait
    {
        verdict.book_errors.push(format!("key {} is stored and {state} at once", row.key));
    }
}

/// Positions without a row: each needs an exception, unless its segment has not been worked on yet.
fn audit_gap(gap: Span, segments: &[Segment], exceptions: &Exceptions, verdict: &mut StreamVerdict) {
    let first = segments.partition_point(|segment| segment.span.end() <= gap.start());
    for segment in segments[first..].iter().take_while(|segment| segment.span.start() < gap.end()) {
        let part = segment.span.intersect(gap);
        let worked_on = !matches!(segment.status, SegmentStatus::Pending | SegmentStatus::InProgress);
        for position in part.start().0..part.end().0 {
            let key = Key::Number(position);
            if exceptions.contains_key(&key) {
                continue;
            }
            if worked_on {
                verdict.found(key, FindingKind::Unexplained, "no row and no exception");
            } else {
                verdict.pending += 1;
            }
        }
    }
}
