//! How many bytes may be downloaded in a day. How large an answer is shows only when it is there: so one is asked for
//! only if it fits together with all that are under way, each taken to be as large as most.

use std::sync::{Mutex, MutexGuard};

use highwater_core::{Downloads, Failure, FailureKind, Timestamp};
use tokio::sync::Notify;

use crate::{Clock, Request};

/// A message as an answer, before any was seen.
const USUAL: u64 = 100_000;

pub struct Budget {
    most: u64,
    /// What may be large, and waits for room. All else is counted, too.
    is_large: fn(&Request) -> bool,
    /// Held for a few instructions, never over an await.
    state: Mutex<State>,
    came_back: Notify,
}

#[derive(Default)]
struct State {
    /// Of this run, and of all others.
    own: Downloads,
    others: Downloads,
    under_way: u64,
    /// Large answers that came, to know what is usual.
    large: u64,
    large_bytes: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Say {
    Go,
    /// There may be room when what is under way has come.
    Wait,
    Spent {
        until: Timestamp,
    },
}

/// A large answer that is asked for.
pub(crate) struct UnderWay<'a>(&'a Budget);

impl Budget {
    pub fn new(most: u64, is_large: fn(&Request) -> bool) -> Self {
        Budget { most, is_large, state: Mutex::default(), came_back: Notify::new() }
    }

    /// A run begins; all that counts is what others have downloaded, or earlier runs.
    pub fn begin(&self, others: Downloads) {
        let mut state = self.lock();
        (state.own, state.others) = (Downloads::default(), others);
    }

    /// What others have downloaded up to now.
    pub fn note_others(&self, others: Downloads) {
        self.lock().others = others;
    }

    /// What this run has downloaded, as far as it counts.
    pub fn own(&self, now: Timestamp) -> Downloads {
        let mut state = self.lock();
        state.own.forget(now);
        state.own.clone()
    }

    pub(crate) fn received(&self, bytes: usize, now: Timestamp) {
        self.lock().own.add(now, bytes as u64);
    }

    /// Waits as long as others under way may leave room. None for what is not large.
    pub(crate) async fn enter(&self, request: &Request, clock: &Clock) -> Result<Option<UnderWay<'_>>, Failure> {
        if !(self.is_large)(request) {
            return Ok(None);
        }
        loop {
            let mut came_back = std::pin::pin!(self.came_back.notified());
            // From here on nothing that comes back is missed.
            came_back.as_mut().enable();
            let now = clock.now();
            match self.decide(now) {
                Say::Go => return Ok(Some(UnderWay(self))),
                Say::Wait => came_back.await,
                Say::Spent { until } => return Err(spent(until, now)),
            }
        }
    }

    fn decide(&self, now: Timestamp) -> Say {
        let mut state = self.lock();
        let say = state.decide(self.most, now);
        if say == Say::Go {
            state.under_way += 1;
        }
        say
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}

fn spent(until: Timestamp, now: Timestamp) -> Failure {
    let failure = Failure::new(FailureKind::Spent, "the bytes of a day that max_bytes_day allows are downloaded");
    Failure { retry_after: Some(until.since(now)), ..failure }
}

impl State {
    fn decide(&self, most: u64, now: Timestamp) -> Say {
        let used = self.own.total(now).saturating_add(self.others.total(now));
        let usual = self.usual(most);
        let expected = usual.saturating_mul(self.under_way + 1);
        if used.saturating_add(expected) <= most {
            Say::Go
        } else if self.under_way > 0 {
            Say::Wait
        } else {
            Say::Spent { until: self.own.joined(&self.others).falls_to(most - usual, now) }
        }
    }

    /// What is larger than the whole budget comes as well, when little else counts.
    fn usual(&self, most: u64) -> u64 {
        self.large_bytes.checked_div(self.large).unwrap_or(USUAL).min(most / 2)
    }
}

impl UnderWay<'_> {
    /// It has come whole.
    pub(crate) fn came(&self, bytes: usize) {
        let mut state = self.0.lock();
        state.large += 1;
        state.large_bytes = state.large_bytes.saturating_add(bytes as u64);
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.lock().under_way -= 1;
        self.0.came_back.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_772_359_200_000);
    const HOUR: Duration = Duration::from_secs(3_600);

    fn budget(most: u64) -> Budget {
        Budget::new(most, |request| request.path.contains("messages/"))
    }

    fn large() -> Request {
        Request::get("/messages/1")
    }

    /// Asks, and has the answer at once.
    fn fetch(budget: &Budget, clock: &Clock, bytes: usize) -> Result<(), Failure> {
        let under_way = budget.enter(&large(), clock).now_or_never().expect("nothing is under way")?.unwrap();
        budget.received(bytes, clock.now());
        under_way.came(bytes);
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn what_would_pass_the_budget_is_refused_until_there_is_room_again() {
        let clock = Clock::simulated(NOW);
        let budget = budget(1_000_000);
        let fetched = (0..).take_while(|_| fetch(&budget, &clock, 150_000).is_ok()).count();
        assert_eq!(fetched, 6, "a seventh would be too much");
        let refused = fetch(&budget, &clock, 150_000).unwrap_err();
        assert_eq!((refused.kind, refused.retry_after), (FailureKind::Spent, Some(25 * HOUR)));
        assert!(refused.message.contains("max_bytes_day"));
        clock.sleep(25 * HOUR).await;
        fetch(&budget, &clock, 150_000).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_others_have_downloaded_counts() {
        let clock = Clock::simulated(NOW);
        let budget = budget(1_000_000);
        budget.begin([(NOW.minus(20 * HOUR), 500_000), (NOW.minus(2 * HOUR), 450_000)].into_iter().collect());
        let refused = fetch(&budget, &clock, 1).unwrap_err();
        assert_eq!(refused.retry_after, Some(5 * HOUR), "the older half is enough");
        budget.note_others(Downloads::default());
        fetch(&budget, &clock, 1).unwrap();
        assert_eq!(budget.own(NOW).total(NOW), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn near_the_end_one_waits_for_those_under_way() {
        let clock = Clock::simulated(NOW);
        let budget = budget(250_000);
        let (one, two) = (large(), large());
        let first = budget.enter(&one, &clock).await.unwrap().unwrap();
        let second = budget.enter(&two, &clock).await.unwrap().unwrap();
        let third_request = large();
        let mut third = std::pin::pin!(budget.enter(&third_request, &clock));
        assert!(third.as_mut().now_or_never().is_none(), "two are as much as there is room for");
        for under_way in [first, second] {
            budget.received(10_000, NOW);
            under_way.came(10_000);
            drop(under_way);
        }
        assert!(third.await.unwrap().is_some(), "they were smaller than most");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_small_is_counted_and_never_waits() {
        let clock = Clock::simulated(NOW);
        let budget = budget(1_000);
        let list = Request::get("/messages?q=after:1");
        budget.received(5_000, NOW);
        assert!(budget.enter(&list, &clock).await.unwrap().is_none());
        assert_eq!(fetch(&budget, &clock, 1).unwrap_err().kind, FailureKind::Spent);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_larger_than_the_budget_comes_when_little_else_counts() {
        let clock = Clock::simulated(NOW);
        let budget = budget(1_000);
        budget.received(400, NOW);
        fetch(&budget, &clock, 50_000).unwrap();
        let refused = fetch(&budget, &clock, 50_000).unwrap_err();
        clock.sleep(refused.retry_after.unwrap()).await;
        fetch(&budget, &clock, 50_000).unwrap();
    }
}
