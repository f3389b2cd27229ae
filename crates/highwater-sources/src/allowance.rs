//! How many calls may be made: counted by kind, and refused before the operator's bound is passed.

use std::sync::atomic::{AtomicU64, Ordering};

use highwater_core::{Failure, FailureKind, word};

use crate::Request;

word! {
    /// What a call counts as.
    pub enum Activity {
        Query = "query",
        NonQuery = "non_query",
    }
}

pub struct Allowance {
    /// The most calls of this run, and of all runs of a month.
    run: Option<u64>,
    month: Option<u64>,
    activity_of: fn(&Request) -> Activity,
    spent: AtomicU64,
    /// By earlier runs of this month.
    spent_before: AtomicU64,
    queries: AtomicU64,
}

impl Allowance {
    pub fn new(run: Option<u64>, month: Option<u64>, activity_of: fn(&Request) -> Activity) -> Self {
        Allowance {
            run,
            month,
            activity_of,
            spent: AtomicU64::new(0),
            spent_before: AtomicU64::new(0),
            queries: AtomicU64::new(0),
        }
    }

    pub fn has_month(&self) -> bool {
        self.month.is_some()
    }

    /// What other runs of this month have spent.
    pub fn note_before(&self, calls: u64) {
        self.spent_before.store(calls, Ordering::Relaxed);
    }

    /// Calls of this run, by kind.
    pub fn calls(&self) -> [(Activity, u64); 2] {
        let (all, queries) = (self.spent.load(Ordering::Relaxed), self.queries.load(Ordering::Relaxed));
        [(Activity::Query, queries), (Activity::NonQuery, all.saturating_sub(queries))]
    }

    pub fn activity_of(&self, request: &Request) -> Activity {
        (self.activity_of)(request)
    }

    /// One more call, unless it would be one too many.
    pub(crate) fn take(&self, request: &Request) -> Result<(), Failure> {
        let bound = self.bound();
        let spend = |spent: u64| bound.is_none_or(|(most, _)| spent < most).then_some(spent + 1);
        match self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend) {
            Ok(_) => {
                if self.activity_of(request) == Activity::Query {
                    self.queries.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            }
            Err(_) => {
                let which = bound.map_or("max_calls", |(_, which)| which);
                Err(Failure::new(FailureKind::Spent, format!("the calls that {which} allows are made")))
            }
        }
    }

    /// The lower of the two bounds, as calls of this run.
    fn bound(&self) -> Option<(u64, &'static str)> {
        let before = self.spent_before.load(Ordering::Relaxed);
        let month = self.month.map(|most| (most.saturating_sub(before), "max_calls_month"));
        [self.run.map(|most| (most, "max_calls")), month].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowance(run: Option<u64>, month: Option<u64>) -> Allowance {
        Allowance::new(
            run,
            month,
            |request| {
                if request.path.contains("queries") { Activity::Query } else { Activity::NonQuery }
            },
        )
    }

    #[test]
    fn a_call_too_many_is_refused_and_not_counted() {
        let three = allowance(Some(3), None);
        for path in ["/queries/a", "/looks", "/looks"] {
            three.take(&Request::get(path)).unwrap();
        }
        let refused = three.take(&Request::get("/looks")).unwrap_err();
        assert_eq!((refused.kind, refused.message.contains("max_calls ")), (FailureKind::Spent, true));
        assert_eq!(three.calls(), [(Activity::Query, 1), (Activity::NonQuery, 2)]);
    }

    #[test]
    fn what_other_runs_of_the_month_have_spent_counts() {
        let month = allowance(Some(100), Some(10));
        month.note_before(9);
        month.take(&Request::get("/looks")).unwrap();
        assert!(month.take(&Request::get("/looks")).unwrap_err().message.contains("max_calls_month"));
        assert!(allowance(None, None).take(&Request::get("/looks")).is_ok());
    }
}
