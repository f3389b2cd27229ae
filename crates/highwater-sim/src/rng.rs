//! Seeded randomness: one hash and one small generator (SplitMix64). Nothing else in the crate rolls dice, so a
//! seed replays a run byte for byte.

use std::{fmt, num::ParseIntError, str::FromStr};

/// The increment of SplitMix64: 2^64 divided by the golden ratio, made odd.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// What a whole simulation is derived from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seed(pub u64);

impl Seed {
    /// Uniform in all 64 bits for every pair. `purpose` keeps decisions about the same id independent.
    #[inline]
    pub const fn hash(self, purpose: Purpose, id: u64) -> u64 {
        mix(mix(self.0 ^ (purpose as u64).wrapping_mul(GAMMA)) ^ id.wrapping_mul(GAMMA))
    }

    /// As [`Seed::hash`], for the `nth` time something happens to `id`.
    #[inline]
    pub const fn hash_nth(self, purpose: Purpose, id: u64, nth: u64) -> u64 {
        mix(self.hash(purpose, id) ^ nth.wrapping_add(1).wrapping_mul(GAMMA))
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Seed {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Seed)
    }
}

/// What a hash decides. The numbers are part of what a seed means: append, never reorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    Kind = 1,
    Poll,
    State,
    Odd,
    Words,
    Fault,
    Script,
    Latency,
    Growth,
    User,
    List,
    /// For callers outside this crate.
    Test,
    Mutation,
    Stream,
    Letter,
    LetterOdd,
    Nature,
    Thread,
    MailLabel,
    MailDate,
    MailLife,
    History,
    PageToken,
    AccessToken,
    Attachment,
    LookerBody,
    LookerOrder,
    LookerLife,
    LookerToken,
    LookerQuota,
}

/// The finaliser of SplitMix64: a bijection in which every input bit reaches every output bit.
#[inline]
pub const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The SplitMix64 generator: a counter behind [`mix`].
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub const fn new(seed: u64) -> Self {
        SplitMix64 { state: seed }
    }

    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// Uniform in `0..bound`; zero when `bound` is zero. The bias is below `bound` / 2^64.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        scale(self.next_u64(), bound)
    }

    /// True in `numerator` of `denominator` draws.
    #[inline]
    pub const fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }
}

/// Maps a uniform 64-bit hash to `0..bound`.
#[inline]
pub const fn scale(hash: u64, bound: u64) -> u64 {
    ((hash as u128 * bound as u128) >> 64) as u64
}

/// A probability as a threshold on 64-bit hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u64);

impl Share {
    pub const NONE: Share = Share(0);

    /// `None` unless `0 <= probability <= 1`.
    pub fn new(probability: f64) -> Option<Share> {
        // The cast saturates, so that 1.0 becomes the largest threshold.
        (0.0..=1.0).contains(&probability).then_some(Share((probability * 2f64.powi(64)) as u64))
    }

    #[inline]
    pub const fn hit(self, hash: u64) -> bool {
        hash < self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // First outputs of the reference implementation for seed 1234567.
        let mut rng = SplitMix64::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn shares_hit_as_often_as_they_say() {
        let share = Share::new(0.25).unwrap();
        let hits = (0..10_000).filter(|id| share.hit(Seed(7).hash(Purpose::Test, *id))).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!(!Share::NONE.hit(0));
        assert!(Share::new(1.0).unwrap().hit(u64::MAX - 1));
        assert_eq!(Share::new(1.01), None);
    }
}
