//! A run in the books: when it began, on whose word, and how it ended.

use std::time::Duration;

use highwater_core::{BatchCounts, Moment};
use highwater_store::{ErrorKind, RunEnd, RunOutcome, RunStart, StoreError};

use crate::{Engine, error::Result};

pub(crate) struct RunLog {
    engine: Engine,
    id: String,
    command: &'static str,
    began: Moment,
    requests_before: u64,
}

impl RunLog {
    pub(crate) async fn begin(engine: &Engine, command: &'static str) -> Result<RunLog> {
        let id = engine.world.entropy.id();
        let workers = engine.settings.sizes.in_flight;
        let start = RunStart { id: id.clone(), source: engine.name.clone(), command, workers, at: engine.now() };
        engine.steady(|| engine.store.begin_run(&start)).await?;
        let requests_before = engine.source.gateway().traffic().requests;
        Ok(RunLog { engine: engine.clone(), id, command, began: engine.world.clock.moment(), requests_before })
    }

    pub(crate) fn requests(&self) -> u64 {
        self.engine.source.gateway().traffic().requests - self.requests_before
    }

    pub(crate) fn lasted(&self) -> Duration {
        self.engine.world.clock.moment().since(self.began)
    }

    pub(crate) async fn end(&self, outcome: RunOutcome, batch: &BatchCounts) -> Result<()> {
        let engine = &self.engine;
        let end = RunEnd {
            id: self.id.clone(),
            source: engine.name.clone(),
            command: self.command,
            outcome,
            items: batch.stored() + batch.missing + batch.excluded,
            requests: self.requests(),
            at: engine.now(),
        };
        match outcome {
            RunOutcome::Failed => self.note_failed(&end).await?,
            _ => engine.steady(|| engine.store.end_run(&end)).await?,
        }
        Ok(())
    }

    /// The store may be what failed, and has been waited for already. A run whose end is not noted stays `running` until
    /// the store is opened again.
    async fn note_failed(&self, end: &RunEnd) -> Result<(), StoreError> {
        tokio::select! {
            biased;
            noted = self.engine.store.end_run(end) => noted,
            () = self.engine.world.clock.sleep(FAILED_PATIENCE) => {
                Err(StoreError::new(ErrorKind::Unavailable, "noting the end of a run that failed"))
            }
        }
    }
}

const FAILED_PATIENCE: Duration = Duration::from_secs(1);
