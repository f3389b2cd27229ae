//! A stream whose keys are names: every name of its list has a row or a reason, and every row is the one that was
//! written.

use std::collections::BTreeSet;

use highwater_core::{Key, Position, Segment, SegmentStatus, Span};
use highwater_sources::StreamSpec;
use highwater_store::Page;

use super::{FindingKind, StreamVerdict, again, books::is_sound};
use crate::{Engine, error::Result};

const PAGE: u32 = 2000;

pub(super) struct List<'a> {
    pub(super) engine: &'a Engine,
    pub(super) spec: &'a StreamSpec,
    pub(super) segments: &'a [Segment],
}

impl List<'_> {
    pub(super) async fn audit(&self, verdict: &mut StreamVerdict) -> Result<()> {
        self.audit_rows(verdict).await?;
        let mut start = verdict.status.origin;
        while start < verdict.status.target {
            let end = start.plus(u64::from(PAGE)).min(verdict.status.target);
            self.audit_part(Span::new(start, end), verdict).await?;
            start = end;
        }
        Ok(())
    }

    async fn audit_rows(&self, verdict: &mut StreamVerdict) -> Result<()> {
        let mut after = None;
        loop {
            let rows = self.engine.store.rows(self.spec.table, Page { after, limit: PAGE }).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.key.clone());
            for row in rows.iter().filter(|row| !is_sound(row)) {
                if again::row(self.engine, self.spec, &row.key).await?.is_none_or(|row| !is_sound(&row)) {
                    let detail = "the row is not the one that was written";
                    verdict.found(row.key.clone(), FindingKind::Differs, detail);
                }
            }
        }
    }

    async fn audit_part(&self, part: Span, verdict: &mut StreamVerdict) -> Result<()> {
        let names = self.engine.store.listed(&self.engine.stream_id(self.spec), part).await?;
        let known = again::keys(self.engine, self.spec, names.clone()).await?;
        let excepted: BTreeSet<&Key> = known.exceptions.iter().map(|exception| &exception.key).collect();
        for (name, nth) in names.into_iter().zip(0..) {
            if known.stored.contains(&name) {
                verdict.stored += 1;
            } else if excepted.contains(&name) {
                // Counted with the exceptions of the stream.
            } else if self.is_pending(part.start().plus(nth), verdict) {
                verdict.pending += 1;
            } else if again::state(self.engine, self.spec, &name).await? == (None, false) {
                verdict.found(name, FindingKind::Unexplained, "no row and no exception");
            }
        }
        Ok(())
    }

    fn is_pending(&self, position: Position, verdict: &StreamVerdict) -> bool {
        let at = self.segments.partition_point(|segment| segment.span.end() <= position);
        self.segments.get(at).is_some_and(|segment| {
            let is_untried = matches!(segment.status, SegmentStatus::Pending | SegmentStatus::InProgress);
            is_untried && segment.span.end() > verdict.status.frontier
        })
    }
}
