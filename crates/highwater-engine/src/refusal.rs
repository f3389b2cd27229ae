//! A remote that keeps asking to be left alone: waited for, but not for longer than the run's patience.

use std::time::Duration;

use highwater_core::{
    Moment,
    throttle::{GateState, PauseReason},
};

use crate::Engine;

const LOOK: Duration = Duration::from_millis(250);

/// Remembers when the remote last took a request.
pub(crate) struct RefusalWatch {
    accepted: u64,
    accepted_at: Moment,
}

impl RefusalWatch {
    pub(crate) fn new(engine: &Engine) -> Self {
        RefusalWatch { accepted: 0, accepted_at: engine.world.clock.moment() }
    }

    /// Until when the remote refuses us, if that is further away than our patience, or has lasted for longer.
    pub(crate) fn shut_out(&mut self, engine: &Engine) -> Option<Moment> {
        let now = engine.world.clock.moment();
        let patience = engine.settings.patience.retry;
        let gateway = engine.source.gateway();
        let (snapshot, traffic) = (gateway.snapshot(), gateway.traffic());
        let accepted = traffic.requests.saturating_sub(traffic.throttled + u64::from(snapshot.in_flight));
        if accepted > self.accepted || traffic.throttled == 0 {
            (self.accepted, self.accepted_at) = (accepted, now);
        }
        match snapshot.gate {
            GateState::Closed { until, reason: PauseReason::RetryAfter | PauseReason::Refusals } => {
                (until > now + patience || now.since(self.accepted_at) > patience).then_some(until)
            }
            _ => None,
        }
    }

    /// Returns once the remote has shut us out.
    pub(crate) async fn until_shut_out(mut self, engine: &Engine) -> Moment {
        loop {
            if let Some(until) = self.shut_out(engine) {
                return until;
            }
            engine.world.clock.sleep(LOOK).await;
        }
    }
}
