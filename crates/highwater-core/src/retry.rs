//! How long to wait before a failed key is tried again.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Failures after which a key is a dead letter.
    pub attempts: u32,
    pub base: Duration,
    pub max: Duration,
}

impl RetryPolicy {
    /// Exponential from `base` up to `max`; `jitter` in `[0, 1)` takes off up to half, so that keys which failed
    /// together do not come back together.
    pub fn delay(&self, attempt: u32, jitter: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(30);
        let full = self.base.saturating_mul(1 << doublings).min(self.max);
        full.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
    }
}

impl Default for RetryPolicy {
    /// Eight tries over about a minute.
    fn default() -> Self {
        RetryPolicy { attempts: 8, base: Duration::from_millis(500), max: Duration::from_secs(300) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_delay_stays_between_half_and_the_whole_of_its_step(attempt in 1u32..100, jitter in 0.0f64..1.0) {
            let policy = RetryPolicy::default();
            let full = policy.delay(attempt, 0.0);
            let delay = policy.delay(attempt, jitter);
            prop_assert!(full <= policy.max && full >= policy.base);
            prop_assert!(delay <= full && delay >= full / 2);
        }
    }
}
