//! Catch up and end: finish what is at hand, find the head, plan up to it, drain, and say what came of it.

use std::{sync::Arc, time::Duration};

use highwater_core::{
    BatchCounts, Event, ExceptionState, Failure, FailureKind, Lane, Moment, Position, Timestamp, WorkerId,
};
use highwater_sources::{Beat, Call, StreamSpec};
use highwater_store::{RunEnd, RunOutcome, RunStart, StreamRow};

use crate::{
    EngineError,
    account::AccountLink,
    context::{Engine, StreamContext},
    dispatcher::{Dispatcher, DrainEnd, Scope},
    error::Result,
    planner::{self, Range},
    refusal::RefusalWatch,
    status::StreamStatus,
    worker::Worker,
};

#[derive(Clone, Copy, Debug, Default)]
pub struct SyncRequest {
    pub range: Range,
    pub force: Force,
}

/// Whether what is stored already is fetched again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Force {
    #[default]
    No,
    Refetch,
}

/// How a run of one stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything is accounted for.
    Complete,
    /// The run did what it could, and something is left.
    Incomplete(Left),
    Stopped,
}

/// Why something is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// Keys wait for a retry, or are dead letters.
    Exceptions { next_retry_at: Option<Timestamp> },
    /// The remote asked to be left alone.
    GateClosed { until: Timestamp },
    /// The remote does not answer.
    Outage { kind: Option<FailureKind> },
}

#[derive(Clone, Debug)]
pub struct SyncReport {
    pub status: StreamStatus,
    pub ending: Ending,
    /// What this run committed.
    pub batch: BatchCounts,
    pub requests: u64,
    pub throttled: u64,
    pub duration: Duration,
}

impl Engine {
    /// Catches every stream up, one after the other.
    pub async fn sync(&self, request: &SyncRequest) -> Result<Vec<SyncReport>> {
        let mut reports = Vec::new();
        for spec in self.source.streams() {
            reports.push(self.sync_stream(spec, request).await?);
        }
        Ok(reports)
    }

    async fn sync_stream(&self, spec: &StreamSpec, request: &SyncRequest) -> Result<SyncReport> {
        let run = Run::begin(self, spec).await?;
        let worked = run.work(request).await;
        let outcome = match &worked {
            Ok((DrainEnd::Done, _)) => None,
            Ok((DrainEnd::Stopped, _)) => Some(RunOutcome::Stopped),
            Ok((DrainEnd::GateClosed { .. } | DrainEnd::Outage { .. }, _)) => Some(RunOutcome::Incomplete),
            Err(_) => Some(RunOutcome::Failed),
        };
        match worked {
            Ok((end, batch)) => run.end(end, batch, outcome).await,
            Err(error) => {
                // The first error is the one to tell; a run that cannot be recorded as failed stays `running` until the
                // store is opened again.
                run.record_end(RunOutcome::Failed, &BatchCounts::default()).await.ok();
                Err(error)
            }
        }
    }
}

/// One run over one stream, from the first line in the ledger to the last.
struct Run<'a> {
    engine: &'a Engine,
    stream: Arc<StreamContext>,
    id: String,
    began: Moment,
    requests_before: u64,
}

impl<'a> Run<'a> {
    async fn begin(engine: &'a Engine, spec: &StreamSpec) -> Result<Run<'a>> {
        let stream = Arc::new(StreamContext::new(engine, spec));
        let id = engine.world.entropy.id();
        let workers = engine.settings.sizes.in_flight;
        let start =
            RunStart { id: id.clone(), source: engine.name.clone(), command: "sync", workers, at: engine.now() };
        engine.steady(|| engine.store.begin_run(&start)).await?;
        let requests_before = engine.source.gateway().traffic().requests;
        Ok(Run { engine, stream, id, began: engine.world.clock.moment(), requests_before })
    }

    async fn work(&self, request: &SyncRequest) -> Result<(DrainEnd, BatchCounts)> {
        let engine = self.engine;
        let row = self.open().await?;
        let owner = engine.world.entropy.worker_id();
        let account = AccountLink::join(engine, owner.clone()).await?;
        let worked = self.work_as(&owner, account, row, request).await;
        // Nobody waits for it: a share that is not given back ends by itself.
        engine.store.leave(&owner).await.ok();
        worked
    }

    async fn work_as(
        &self,
        owner: &WorkerId,
        account: AccountLink,
        mut row: StreamRow,
        request: &SyncRequest,
    ) -> Result<(DrainEnd, BatchCounts)> {
        let engine = self.engine;
        let worker = Worker::new(engine.clone(), self.stream.clone());
        let mut dispatcher = Dispatcher::new(worker, owner.clone(), account);
        let mut head = match self.head().await? {
            Ok(head) => head,
            Err(end) => return Ok((end, dispatcher.totals)),
        };
        self.tell_start(&row, head).await?;
        let outlook = engine.steady(|| engine.store.outlook(&self.stream.id)).await?;
        if outlook.open > 0 {
            let end = dispatcher.drain(Scope::AtHand).await?;
            if end != DrainEnd::Done {
                return Ok((end, dispatcher.totals));
            }
            match self.head().await? {
                Ok(later) => head = later,
                Err(end) => return Ok((end, dispatcher.totals)),
            }
            row = self.open().await?;
        }
        self.plan(&row, head, request).await?;
        self.tell_start(&self.open().await?, head).await?;
        let end = dispatcher.drain(Scope::Patient).await?;
        if request.force == Force::Refetch {
            engine.steady(|| engine.store.recount(&self.stream.id, self.stream.spec.table)).await?;
        }
        Ok((end, dispatcher.totals))
    }

    async fn open(&self) -> Result<StreamRow> {
        let engine = self.engine;
        Ok(engine.steady(|| engine.store.open_stream(&self.stream.id, self.stream.spec.axis)).await?)
    }

    async fn tell_start(&self, row: &StreamRow, head: Position) -> Result<()> {
        let counts = self.engine.steady(|| self.engine.store.counts(&self.stream.id)).await?;
        let explained = [ExceptionState::Missing, ExceptionState::Excluded, ExceptionState::DeadLetter];
        let explained: u64 = explained.into_iter().map(|state| counts.exceptions_in(state)).sum();
        let target = if row.span.is_empty() { head } else { row.span.end() };
        self.engine.emit(Event::RunStarted {
            stream: self.stream.id.clone(),
            origin: row.span.start(),
            frontier: row.frontier,
            target,
            settled: row.stored + explained,
        });
        Ok(())
    }

    async fn plan(&self, row: &StreamRow, head: Position, request: &SyncRequest) -> Result<()> {
        let wanted = request.range.resolve(self.stream.spec.origin, head);
        let covered = row.span.intersect(wanted);
        planner::extend(self.engine, &self.stream, row, wanted, &request.range).await?;
        if request.force == Force::Refetch {
            planner::rescan(self.engine, &self.stream, covered).await?;
        }
        Ok(())
    }

    /// Asks for the head as long as patience lasts; or why the run ends before it is known.
    async fn head(&self) -> Result<Result<Position, DrainEnd>> {
        let engine = self.engine;
        let clock = &engine.world.clock;
        let call = Call { lane: Lane::Live, beat: Beat::new(clock.clone()) };
        let began = clock.moment();
        let ask = async {
            let mut attempt = 0;
            loop {
                match engine.source.head(&self.stream.spec.name, &call).await {
                    Ok(head) => return Ok(head),
                    Err(failure) if !self.may_retry(&failure, began) => return Err(EngineError::Remote(failure)),
                    Err(failure) => {
                        attempt += 1;
                        let wait = engine.settings.retry.delay(attempt, engine.world.entropy.unit());
                        engine.emit(Event::HeadFailed { kind: failure.kind, retry_at: engine.now() + wait });
                        clock.sleep(wait).await;
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = engine.world.stop.asked() => Ok(Err(DrainEnd::Stopped)),
            head = ask => {
                let head = head?;
                self.stream.heard_head(head);
                Ok(Ok(head))
            }
            until = RefusalWatch::new(engine).until_shut_out(engine) => Ok(Err(DrainEnd::GateClosed { until })),
        }
    }

    fn may_retry(&self, failure: &Failure, began: Moment) -> bool {
        let patience = self.engine.settings.patience.retry;
        failure.kind != FailureKind::Redirect && self.engine.world.clock.moment().since(began) < patience
    }

    async fn end(self, end: DrainEnd, batch: BatchCounts, outcome: Option<RunOutcome>) -> Result<SyncReport> {
        let status = self.engine.stream_status(&self.stream.spec).await?;
        let outcome = outcome.unwrap_or(if status.complete { RunOutcome::Complete } else { RunOutcome::Incomplete });
        self.record_end(outcome, &batch).await?;
        let ending = match end {
            DrainEnd::Stopped => Ending::Stopped,
            DrainEnd::Done if status.complete => Ending::Complete,
            DrainEnd::Done => Ending::Incomplete(Left::Exceptions { next_retry_at: status.next_retry_at }),
            DrainEnd::Outage { kind } => Ending::Incomplete(Left::Outage { kind }),
            DrainEnd::GateClosed { until } => {
                let wait = until.since(self.engine.world.clock.moment());
                Ending::Incomplete(Left::GateClosed { until: self.engine.now() + wait })
            }
        };
        Ok(SyncReport {
            status,
            ending,
            batch,
            requests: self.requests(),
            throttled: self.engine.source.gateway().traffic().throttled,
            duration: self.engine.world.clock.moment().since(self.began),
        })
    }

    fn requests(&self) -> u64 {
        self.engine.source.gateway().traffic().requests - self.requests_before
    }

    async fn record_end(&self, outcome: RunOutcome, batch: &BatchCounts) -> Result<()> {
        let engine = self.engine;
        let items = batch.stored() + batch.missing + batch.excluded;
        let end = RunEnd {
            id: self.id.clone(),
            source: engine.name.clone(),
            outcome,
            items,
            requests: self.requests(),
            at: engine.now(),
        };
        engine.steady(|| engine.store.end_run(&end)).await?;
        Ok(())
    }
}
