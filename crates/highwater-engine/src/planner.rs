//! Decides what a stream must cover, and has it laid out as segments.

use highwater_core::{Event, Extension, Position, Purpose, Span, Timestamp};
use highwater_store::{Plan, StreamRow};

use crate::{
    context::{Engine, StreamContext},
    error::Result,
};

/// The range an operator asked for, in positions of the axis; both ends inclusive, as people count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    pub from: Option<Position>,
    /// As `from`, once the source has said which position that is.
    pub since: Option<Timestamp>,
    pub to: Option<Position>,
    /// The last so many before the end; sets the origin as `from` does.
    pub last: Option<u64>,
}

impl Range {
    /// The asked-for range as a span that ends no later than the head.
    pub fn resolve(&self, origin: Position, head: Position) -> Span {
        let end = self.to.map_or(head, |to| to.plus(1).min(head));
        let start = match (self.from, self.last) {
            (Some(from), _) => from,
            (None, Some(last)) => end.minus(last),
            (None, None) => origin,
        };
        Span::new(start.max(origin).min(end), end)
    }

    pub fn sets_origin(&self) -> bool {
        self.from.is_some() || self.since.is_some() || self.last.is_some()
    }
}

/// Extends the stream so that it covers `wanted`; returns how many positions are new.
pub(crate) async fn extend(
    engine: &Engine,
    stream: &StreamContext,
    row: &StreamRow,
    wanted: Span,
    range: &Range,
) -> Result<u64> {
    let origin = if row.span.is_empty() || range.sets_origin() { wanted.start() } else { row.span.start() };
    let extension = Extension::of(row.span, origin, wanted.end());
    let is_planned =
        |gap: &Span| [extension.below, extension.above].iter().any(|part| !part.intersect(*gap).is_empty());
    if let Some(gap) = gap(row.span, wanted).filter(is_planned) {
        engine.emit(Event::Bridged { gap });
    }
    for span in [extension.below, extension.above] {
        lay(engine, stream, span, Purpose::Catchup, None).await?;
    }
    Ok(extension.below.len() + extension.above.len())
}

/// A mirror has no holes: what lies between two ranges belongs to it.
fn gap(mirrored: Span, wanted: Span) -> Option<Span> {
    if mirrored.is_empty() || wanted.is_empty() {
        return None;
    }
    let (low, high) = (mirrored.end().min(wanted.end()), mirrored.start().max(wanted.start()));
    (low < high).then(|| Span::new(low, high))
}

/// Has a range that is covered already looked at again.
pub(crate) async fn rescan(engine: &Engine, stream: &StreamContext, span: Span) -> Result<()> {
    lay(engine, stream, span, Purpose::Rescan, None).await
}

/// What lies before `bare_until` is one segment.
pub(crate) async fn lay(
    engine: &Engine,
    stream: &StreamContext,
    span: Span,
    purpose: Purpose,
    bare_until: Option<Position>,
) -> Result<()> {
    if span.is_empty() {
        return Ok(());
    }
    let segment_size = stream.segment_size();
    let plan = Plan { stream: &stream.id, purpose, span, segment_size, bare_until };
    engine.steady(|| engine.store.plan(plan.clone())).await?;
    let bare = bare_until.map_or(span.start(), |until| until.max(span.start()).min(span.end()));
    let rest = Span::new(bare, span.end());
    let segments = u64::from(bare > span.start()) + rest.len().div_ceil(segment_size);
    engine.emit(Event::Planned { stream: stream.id.clone(), span, segments });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_two_ranges_is_a_gap() {
        let span = |start, end| Span::new(Position(start), Position(end));
        assert_eq!(gap(span(901, 1001), span(1, 301)), Some(span(301, 901)));
        assert_eq!(gap(span(1, 301), span(901, 1001)), Some(span(301, 901)));
        for other in [span(1, 11), span(11, 21), span(5, 8), span(0, 1), span(30, 30)] {
            assert_eq!(gap(span(1, 11), other), None, "{other}");
        }
        assert_eq!(gap(span(7, 7), span(1, 3)), None, "nothing is mirrored yet");
    }

    #[test]
    fn a_range_is_clamped_to_what_exists() {
        let resolve = |from, to, last| {
            let range =
                Range { from: Option::map(from, Position), to: Option::map(to, Position), last, ..Range::default() };
            let span = range.resolve(Position(1), Position(101));
            (span.start().0, span.end().0)
        };
        assert_eq!(resolve(None, None, None), (1, 101));
        assert_eq!(resolve(Some(10), Some(20), None), (10, 21));
        assert_eq!(resolve(Some(-5), Some(500), None), (1, 101));
        assert_eq!(resolve(None, None, Some(10)), (91, 101));
        assert_eq!(resolve(None, Some(50), Some(10)), (41, 51));
        assert_eq!(resolve(None, None, Some(1000)), (1, 101));
        assert_eq!(resolve(Some(300), None, None), (101, 101));
    }
}
