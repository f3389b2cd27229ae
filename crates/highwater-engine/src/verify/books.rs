//! The mirror's own books: segments tile the axis, the frontier follows from them, and every position has one state.

use std::collections::{BTreeMap, BTreeSet};

use highwater_core::{
    DeadLetterPolicy, Exception, ExceptionState, Frontier, Key, Position, Purpose, Segment, SegmentStatus, Span,
};
use highwater_sources::{Density, StreamSpec};
use highwater_store::{ExceptionFilter, Page, StoredRow, StreamRow};

use super::{FindingKind, StreamVerdict, again, names::List};
use crate::{Engine, error::Result};

pub(super) type Exceptions = BTreeMap<Key, ExceptionState>;

const PAGE: u32 = 2000;
/// How often segments that contradict the stream's row are read before that is told.
const LOOKS: u32 = 3;

pub(super) async fn audit(engine: &Engine, spec: &StreamSpec, verdict: &mut StreamVerdict) -> Result<Exceptions> {
    let exceptions = read_exceptions(engine, spec).await?;
    let segments = audit_segments(engine, spec, verdict).await?;
    let sealed = segments.iter().filter(|segment| segment.status == SegmentStatus::Sealed);
    verdict.sealed = sealed.map(|segment| segment.span).collect();
    match spec.density {
        Density::Dense => {
            let walk = Walk { engine, spec, segments: &segments, exceptions: &exceptions };
            walk.audit(verdict).await?;
            walk.audit_exceptions(verdict);
        }
        Density::Named(_) => List { engine, spec, segments: &segments }.audit(verdict).await?,
        Density::Sparse | Density::Snapshot(_) => {}
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

async fn audit_segments(engine: &Engine, spec: &StreamSpec, verdict: &mut StreamVerdict) -> Result<Vec<Segment>> {
    let policy = engine.settings.applied_to(spec.policy).dead_letters;
    for look in 1.. {
        let before = again::stream(engine, spec).await?;
        let segments = read_segments(engine, spec).await?;
        let after = again::stream(engine, spec).await?;
        let (Some(before), Some(after)) = (before, after) else { break };
        let books = Books { before, after, policy };
        let errors = books.errors(&segments);
        if errors.is_empty() || look == LOOKS {
            verdict.book_errors.extend(errors);
            verdict.reopened = segments.iter().filter(|segment| books.is_reopened(segment)).count() as u64;
            return Ok(segments);
        }
    }
    verdict.book_errors.push("the stream's row is gone".into());
    Ok(Vec::new())
}

/// The stream's row as it was before and after the segments were read: what moves meanwhile must lie in between.
struct Books {
    before: StreamRow,
    after: StreamRow,
    policy: DeadLetterPolicy,
}

impl Books {
    fn errors(&self, segments: &[Segment]) -> Vec<String> {
        let mut errors = Vec::new();
        let origin = segments.first().map_or(self.before.span.start(), |segment| segment.span.start());
        let mut next = self.between("segments begin", origin, |row| row.span.start(), &mut errors);
        let mut frontier = Frontier::new(origin);
        for segment in segments {
            if segment.span.start() != next {
                errors.push(format!("segment {} does not begin at {next}", segment.span));
            }
            next = segment.span.end();
            let settled = segment.status == SegmentStatus::Sealed || self.is_reopened(segment);
            if settled && let Err(overlap) = frontier.seal(segment.span) {
                errors.push(overlap.to_string());
            }
        }
        self.between("segments end", next, |row| row.span.end(), &mut errors);
        self.between("the segments put the frontier", frontier.position(), |row| row.frontier, &mut errors);
        errors
    }

    /// Passed by with dead letters, which were put back to work: that undoes nothing that was promised.
    fn is_reopened(&self, segment: &Segment) -> bool {
        self.policy == DeadLetterPolicy::Pass
            && segment.status != SegmentStatus::Sealed
            && segment.span.end() <= self.before.frontier
    }

    fn between(
        &self,
        what: &str,
        found: Position,
        said: impl Fn(&StreamRow) -> Position,
        errors: &mut Vec<String>,
    ) -> Position {
        let (before, after) = (said(&self.before), said(&self.after));
        if found < before.min(after) || found > before.max(after) {
            errors.push(format!("{what} at {found}, the stream's row says {before}"));
        }
        found
    }
}

/// Rows and positions side by side.
struct Walk<'a> {
    engine: &'a Engine,
    spec: &'a StreamSpec,
    segments: &'a [Segment],
    exceptions: &'a Exceptions,
}

impl Walk<'_> {
    async fn audit(&self, verdict: &mut StreamVerdict) -> Result<()> {
        let span = Span::new(verdict.status.origin, verdict.status.target);
        let mut next = span.start();
        let mut after = Some(Key::Number(span.start().minus(1).0));
        while next < span.end() {
            let rows = self.engine.store.rows(self.spec.table, Page { after, limit: PAGE }).await?;
            let done = rows.len() < PAGE as usize;
            for row in &rows {
                let Some(position) = row.key.number().map(Position).filter(|position| span.contains(*position)) else {
                    continue;
                };
                self.audit_gap(Span::new(next, position), verdict).await?;
                self.audit_row(row, verdict).await?;
                next = position.plus(1);
            }
            if done {
                break;
            }
            after = rows.last().map(|row| row.key.clone());
        }
        self.audit_gap(Span::new(next, span.end()), verdict).await?;
        self.audit_count(verdict).await
    }

    /// Each is about a position that was planned.
    fn audit_exceptions(&self, verdict: &mut StreamVerdict) {
        // Segments were read after the exceptions: what was planned meanwhile is among them.
        let (Some(first), Some(last)) = (self.segments.first(), self.segments.last()) else { return };
        let span = Span::new(first.span.start(), last.span.end());
        let is_within = |key: &&Key| key.number().is_some_and(|position| span.contains(Position(position)));
        for key in self.exceptions.keys().filter(|key| !is_within(key)) {
            verdict.book_errors.push(format!("{key} has an exception and lies outside of what is mirrored"));
        }
    }

    /// Rows that a live feed has told of and nobody has planned yet.
    async fn count_beyond(&self, target: Position) -> Result<u64> {
        let mut after = Some(Key::Number(target.minus(1).0));
        let mut count = 0;
        loop {
            let rows = self.engine.store.rows(self.spec.table, Page { after, limit: PAGE }).await?;
            let Some(last) = rows.last() else { return Ok(count) };
            after = Some(last.key.clone());
            count += rows.len() as u64;
        }
    }

    /// Rows are only ever added.
    async fn audit_count(&self, verdict: &mut StreamVerdict) -> Result<()> {
        let said = verdict.status.stored.saturating_sub(self.count_beyond(verdict.status.target).await?);
        let by_now = again::stream(self.engine, self.spec).await?.map_or(said, |row| row.stored);
        if !(said.min(by_now)..=said.max(by_now)).contains(&verdict.stored) {
            let found = verdict.stored;
            verdict.book_errors.push(format!("{found} rows are stored, {said} were counted when they were written"));
        }
        Ok(())
    }

    async fn audit_row(&self, row: &StoredRow, verdict: &mut StreamVerdict) -> Result<()> {
        verdict.stored += 1;
        if !is_sound(row) && again::row(self.engine, self.spec, &row.key).await?.is_none_or(|row| !is_sound(&row)) {
            verdict.found(row.key.clone(), FindingKind::Differs, "the row is not the one that was written");
        }
        if self.exceptions.get(&row.key).is_some_and(|state| contradicts_a_row(*state))
            && let (Some(state), true) = again::state(self.engine, self.spec, &row.key).await?
            && contradicts_a_row(state)
        {
            verdict.book_errors.push(format!("key {} is stored and {state} at once", row.key));
        }
        Ok(())
    }

    /// Positions without a row: each needs an exception, unless its segment has not been worked on yet.
    async fn audit_gap(&self, gap: Span, verdict: &mut StreamVerdict) -> Result<()> {
        let first = self.segments.partition_point(|segment| segment.span.end() <= gap.start());
        for segment in self.segments[first..].iter().take_while(|segment| segment.span.start() < gap.end()) {
            let part = segment.span.intersect(gap);
            let keys = (part.start().0..part.end().0).map(Key::Number);
            let open: Vec<Key> = keys.filter(|key| !self.exceptions.contains_key(key)).collect();
            if open.is_empty() {
                continue;
            }
            let untried = matches!(segment.status, SegmentStatus::Pending | SegmentStatus::InProgress);
            if untried && segment.span.end() > verdict.status.frontier {
                verdict.pending += open.len() as u64;
                continue;
            }
            let known = again::span(self.engine, self.spec, part).await?;
            let excepted: BTreeSet<&Key> = known.exceptions.iter().map(|exception| &exception.key).collect();
            for key in open.into_iter().filter(|key| !known.stored.contains(key) && !excepted.contains(key)) {
                verdict.found(key, FindingKind::Unexplained, "no row and no exception");
            }
        }
        Ok(())
    }
}

pub(super) fn is_sound(row: &StoredRow) -> bool {
    row.body.checksum() == row.row_check
}

/// A stored key may wait to be looked at again, or have been looked for in vain; no other state goes with a row.
pub(super) fn contradicts_a_row(state: ExceptionState) -> bool {
    matches!(state, ExceptionState::Missing | ExceptionState::Excluded)
}
