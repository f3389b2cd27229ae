//! Which item was the first of a date: a binary search over the items' own times, which hardly ever go back. Items
//! without a usable time are stepped over, and the search is bounded, so that nothing odd can make it fail or go on.

use highwater_core::{Failure, Position, Timestamp};

use super::{COST, Hn, expect_ok, head_request, item, read_head};
use crate::{Call, GatewayError};

/// Fifty million items take 26 halvings; the rest is for items to step over.
const REQUESTS_MAX: u32 = 72;
/// How far from an item without a usable time the next ones are asked for: unpublished ids come in runs.
const STEPS: [i64; 8] = [0, 1, 2, 4, 8, 16, 32, 64];
/// Neighbours in time that are not neighbours in id. A time further outside of what is known of both sides is wrong: a
/// few items are years off.
const SLACK: i64 = 24 * 3600;
/// So many of the newest are asked how late it is: everything hangs on that, and one of them may be years off.
const WITNESSES: usize = 5;

impl Hn {
    /// The lowest id that is not known to be older than `at`.
    pub(super) async fn first_since(&self, at: Timestamp, call: &Call) -> Result<Position, Failure> {
        let head = read_head(&self.gateway.get(&head_request(), call, COST).await?)?;
        let at = at.as_millis().div_euclid(1000);
        let now = self.now().as_millis().div_euclid(1000);
        let mut search = Search { low: 1, high: head.0, earliest: i64::MIN, latest: now, requests: 0 };
        let newest = STEPS.map(|step| head.0 - 1 - step);
        let newest = self.times(&newest, WITNESSES, &mut search, call).await?;
        if let Some((id, _)) = newest.first().filter(|_| newest.iter().all(|(_, time)| *time < at)) {
            return Ok(Position(id + 1));
        }
        search.latest = median(newest).unwrap_or(now);
        while search.low < search.high && search.requests < REQUESTS_MAX {
            let middle = search.low + (search.high - search.low) / 2;
            let found = self.times(&STEPS.map(|step| middle + step), 1, &mut search, call).await?;
            search.narrow(middle, found.first().copied(), at);
        }
        Ok(Position(search.low))
    }

    /// The first `most` of these ids that have a usable time. Fails only if not one of them is answered for.
    async fn times(
        &self,
        ids: &[i64],
        most: usize,
        search: &mut Search,
        call: &Call,
    ) -> Result<Vec<(i64, i64)>, Failure> {
        let mut found = Vec::new();
        let mut failed = None;
        let mut answered = false;
        for id in ids.iter().copied().filter(|id| (search.low..search.high).contains(id)) {
            if found.len() == most {
                break;
            }
            search.requests += 1;
            match self.time_of(id, call).await {
                Ok(Some(time)) if search.admits(time) => found.push((id, time)),
                Ok(_) => answered = true,
                Err(GatewayError::Failed(failure)) => failed = Some(failure),
                Err(stopped @ GatewayError::Stopped(_)) => return Err(stopped.into()),
            }
        }
        match failed {
            Some(failure) if !answered && found.is_empty() => Err(failure),
            _ => Ok(found),
        }
    }

    async fn time_of(&self, id: i64, call: &Call) -> Result<Option<i64>, GatewayError> {
        let response = self.gateway.get(&item::request(id), call, COST).await?;
        Ok(item::time(id, expect_ok(&response)?)?)
    }
}

fn median(found: Vec<(i64, i64)>) -> Option<i64> {
    let mut times: Vec<i64> = found.into_iter().map(|(_, time)| time).collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

/// Ids below `low` are older than the date, those from `high` on are not; with the times next to both ends, in seconds.
struct Search {
    low: i64,
    high: i64,
    earliest: i64,
    latest: i64,
    requests: u32,
}

impl Search {
    fn admits(&self, time: i64) -> bool {
        time >= self.earliest.saturating_sub(SLACK) && time <= self.latest.saturating_add(SLACK)
    }

    /// What is not known to be older is rather mirrored than left out.
    fn narrow(&mut self, middle: i64, found: Option<(i64, i64)>, at: i64) {
        match found {
            Some((id, time)) if time < at => {
                self.low = id + 1;
                self.earliest = self.earliest.max(time);
            }
            Some((_, time)) => {
                self.high = middle;
                self.latest = self.latest.min(time);
            }
            None => self.high = middle,
        }
    }
}
