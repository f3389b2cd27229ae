//! What to do when there is nothing to do: wait for a retry that is worth it, or end.

use std::time::Duration;

use highwater_core::{Event, Moment, Timestamp};

use super::{Dispatcher, DrainEnd, Scope};
use crate::error::Result;

/// Others may plan what we do not hear of.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(super) enum Idle {
    /// Work is under way.
    Busy,
    Wait(Moment),
    Done,
}

impl Dispatcher {
    pub(super) async fn idle(&mut self, scope: Scope) -> Result<Idle> {
        let busy = !self.ready.is_empty()
            || !self.running.is_empty()
            || self.claiming.is_some()
            || self.claim_again_at.is_none()
            || self.probing.is_some();
        if busy {
            return Ok(Idle::Busy);
        }
        if scope == Scope::AtHand {
            self.claim_again_at = None;
            return Ok(Idle::Done);
        }
        let engine = &self.worker.engine;
        let outlook = engine.steady(|| engine.store.outlook(&self.worker.stream.id)).await?;
        let now = engine.now();
        if scope == Scope::Endless {
            let next = [outlook.next_retry_at, outlook.next_unpublished_at].into_iter().flatten().min();
            let wait = next.map_or(LOOK_AGAIN, |at| at.since(now).min(LOOK_AGAIN));
            return Ok(Idle::Wait(self.wait(wait)));
        }
        let retry = outlook.next_retry_at.and_then(|at| self.worth_waiting(at, now));
        if scope == Scope::Retries {
            return Ok(retry.map_or(Idle::Done, |wait| Idle::Wait(self.wait(wait))));
        }
        let head = outlook.next_unpublished_at.and_then(|at| self.head_worth_waiting(at, now));
        let open = (outlook.open > 0).then_some(Duration::from_millis(100));
        match [retry, head, open].into_iter().flatten().min() {
            Some(wait) => Ok(Idle::Wait(self.wait(wait))),
            None => Ok(Idle::Done),
        }
    }

    fn worth_waiting(&self, at: Timestamp, now: Timestamp) -> Option<Duration> {
        let wait = at.since(now);
        (wait <= self.worker.engine.settings.patience.retry).then_some(wait)
    }

    /// The head is waited for as one: from the first time that nothing else was left to do.
    fn head_worth_waiting(&mut self, at: Timestamp, now: Timestamp) -> Option<Duration> {
        let moment = self.worker.engine.world.clock.moment();
        let patience = self.worker.engine.settings.patience.head;
        let deadline = *self.head_deadline.get_or_insert(moment + patience);
        let wait = at.since(now);
        (moment + wait <= deadline).then_some(wait)
    }

    fn wait(&mut self, wait: Duration) -> Moment {
        let engine = &self.worker.engine;
        if wait > Duration::from_secs(1) {
            engine.emit(Event::Waiting { until: engine.now() + wait });
        }
        let until = engine.world.clock.moment() + wait;
        self.claim_again_at = Some(until);
        until
    }

    /// Whether the remote will not be back within our patience.
    pub(super) fn hopeless(&mut self, scope: Scope) -> Option<DrainEnd> {
        if scope == Scope::Endless {
            return None;
        }
        let engine = &self.worker.engine;
        let now = engine.world.clock.moment();
        let patience = engine.settings.patience.retry;
        if let Some(until) = self.refusals.shut_out(engine) {
            return Some(DrainEnd::GateClosed { until });
        }
        match self.worker.guard.health() {
            highwater_core::Health::Out { since, .. } if now.since(since) > patience => {
                Some(DrainEnd::Outage { kind: self.worker.guard.kind() })
            }
            _ => None,
        }
    }
}
