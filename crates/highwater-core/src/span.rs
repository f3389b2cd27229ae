//! The axis of a stream: positions and half-open ranges of them.

use std::fmt;

/// A place on the ordered line a stream is cut on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub i64);

impl Position {
    pub fn plus(self, steps: u64) -> Position {
        Position(self.0.saturating_add_unsigned(steps))
    }

    pub fn minus(self, steps: u64) -> Position {
        Position(self.0.saturating_sub_unsigned(steps))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A half-open range `[start, end)` of positions; may be empty, never reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    start: Position,
    end: Position,
}

impl Span {
    /// An `end` before `start` makes the span empty at `start`.
    pub fn new(start: Position, end: Position) -> Span {
        Span { start, end: end.max(start) }
    }

    pub fn start(&self) -> Position {
        self.start
    }

    pub fn end(&self) -> Position {
        self.end
    }

    pub fn len(&self) -> u64 {
        self.end.0.abs_diff(self.start.0)
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub fn contains(&self, position: Position) -> bool {
        self.start <= position && position < self.end
    }

    pub fn intersect(&self, other: Span) -> Span {
        Span::new(self.start.max(other.start), self.end.min(other.end))
    }

    /// Pieces of at most `size` positions in order, made one at a time: fifty million ids cost no memory.
    pub fn cut(self, size: u64) -> impl Iterator<Item = Span> {
        let size = size.max(1);
        let mut rest = self;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let piece = Span::new(rest.start, rest.start.plus(size).min(rest.end));
            rest.start = piece.end;
            Some(piece)
        })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_tile_the_span(start in -1000i64..1000, len in 0i64..5000, size in 0u64..700) {
            let span = Span::new(Position(start), Position(start + len));
            let mut next = span.start();
            for piece in span.cut(size) {
                prop_assert_eq!(piece.start(), next);
                prop_assert!(!piece.is_empty() && piece.len() <= size.max(1));
                next = piece.end();
            }
            prop_assert_eq!(next, span.end());
        }
    }

    #[test]
    fn the_whole_axis_has_a_length() {
        assert_eq!(Span::new(Position(i64::MIN), Position(i64::MAX)).len(), u64::MAX);
    }
}
