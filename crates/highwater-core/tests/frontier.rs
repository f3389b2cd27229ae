//! The frontier against a naive model: a set of sealed positions.

use std::collections::BTreeSet;

use highwater_core::{Frontier, Position, Span};
use proptest::prelude::*;

/// Sealed positions one by one; the frontier is found by looking.
struct Naive {
    origin: i64,
    sealed: BTreeSet<i64>,
}

impl Naive {
    fn frontier(&self) -> i64 {
        (self.origin..).find(|position| !self.sealed.contains(position)).expect("the axis is longer than the set")
    }

    fn holes(&self, target: i64) -> BTreeSet<i64> {
        (self.origin..target).filter(|position| !self.sealed.contains(position)).collect()
    }
}

/// Segments of random sizes that tile an axis, in a random order.
fn shuffled_tiles() -> impl Strategy<Value = (i64, Vec<Span>)> {
    (-50i64..50, prop::collection::vec(1i64..9, 1..60)).prop_flat_map(|(origin, sizes)| {
        let mut start = origin;
        let tiles: Vec<Span> = sizes
            .iter()
            .map(|size| {
                let span = Span::new(Position(start), Position(start + size));
                start += size;
                span
            })
            .collect();
        (Just(origin), Just(tiles).prop_shuffle())
    })
}

proptest! {
    #[test]
    fn segments_in_any_order_move_the_frontier_over_gap_free_prefixes_only((origin, tiles) in shuffled_tiles()) {
        let target = tiles.iter().map(|tile| tile.end().0).max().unwrap();
        let mut frontier = Frontier::new(Position(origin));
        let mut naive = Naive { origin, sealed: BTreeSet::new() };
        for tile in tiles {
            let moved = frontier.seal(tile).unwrap();
            naive.sealed.extend(tile.start().0..tile.end().0);
            prop_assert_eq!(moved.0, naive.frontier());
            let holes: BTreeSet<i64> =
                frontier.holes(Position(target)).flat_map(|hole| hole.start().0..hole.end().0).collect();
            prop_assert_eq!(holes, naive.holes(target));
        }
        prop_assert_eq!(frontier.position().0, target);
    }

    #[test]
    fn a_segment_that_overlaps_a_sealed_one_is_refused_and_changes_nothing(
        (origin, tiles) in shuffled_tiles(),
        start in -60i64..400,
        len in 1i64..20,
    ) {
        let mut frontier = Frontier::new(Position(origin));
        let mut sealed = BTreeSet::new();
        for tile in &tiles[..tiles.len() / 2] {
            frontier.seal(*tile).unwrap();
            sealed.extend(tile.start().0..tile.end().0);
        }
        let before = frontier.position();
        let span = Span::new(Position(start), Position(start + len));
        let overlaps = start < origin || (start..start + len).any(|position| sealed.contains(&position));
        let refused = frontier.clone().seal(span).is_err();
        prop_assert_eq!(refused, overlaps);
        if refused {
            prop_assert!(frontier.seal(span).is_err());
            prop_assert_eq!(frontier.position(), before);
        }
    }
}

#[test]
fn sixty_thousand_segments_in_random_order() {
    let tiles: Vec<Span> = Span::new(Position(1), Position(60_000_001)).cut(1000).collect();
    assert_eq!(tiles.len(), 60_000);
    // A fixed shuffle: steps of a number without a common factor with the length.
    let shuffled: Vec<Span> = (0..tiles.len()).map(|index| tiles[index * 37_879 % tiles.len()]).collect();
    let mut frontier = Frontier::new(Position(1));
    for tile in shuffled {
        frontier.seal(tile).unwrap();
    }
    assert_eq!(frontier.position(), Position(60_000_001));
}
