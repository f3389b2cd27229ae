//! What a client may use: requests in any second and in any minute. It is told the time.

use std::{collections::VecDeque, num::NonZeroU32, time::Duration};

use super::plan::LookerQuota;
use crate::{
    answer::RetryAfter,
    rng::{Purpose, Seed, Share},
};

#[derive(Debug)]
pub(super) struct Meter {
    seed: Seed,
    windows: [Window; 2],
    tells: Share,
    refused: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) retry_after: Option<RetryAfter>,
}

impl Meter {
    pub(super) fn new(seed: Seed, quota: &LookerQuota) -> Self {
        let window = |length, max: Option<NonZeroU32>| Window {
            length: Duration::from_secs(length),
            max: max.map(|max| max.get() as usize),
            used: VecDeque::new(),
        };
        Meter {
            seed,
            windows: [window(1, quota.per_second), window(60, quota.per_minute)],
            tells: Share::new(quota.retry_after).unwrap_or(Share::NONE),
            refused: 0,
        }
    }

    /// What is refused uses nothing.
    pub(super) fn admit(&mut self, now: Duration) -> Result<(), Refusal> {
        let full = self.windows.iter_mut().filter_map(|window| window.full_until(now)).max();
        let Some(until) = full else {
            self.windows.iter_mut().for_each(|window| window.spend(now));
            return Ok(());
        };
        self.refused += 1;
        let tells = self.tells.hit(self.seed.hash(Purpose::LookerQuota, self.refused));
        let seconds = (until - now).as_millis().div_ceil(1_000).max(1);
        Err(Refusal { retry_after: tells.then_some(RetryAfter(u32::try_from(seconds).unwrap_or(u32::MAX))) })
    }
}

#[derive(Debug)]
struct Window {
    length: Duration,
    max: Option<usize>,
    /// When requests of the last such time were made, oldest first.
    used: VecDeque<Duration>,
}

impl Window {
    /// When it has room again, unless it has.
    fn full_until(&mut self, now: Duration) -> Option<Duration> {
        let max = self.max?;
        while self.used.front().is_some_and(|at| *at + self.length <= now) {
            self.used.pop_front();
        }
        (self.used.len() >= max).then(|| self.used[self.used.len() - max] + self.length)
    }

    fn spend(&mut self, now: Duration) {
        if self.max.is_some() {
            self.used.push_back(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_windows_slide_and_the_longer_wait_is_told() {
        let quota = LookerQuota { per_second: NonZeroU32::new(2), per_minute: NonZeroU32::new(3), retry_after: 1.0 };
        let mut meter = Meter::new(Seed(1), &quota);
        let mut at = |ms| meter.admit(Duration::from_millis(ms)).map_err(|refusal| refusal.retry_after.unwrap().0);
        assert_eq!([at(0), at(500)], [Ok(()), Ok(())]);
        assert_eq!(at(600), Err(1), "the second is full until 1,000");
        assert_eq!(at(1_000), Ok(()));
        assert_eq!(at(1_500), Err(59), "the minute is full until 60,000");
        assert_eq!(at(60_000), Ok(()));
    }
}
