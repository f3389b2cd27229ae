//! Halving a failing batch until the failure is one key.

use crate::planted::{Bug, planted};

/// What to do with a batch of `len` keys that has failed as a whole `failures` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// Once may be chance.
    TryAgain,
    Split,
    /// It is this one key.
    Blame,
}

pub fn after_failure(len: usize, failures: u32) -> AfterFailure {
    match (len, failures) {
        (_, 0..=1) => AfterFailure::TryAgain,
        (0..=1, _) => AfterFailure::Blame,
        _ => AfterFailure::Split,
    }
}

/// The two halves of a batch; between them they hold every key once.
pub fn halves<T>(mut keys: Vec<T>) -> (Vec<T>, Vec<T>) {
    let mut right = keys.split_off(keys.len().div_ceil(2));
    if planted(Bug::DropOnSplit) {
        right.pop();
    }
    (keys, right)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Plays a batch in which some keys always fail; returns the blamed keys, the stored ones and the tries it took.
    fn isolate(len: usize, bad: &[usize]) -> (Vec<usize>, Vec<usize>, usize) {
        let (mut blamed, mut stored, mut tries) = (Vec::new(), Vec::new(), 0);
        let mut queue = vec![((0..len).collect::<Vec<_>>(), 0)];
        while let Some((keys, failures)) = queue.pop() {
            tries += 1;
            if !keys.iter().any(|key| bad.contains(key)) {
                stored.extend(keys);
                continue;
            }
            match after_failure(keys.len(), failures + 1) {
                AfterFailure::TryAgain => queue.push((keys, failures + 1)),
                AfterFailure::Blame => blamed.extend(keys),
                AfterFailure::Split => {
                    let (left, right) = halves(keys);
                    // Halves of a batch that failed twice are known to be suspect: no second chance each.
                    queue.extend([(left, 1), (right, 1)]);
                }
            }
        }
        (blamed, stored, tries)
    }

    proptest! {
        #[test]
        fn every_key_is_stored_or_blamed_and_only_bad_ones_are_blamed(len in 1usize..300, seeds in prop::collection::vec(0usize..300, 0..6)) {
            let mut bad: Vec<usize> = seeds.into_iter().map(|seed| seed % len).collect();
            bad.sort_unstable();
            bad.dedup();
            let (mut blamed, mut stored, _) = isolate(len, &bad);
            blamed.sort_unstable();
            prop_assert_eq!(&blamed, &bad);
            stored.extend(blamed);
            stored.sort_unstable();
            prop_assert_eq!(stored, (0..len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_bad_key_among_64_costs_at_most_14_tries() {
        for bad in 0..64 {
            assert!(isolate(64, &[bad]).2 <= 2 * 6 + 2);
        }
    }
}
