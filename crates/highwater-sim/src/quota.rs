//! The quota of the simulated API and the memory of what `Retry-After` it handed out. Both are told the time.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::{answer::RetryAfter, plan::QuotaPlan};

/// A token bucket in one word: the moment (ns) at which the bucket would be full again.
#[derive(Debug)]
pub(crate) struct Quota {
    full_at: AtomicU64,
    interval_ns: u64,
    burst_ns: u64,
    retry_after: Option<RetryAfter>,
}

/// A request over quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) retry_after: Option<RetryAfter>,
}

impl Quota {
    /// `None` when the plan sets no rate.
    pub(crate) fn new(plan: &QuotaPlan) -> Option<Quota> {
        let interval_ns = (1_000_000_000 / u64::from(plan.per_second?.get())).max(1);
        let burst = u64::from(plan.burst.map_or(1, |burst| burst.get()));
        Some(Quota {
            full_at: AtomicU64::new(0),
            interval_ns,
            burst_ns: interval_ns * burst,
            retry_after: plan.retry_after(),
        })
    }

    pub(crate) fn take(&self, now: Duration) -> Result<(), Refusal> {
        let now = nanos(now);
        let spend = |full_at: u64| {
            let next = full_at.max(now) + self.interval_ns;
            (next - now <= self.burst_ns).then_some(next)
        };
        match self.full_at.fetch_update(Relaxed, Relaxed, spend) {
            Ok(_) => Ok(()),
            Err(_) => Err(Refusal { retry_after: self.retry_after }),
        }
    }
}

/// Remembers the period in which the client was told not to call.
#[derive(Debug, Default)]
pub(crate) struct ClosedPeriod {
    /// When the last request to wait reaches whom it is for.
    told_at: AtomicU64,
    from: AtomicU64,
    until: AtomicU64,
    /// Two words change together; only replies with `Retry-After` take it.
    change: Mutex<()>,
}

impl ClosedPeriod {
    /// Requests already on the wire when the reply reaches the client are no violation.
    const GRACE: Duration = Duration::from_millis(100);

    pub(crate) fn close(&self, told_at: Duration, until: Duration) {
        let _guard = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        self.told_at.fetch_max(nanos(told_at), Relaxed);
        let told_at = told_at + Self::GRACE;
        if nanos(told_at) > self.until.load(Relaxed) {
            self.from.store(nanos(told_at), Relaxed);
        }
        self.until.fetch_max(nanos(until), Relaxed);
    }

    pub(crate) fn told_at(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.told_at.load(Relaxed))).filter(|at| !at.is_zero())
    }

    pub(crate) fn contains(&self, now: Duration) -> bool {
        let now = nanos(now);
        now < self.until.load(Relaxed) && now >= self.from.load(Relaxed)
    }
}

/// 584 years fit.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn quota(per_second: u32, burst: u32) -> Quota {
        let plan = QuotaPlan {
            per_second: NonZeroU32::new(per_second),
            burst: NonZeroU32::new(burst),
            retry_after_s: NonZeroU32::new(2),
        };
        Quota::new(&plan).unwrap()
    }

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let quota = quota(10, 3);
        let passed = |at| quota.take(at).is_ok();
        assert_eq!([0; 4].map(|at| passed(ms(at))), [true, true, true, false]);
        assert!(!passed(ms(99)));
        assert!(passed(ms(100)));
        assert!(!passed(ms(101)));
        assert_eq!([2_000; 4].map(|at| passed(ms(at))), [true, true, true, false]);
    }

    #[test]
    fn a_refusal_carries_the_wait() {
        let quota = quota(1, 1);
        quota.take(ms(0)).unwrap();
        assert_eq!(quota.take(ms(1)), Err(Refusal { retry_after: Some(RetryAfter(2)) }));
    }

    #[test]
    fn the_closed_period_starts_when_the_client_can_know() {
        let closed = ClosedPeriod::default();
        assert!(!closed.contains(ms(0)));
        closed.close(ms(1_000), ms(3_000));
        assert_eq!([1_050, 1_100, 2_999, 3_000].map(|at| closed.contains(ms(at))), [false, true, true, false]);
        closed.close(ms(2_000), ms(4_000));
        assert!(closed.contains(ms(2_050)), "still inside the first period");
        closed.close(ms(9_000), ms(9_500));
        assert_eq!([4_000, 9_000, 9_100].map(|at| closed.contains(ms(at))), [false, false, true]);
    }
}
