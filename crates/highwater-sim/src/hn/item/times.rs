//! When items were posted: as the plan's clock says, or twelve seconds apart since the first real one.

/// When the first real item was posted.
pub(in crate::hn) const EPOCH: i64 = 1_160_418_111;
/// Fifty million items in twenty years.
const SECONDS_PER_ITEM: u64 = 12;

#[derive(Clone, Copy, Debug)]
pub(in crate::hn) enum Times {
    SinceEpoch,
    /// `newest` is posted at `at`, its neighbours `apart` seconds before and after.
    Around {
        newest: u64,
        at: i64,
        apart: i64,
    },
}

impl Times {
    pub(super) const fn of(self, id: u64, hash: u64) -> i64 {
        match self {
            Times::SinceEpoch => EPOCH + (id * SECONDS_PER_ITEM + hash % SECONDS_PER_ITEM) as i64,
            Times::Around { newest, at, apart } => at + (id as i64 - newest as i64) * apart,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_on_at_the_same_pace_after_the_newest_of_the_start() {
        let times = Times::Around { newest: 100, at: 1_000_000, apart: 7 };
        assert_eq!([99, 100, 102].map(|id| times.of(id, 5)), [999_993, 1_000_000, 1_000_014]);
    }
}
