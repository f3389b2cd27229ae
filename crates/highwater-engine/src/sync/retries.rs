//! Fetching what was put back to work, and nothing else: neither what is new at the remote nor what an earlier sync left.

use highwater_core::StreamId;
use highwater_sources::Density;

use super::{Run, Task, Worked};
use crate::{
    Engine, SyncReport, SyncRequest,
    dispatcher::{Dispatcher, Scope},
    error::Result,
    run::RunLog,
    sync::snapshot::Round,
};

impl Engine {
    /// Of these streams. A remote that is seen as a whole, or by the record of its changes, is synced.
    pub async fn fetch_due(&self, streams: &[StreamId]) -> Result<Vec<SyncReport>> {
        let is_whole = |density| matches!(density, Density::Snapshot(_));
        if self.source.changes().is_some() || self.source.streams().iter().any(|spec| is_whole(spec.density)) {
            return self.sync(&SyncRequest::default()).await;
        }
        let mut log = RunLog::begin(self, "replay").await?;
        let fetched = self.retry_streams(streams, &mut log).await;
        self.conclude(fetched, log).await
    }

    async fn retry_streams(&self, streams: &[StreamId], log: &mut RunLog) -> Result<Vec<SyncReport>> {
        let mut reports = Vec::new();
        let round = Round::of(self).await?;
        for spec in self.source.streams().iter().filter(|spec| streams.contains(&self.stream_id(spec))) {
            let report = Run::begin(self, spec, round).carry_out(Task::Retries, log).await?;
            log.add(spec.name.as_str(), &report.batch, &report.status);
            let is_for_all = report.ending.is_for_all();
            reports.push(report);
            if is_for_all {
                break;
            }
        }
        Ok(reports)
    }
}

pub(super) async fn work(run: &Run<'_>, dispatcher: &mut Dispatcher) -> Result<Worked> {
    let row = run.open().await?;
    let mut head = row.span.end();
    if run.stream.spec.density == Density::Dense {
        // Whether an absence is final depends on it.
        match run.head().await? {
            Ok(found) => head = found,
            Err(end) => return Ok(Worked { end, batch: dispatcher.totals, newest: None }),
        }
    }
    run.tell_start(&row, head).await?;
    let end = dispatcher.drain(Scope::Retries).await?;
    Ok(Worked { end, batch: dispatcher.totals, newest: None })
}
