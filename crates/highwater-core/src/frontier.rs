//! Ordered frontier commit: segments finish in any order, the frontier only crosses a gap-free prefix.

use std::collections::BTreeMap;

use crate::{Position, Span};

/// The frontier of a stream and the sealed islands beyond it. Islands are merged, so that each completion costs
/// O(log n) and memory follows the number of gaps, not of segments.
#[derive(Clone, Debug)]
pub struct Frontier {
    origin: Position,
    at: Position,
    /// Sealed spans beyond the frontier: start to end, disjoint and never adjacent.
    islands: BTreeMap<Position, Position>,
}

/// Two segments claim the same positions: the plan is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("segment {0} overlaps positions that are sealed already")]
pub struct Overlap(pub Span);

impl Frontier {
    pub fn new(origin: Position) -> Self {
        Frontier { origin, at: origin, islands: BTreeMap::new() }
    }

    pub fn position(&self) -> Position {
        self.at
    }

    pub fn origin(&self) -> Position {
        self.origin
    }

    /// Marks `span` sealed and returns where the frontier stands now.
    pub fn seal(&mut self, span: Span) -> Result<Position, Overlap> {
        if span.is_empty() {
            return Ok(self.at);
        }
        if span.start() < self.at || self.overlaps_island(span) {
            return Err(Overlap(span));
        }
        let merged = self.merge_with_neighbours(span);
        if merged.start() == self.at {
            self.at = merged.end();
        } else {
            self.islands.insert(merged.start(), merged.end());
        }
        Ok(self.at)
    }

    /// The unsealed ranges below `target`, lowest first.
    pub fn holes(&self, target: Position) -> impl Iterator<Item = Span> {
        let starts = std::iter::once(self.at).chain(self.islands.values().copied());
        let ends = self.islands.keys().copied().chain(std::iter::once(target));
        starts.zip(ends).map(move |(start, end)| Span::new(start, end.min(target))).filter(|hole| !hole.is_empty())
    }

    fn overlaps_island(&self, span: Span) -> bool {
        let before = self.islands.range(..span.end()).next_back();
        before.is_some_and(|(_, end)| *end > span.start())
    }

    fn merge_with_neighbours(&mut self, span: Span) -> Span {
        let mut start = span.start();
        let mut end = span.end();
        if let Some((&left, &touching)) = self.islands.range(..start).next_back()
            && touching == start
        {
            self.islands.remove(&left);
            start = left;
        }
        if let Some(right_end) = self.islands.remove(&end) {
            end = right_end;
        }
        Span::new(start, end)
    }
}
