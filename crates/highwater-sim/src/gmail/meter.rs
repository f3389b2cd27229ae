//! What a client may use: units in any minute, requests at once, bytes a day, and the penalty box behind it all. It is
//! told the time.

mod minute;

use std::{collections::VecDeque, time::Duration};

use self::minute::Minute;
use super::plan::{GmailQuota, PenaltyPlan, Throttle};

const MINUTE: Duration = Duration::from_secs(60);
const DAY_S: u64 = 86_400;

#[derive(Debug)]
pub(super) struct Meter {
    quota: GmailQuota,
    penalty: PenaltyPlan,
    user: Minute,
    project: Minute,
    /// When the requests under way end.
    ends: Vec<Duration>,
    day: u64,
    bytes: u64,
    refusals: VecDeque<Duration>,
    refused: usize,
    boxed_until: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Throttled(Throttle),
    /// The minute has room again at this moment.
    Until(Duration),
    /// In the penalty box until then.
    Boxed(Duration),
    Concurrent,
    Daily,
}

impl Refusal {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Refusal::Throttled(shape) => shape.as_str(),
            Refusal::Until(_) => Throttle::RetryAfter.as_str(),
            Refusal::Boxed(_) => "penalty",
            Refusal::Concurrent => "concurrent",
            Refusal::Daily => "daily",
        }
    }
}

impl Meter {
    pub(super) fn new(quota: &GmailQuota, penalty: &PenaltyPlan) -> Self {
        Meter {
            user: Minute::new(quota.per_minute.map(|max| max.get())),
            project: Minute::new(quota.project_per_minute.map(|max| max.get())),
            quota: quota.clone(),
            penalty: penalty.clone(),
            ends: Vec::new(),
            day: 0,
            bytes: 0,
            refusals: VecDeque::new(),
            refused: 0,
            boxed_until: Duration::ZERO,
        }
    }

    /// Uses `cost` units, unless something speaks against it. What is refused uses none.
    pub(super) fn admit(&mut self, cost: u32, now: Duration) -> Result<(), Refusal> {
        if now < self.boxed_until {
            self.boxed_until += Duration::from_secs(u64::from(self.penalty.extend_s));
            return Err(Refusal::Boxed(self.boxed_until));
        }
        self.forget(now);
        if self.quota.concurrent.is_some_and(|max| self.ends.len() >= max.get() as usize) {
            return Err(self.count_refusal(Refusal::Concurrent, now));
        }
        if self.quota.bytes_per_day.is_some_and(|max| self.bytes >= max) {
            return Err(Refusal::Daily);
        }
        if !self.user.has_room(cost, now) {
            let refusal = self.throttle(cost);
            return Err(self.count_refusal(refusal, now));
        }
        if !self.project.has_room(cost, now) {
            return Err(self.count_refusal(Refusal::Throttled(Throttle::Project), now));
        }
        self.user.spend(cost, now);
        self.project.spend(cost, now);
        Ok(())
    }

    /// A request is under way until `end`.
    pub(super) fn occupy(&mut self, end: Duration) {
        if self.quota.concurrent.is_some() {
            self.ends.push(end);
        }
    }

    pub(super) fn count_bytes(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Into the penalty box, whatever the refusals were.
    pub(super) fn punish(&mut self, until: Duration) {
        self.boxed_until = self.boxed_until.max(until);
    }

    fn forget(&mut self, now: Duration) {
        self.refusals.retain(|at| *at + MINUTE > now);
        self.ends.retain(|end| *end > now);
        if now.as_secs() / DAY_S != self.day {
            (self.day, self.bytes) = (now.as_secs() / DAY_S, 0);
        }
    }

    fn throttle(&mut self, cost: u32) -> Refusal {
        let shape = self.quota.shapes[self.refused % self.quota.shapes.len()];
        self.refused += 1;
        match shape {
            Throttle::RetryAfter => Refusal::Until(self.user.room_at(cost)),
            shape => Refusal::Throttled(shape),
        }
    }

    fn count_refusal(&mut self, refusal: Refusal, now: Duration) -> Refusal {
        self.refusals.push_back(now);
        if self.penalty.after.is_none_or(|after| self.refusals.len() < after.get() as usize) {
            return refusal;
        }
        self.refusals.clear();
        self.boxed_until = now + Duration::from_secs(u64::from(self.penalty.for_s));
        Refusal::Boxed(self.boxed_until)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn meter(quota: GmailQuota, penalty: PenaltyPlan) -> Meter {
        Meter::new(&quota, &penalty)
    }

    fn a_minute(units: u32) -> GmailQuota {
        GmailQuota { per_minute: NonZeroU32::new(units), ..GmailQuota::default() }
    }

    #[test]
    fn the_minute_slides() {
        let mut meter = meter(a_minute(100), PenaltyPlan::default());
        assert_eq!(meter.admit(60, s(0)), Ok(()));
        assert_eq!(meter.admit(40, s(30)), Ok(()));
        assert_eq!(meter.admit(1, s(59)), Err(Refusal::Throttled(Throttle::Modern)));
        assert_eq!(meter.admit(60, s(60)), Ok(()), "what was used at 0 is a minute ago");
        assert_eq!(meter.admit(1, s(89)), Err(Refusal::Throttled(Throttle::Modern)));
        assert_eq!(meter.admit(40, s(90)), Ok(()));
    }

    #[test]
    fn refusals_take_turns_and_can_name_the_time() {
        let shapes = vec![Throttle::Backend, Throttle::RetryAfter];
        let mut meter = meter(GmailQuota { shapes, ..a_minute(10) }, PenaltyPlan::default());
        meter.admit(4, s(5)).unwrap();
        meter.admit(6, s(7)).unwrap();
        assert_eq!(meter.admit(5, s(8)), Err(Refusal::Throttled(Throttle::Backend)));
        assert_eq!(meter.admit(5, s(8)), Err(Refusal::Until(s(67))), "the 4 of second 5 do not suffice");
    }

    #[test]
    fn the_penalty_box_grows_when_hit() {
        let penalty = PenaltyPlan { after: NonZeroU32::new(2), for_s: 100, extend_s: 10, status: 429 };
        let mut meter = meter(a_minute(1), penalty);
        meter.admit(1, s(0)).unwrap();
        assert_eq!(meter.admit(1, s(1)), Err(Refusal::Throttled(Throttle::Modern)));
        assert_eq!(meter.admit(1, s(2)), Err(Refusal::Boxed(s(102))));
        assert_eq!(meter.admit(1, s(101)), Err(Refusal::Boxed(s(112))));
        assert_eq!(meter.admit(1, s(112)), Ok(()));
    }

    #[test]
    fn the_project_has_a_minute_of_its_own() {
        let quota = GmailQuota { project_per_minute: NonZeroU32::new(30), ..a_minute(100) };
        let mut meter = meter(quota, PenaltyPlan::default());
        assert_eq!(meter.admit(30, s(0)), Ok(()));
        assert_eq!(meter.admit(1, s(59)), Err(Refusal::Throttled(Throttle::Project)));
        assert_eq!(meter.admit(30, s(60)), Ok(()));
    }

    #[test]
    fn requests_at_once_and_bytes_a_day_are_bounded() {
        let quota = GmailQuota { concurrent: NonZeroU32::new(1), bytes_per_day: Some(1_000), ..GmailQuota::default() };
        let mut meter = meter(quota, PenaltyPlan::default());
        meter.admit(1, s(0)).unwrap();
        meter.occupy(s(2));
        assert_eq!(meter.admit(1, s(1)), Err(Refusal::Concurrent));
        assert_eq!(meter.admit(1, s(2)), Ok(()));
        meter.count_bytes(1_000);
        assert_eq!(meter.admit(1, s(3)), Err(Refusal::Daily));
        assert_eq!(meter.admit(1, s(DAY_S)), Ok(()), "another day");
    }
}
