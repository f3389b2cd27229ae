//! Repeatable randomness for the simulation (SplitMix64): the same seed gives the same run on every machine.

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// In `[0, 1)`.
    pub(crate) fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About log-normal with the given median: the sum of twelve fractions is close to a normal distribution.
    pub(crate) fn latency(&mut self, median: f64) -> f64 {
        let normal = (0..12).map(|_| self.fraction()).sum::<f64>() - 6.0;
        median * (0.3 * normal).exp()
    }
}
