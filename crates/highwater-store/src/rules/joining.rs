//! Which small segments become one. A mirror that stays current lays a segment for every handful of new keys; joined,
//! they stay as few as those of a catch-up.

use highwater_core::{Position, SegmentId, Span};

/// Segments looked at in a transaction.
pub(crate) const JOINED_AT_ONCE: u32 = 200;

/// Neighbours that become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    /// The youngest: a database may give the number of the youngest row to another once it is gone.
    pub(crate) survivor: SegmentId,
    pub(crate) gone: Vec<SegmentId>,
    pub(crate) span: Span,
}

/// What to join of these, which are sealed and in order. Blocks of `size` positions are counted from the origin, and
/// whatever lies in one block becomes one: the same in the end, wherever a look at a part of the segments begins.
pub(crate) fn joined(origin: Position, size: u64, sealed: &[(SegmentId, Span)]) -> Vec<Joined> {
    let block = |position: Position| position.0.abs_diff(origin.0) / size.max(1);
    let inside = |span: &Span| {
        let block_of = block(span.start());
        (block_of == block(span.end().minus(1))).then_some(block_of)
    };
    let runs = sealed
        .chunk_by(|(_, a), (_, b)| a.end() == b.start() && inside(a).is_some_and(|block| inside(b) == Some(block)));
    runs.filter(|run| run.len() > 1).filter_map(join).collect()
}

fn join(run: &[(SegmentId, Span)]) -> Option<Joined> {
    let survivor = run.iter().map(|(id, _)| *id).max()?;
    let gone = run.iter().map(|(id, _)| *id).filter(|id| *id != survivor).collect();
    let span = Span::new(run.first()?.1.start(), run.last()?.1.end());
    Some(Joined { survivor, gone, span })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segments(ends: &[i64]) -> Vec<(SegmentId, Span)> {
        let starts = [1].into_iter().chain(ends.iter().copied());
        let spans = starts.zip(ends).map(|(start, end)| Span::new(Position(start), Position(*end)));
        (1..).map(SegmentId).zip(spans).collect()
    }

    fn apply(mut segments: Vec<(SegmentId, Span)>, joined: &[Joined]) -> Vec<(SegmentId, Span)> {
        for one in joined {
            segments.retain(|(id, _)| !one.gone.contains(id));
            let survivor = segments.iter_mut().find(|(id, _)| *id == one.survivor).unwrap();
            survivor.1 = one.span;
        }
        segments
    }

    proptest! {
        #[test]
        fn joined_segments_tile_and_fit_whatever_part_is_looked_at(
            ends in prop::collection::btree_set(2i64..300, 1..80), size in 1u64..40, part in 2usize..20
        ) {
            let ends: Vec<_> = ends.into_iter().collect();
            let last = *ends.last().unwrap();
            let mut all = segments(&ends);
            loop {
                let seen = all.len().saturating_sub(part);
                let found = joined(Position(1), size, &all[seen..]);
                if found.is_empty() {
                    break;
                }
                all = apply(all, &found);
                let mut next = 1;
                for (_, span) in &all {
                    prop_assert_eq!(span.start().0, next);
                    next = span.end().0;
                }
                prop_assert_eq!(next, last);
            }
            prop_assert!(all.iter().any(|(id, _)| id.0 as usize == ends.len()), "the youngest is still there");
            prop_assert!(all.iter().all(|(_, span)| span.len() <= size || ends.contains(&span.end().0)));
        }
    }

    #[test]
    fn neighbours_of_a_block_become_one() {
        let found = joined(Position(1), 10, &segments(&[4, 9, 11, 15, 25]));
        let span = Span::new(Position(1), Position(11));
        assert_eq!(found, [Joined { survivor: SegmentId(3), gone: vec![SegmentId(1), SegmentId(2)], span }]);
    }
}
