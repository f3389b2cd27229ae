//! Of several processes on one store one listens, the others stand by. The role is a row with a time to live: it is
//! free again when its owner is dead, stopped or cut off from the store, whichever way it came about.

use std::time::Duration;

use highwater_core::Event;
use highwater_store::{LISTENER, RoleAsk};

use super::Service;
use crate::error::Result;

impl Service {
    /// Takes the role if it is free.
    pub(super) async fn take_role(&self) -> Result<bool> {
        let ask = self.role_ask();
        let taken = self.engine.steady(|| self.engine.store.take_role(&ask)).await?;
        self.pulse.note(|pulse| pulse.is_listener = taken);
        if taken {
            self.engine.emit(Event::RoleTaken);
        }
        Ok(taken)
    }

    /// Renews the role until it is lost. A beat that fails is not the end before the role has run out.
    pub(super) async fn hold_role(&self) {
        let clock = &self.engine.world.clock;
        let mut held_at = clock.moment();
        loop {
            clock.sleep(self.role_beat()).await;
            let asked_at = clock.moment();
            match self.engine.store.take_role(&self.role_ask()).await {
                Ok(true) => held_at = asked_at,
                Ok(false) => return,
                Err(error) => tracing::debug!(error = %crate::describe(&error), "the beat of the listener's role"),
            }
            if clock.moment().since(held_at) >= self.role_ttl() && self.engine.store.is_shared() {
                return;
            }
        }
    }

    pub(super) fn lose_role(&self) {
        self.pulse.note(|pulse| {
            pulse.is_listener = false;
            pulse.feeds_up.clear();
            (pulse.workers_alive, pulse.queue_depth) = (0, 0);
        });
        self.engine.emit(Event::RoleLost);
    }

    /// So that another takes over at once instead of waiting for the role to run out.
    pub(super) async fn drop_role(&self) {
        if let Err(error) = self.engine.store.drop_role(&self.role_ask()).await {
            tracing::debug!(error = %crate::describe(&error), "giving up the listener's role");
        }
    }

    /// How often who stands by looks whether the role is free.
    pub(super) fn role_look(&self) -> Duration {
        self.role_beat().min(Duration::from_secs(1))
    }

    fn role_beat(&self) -> Duration {
        (self.engine.settings.lease.ttl / 6).max(Duration::from_millis(100))
    }

    /// Where no other process can be at work, whoever had the role before is gone.
    fn role_ttl(&self) -> Duration {
        if self.engine.store.is_shared() { self.engine.settings.lease.ttl / 2 } else { Duration::ZERO }
    }

    fn role_ask(&self) -> RoleAsk {
        RoleAsk {
            source: self.engine.name.clone(),
            role: LISTENER,
            worker: self.owner.clone(),
            ttl: self.role_ttl(),
            now: self.engine.now(),
        }
    }
}
