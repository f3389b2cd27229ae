//! When everything fails the same way: the account is paused and a canary is asked, before any key is blamed.

use std::time::Duration;

use highwater_core::{Event, Failure, Health, Key, Moment, Position, throttle::PauseReason};
use highwater_sources::Density;
use highwater_store::Page;

use super::Dispatcher;
use crate::{error::Result, worker::Worker};

/// Longer than any wait between two probes; each probe pauses anew.
const PAUSE: Duration = Duration::from_secs(600);

impl Dispatcher {
    pub(super) async fn start_probe(&mut self) -> Result<()> {
        if self.probing.is_some() {
            return Ok(());
        }
        let at = match self.worker.guard.health() {
            Health::Healthy => return Ok(()),
            Health::Suspect => {
                self.worker.engine.emit(Event::OutageSuspected { kind: self.worker.guard.kind() });
                self.worker.engine.world.clock.moment()
            }
            Health::Out { probe_at, .. } => probe_at,
        };
        let until = self.worker.engine.world.clock.moment() + PAUSE;
        self.worker.engine.source.gateway().pause(until, PauseReason::Outage);
        let canary = canary(&self.worker).await?;
        self.probing = Some(Box::pin(probe(self.worker.clone(), canary, at)));
        Ok(())
    }

    pub(super) fn handle_probed(&mut self, probed: Result<(), Failure>) {
        let engine = &self.worker.engine;
        let now = engine.world.clock.moment();
        match probed {
            Ok(()) => {
                self.worker.guard.probe_succeeded(now, engine.now());
                engine.source.gateway().resume();
                engine.emit(Event::OutageOver);
            }
            Err(_) => {
                let probe_at = self.worker.guard.probe_failed(now);
                engine.emit(Event::OutageConfirmed { kind: self.worker.guard.kind(), probe_at });
            }
        }
    }
}

/// A key that has been answered before; failing that, any key of the stream, another each time.
async fn canary(worker: &Worker) -> Result<Option<Key>> {
    if let Some(key) = worker.guard.canary() {
        return Ok(Some(key));
    }
    let engine = &worker.engine;
    let spec = &worker.stream.spec;
    let first = Page { after: None, limit: 1 };
    let stored = engine.steady(|| engine.store.rows(spec.table, first.clone())).await?;
    if let Some(row) = stored.into_iter().next() {
        return Ok(Some(row.key));
    }
    if spec.density != Density::Dense {
        return Ok(None);
    }
    let row = engine.steady(|| engine.store.open_stream(&worker.stream.id, spec.axis)).await?;
    let Position(position) = row.span.start().plus(engine.world.entropy.below(row.span.len()));
    Ok(Some(Key::Number(position)))
}

async fn probe(worker: Worker, canary: Option<Key>, at: Moment) -> Result<(), Failure> {
    worker.engine.world.clock.sleep_until(at).await;
    worker.engine.source.probe(&worker.stream.spec.name, canary.as_ref()).await
}
