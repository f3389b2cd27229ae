//! The newest ids over time: what `maxitem` says, and which bodies are out already. A function of the time since the
//! start, and of the jumps that were asked for.

use std::{
    ops::RangeInclusive,
    sync::{PoisonError, RwLock},
    time::Duration,
};

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
    /// Few and far between, beside the plan: read by every request, written by hand.
    jumps: RwLock<Vec<Jump>>,
}

#[derive(Clone, Copy, Debug)]
struct Jump {
    at: Duration,
    by: u64,
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
            jumps: RwLock::default(),
        }
    }

    /// What `maxitem` says at first.
    pub(super) const fn start(&self) -> u64 {
        self.start
    }

    pub(super) fn max_item(&self, now: Duration) -> u64 {
        if self.start == self.last {
            return self.last;
        }
        let jumps = self.jumps.read().unwrap_or_else(PoisonError::into_inner);
        let jumped: u64 = jumps.iter().filter(|jump| jump.at <= now).map(|jump| jump.by).sum();
        self.start.saturating_add(self.grown(self.steps(now))).saturating_add(jumped).min(self.last)
    }

    /// When the plan has `maxitem` grow next; `None` when it has come to the end.
    pub(super) fn next_growth(&self, now: Duration) -> Option<Duration> {
        let next = u32::try_from(self.steps(now) + 1).ok()?;
        (self.max_item(now) < self.last).then(|| self.every * next)
    }

    pub(super) fn jump(&self, by: u64, at: Duration) {
        self.jumps.write().unwrap_or_else(PoisonError::into_inner).push(Jump { at, by: by.min(self.last) });
    }

    const fn steps(&self, now: Duration) -> u64 {
        (now.as_nanos() / self.every.as_nanos()) as u64
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
    fn a_jump_adds_to_the_growth_and_its_bodies_come_after_the_lag_too() {
        let head = head(1);
        let at = Duration::from_millis;
        head.jump(30, at(700));
        assert_eq!([499, 500, 699, 700, 1_000].map(|ms| head.max_item(at(ms))), [900, 901, 901, 931, 932]);
        assert_eq!([3_699, 3_700].map(|ms| head.published(at(ms))), [901, 931]);
        assert_eq!(head.next_growth(at(700)), Some(at(1_000)));
        head.jump(500, at(1_000));
        assert_eq!((head.max_item(at(1_000)), head.next_growth(at(1_000))), (1_000, None));
    }

    #[test]
    fn a_head_without_a_plan_is_all_out_at_once() {
        let head = Head::new(Seed(5), &HeadPlan::default(), &(1..=1_000));
        assert_eq!([head.max_item(Duration::ZERO), head.published(Duration::ZERO)], [1_000, 1_000]);
        assert_eq!(head.settled(), 949);
    }
}
