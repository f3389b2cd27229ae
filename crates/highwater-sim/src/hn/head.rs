//! The newest ids over time: what `maxitem` says, and which bodies are out already. A function of the time since the
//! start.

use std::{ops::RangeInclusive, time::Duration};

use crate::{
    plan::HeadPlan,
    rng::{Purpose, Seed, scale},
};

/// A `null` is believed only so far behind `maxitem`; permanent nulls nearer would keep clients waiting for ever.
const BELIEVED_BEHIND: u64 = 50;

#[derive(Debug)]
pub(super) struct Head {
    seed: Seed,
    start: u64,
    last: u64,
    hidden_first: u64,
    lag: Duration,
    stride: u64,
    every: Duration,
}

impl Head {
    pub(super) fn new(seed: Seed, plan: &HeadPlan, ids: &RangeInclusive<u64>) -> Self {
        let start = ids.end().saturating_sub(u64::from(plan.behind)).max(*ids.start());
        Head {
            seed,
            start,
            last: *ids.end(),
            hidden_first: start.saturating_sub(u64::from(plan.lag_ids)),
            lag: Duration::from_millis(u64::from(plan.lag_ms)),
            stride: u64::from(plan.jump_max.get()).div_ceil(2),
            every: Duration::from_millis(u64::from(plan.every_ms.get())),
        }
    }

    pub(super) fn max_item(&self, now: Duration) -> u64 {
        let steps = (now.as_nanos() / self.every.as_nanos()) as u64;
        self.start.saturating_add(self.grown(steps)).min(self.last)
    }

    /// The highest id whose body is out.
    pub(super) fn published(&self, now: Duration) -> u64 {
        match now.checked_sub(self.lag) {
            Some(earlier) => self.max_item(earlier),
            None => self.hidden_first,
        }
    }

    /// The highest id whose nulls a client may believe in the end.
    pub(super) fn settled(&self) -> u64 {
        self.hidden_first.min(self.last.saturating_sub(BELIEVED_BEHIND + 1))
    }

    /// A stride each step, and a wobble of less than a stride: jumps of 1 to twice the stride less one, known for
    /// any step without adding up those before.
    fn grown(&self, steps: u64) -> u64 {
        if steps == 0 {
            return 0;
        }
        let wobble = scale(self.seed.hash(Purpose::Growth, steps), self.stride);
        steps.saturating_mul(self.stride).saturating_sub(self.stride - 1 - wobble)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn head(jump_max: u32) -> Head {
        let plan = HeadPlan {
            lag_ids: 20,
            lag_ms: 3_000,
            behind: 100,
            jump_max: NonZeroU32::new(jump_max).unwrap(),
            every_ms: NonZeroU32::new(500).unwrap(),
        };
        Head::new(Seed(5), &plan, &(1..=1_000))
    }

    #[test]
    fn maxitem_grows_in_jumps_up_to_the_end() {
        for jump_max in [1, 2, 9, 10] {
            let head = head(jump_max);
            let seen: Vec<u64> = (0..1_000).map(|step| head.max_item(Duration::from_millis(500 * step))).collect();
            assert_eq!((seen[0], *seen.last().unwrap()), (900, 1_000));
            let jumps: Vec<u64> = seen.windows(2).map(|pair| pair[1] - pair[0]).take_while(|jump| *jump > 0).collect();
            assert!(jumps.iter().all(|jump| *jump <= u64::from(jump_max)), "{jumps:?}");
            assert_eq!(jumps.iter().sum::<u64>(), 100, "every step before the end grows");
        }
    }

    #[test]
    fn bodies_follow_maxitem_after_the_lag() {
        let head = head(9);
        let at = |millis| head.published(Duration::from_millis(millis));
        assert_eq!([at(0), at(2_999), at(3_000)], [880, 880, 900]);
        assert_eq!(at(5_000), head.max_item(Duration::from_millis(2_000)));
        assert_eq!(head.settled(), 880);
    }

    #[test]
    fn a_head_without_a_plan_is_all_out_at_once() {
        let head = Head::new(Seed(5), &HeadPlan::default(), &(1..=1_000));
        assert_eq!([head.max_item(Duration::ZERO), head.published(Duration::ZERO)], [1_000, 1_000]);
        assert_eq!(head.settled(), 949);
    }
}
