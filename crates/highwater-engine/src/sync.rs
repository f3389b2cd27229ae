//! Catch up and end: finish what is at hand, find the head, plan up to it, drain, and say what came of it.

mod following;
mod retries;
mod snapshot;

use std::{sync::Arc, time::Duration};

use highwater_core::{BatchCounts, Event, ExceptionState, FailureKind, Moment, Position, Span, Timestamp, WorkerId};
use highwater_sources::{Density, Following, StreamSpec};
use highwater_store::{RunOutcome, StreamRow};

use self::snapshot::Round;
use crate::{
    account::{self, AccountLink},
    asking::ask,
    context::{Engine, StreamContext},
    dispatcher::{Dispatcher, DrainEnd, Scope},
    duties::Duties,
    error::Result,
    planner::{self, Range},
    run::RunLog,
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
    /// Nothing exists in the range that was asked for, and nothing is left from earlier runs.
    NothingToDo {
        newest: Position,
    },
    Stopped,
}

impl Ending {
    fn outcome(&self) -> RunOutcome {
        match self {
            Ending::Complete | Ending::NothingToDo { .. } => RunOutcome::Complete,
            Ending::Incomplete(_) => RunOutcome::Incomplete,
            Ending::Stopped => RunOutcome::Stopped,
        }
    }
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
    /// The operator's allowance of calls or bytes is used up, until then if that is known.
    Spent { why: String, until: Option<Timestamp> },
}

impl Ending {
    /// Whether the streams that come after would meet the same.
    fn is_for_all(&self) -> bool {
        match self {
            Ending::Stopped => true,
            Ending::Incomplete(left) => !matches!(left, Left::Exceptions { .. }),
            Ending::Complete | Ending::NothingToDo { .. } => false,
        }
    }
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

impl SyncReport {
    /// Of two rounds in one run.
    fn with(mut self, before: &SyncReport) -> SyncReport {
        self.batch.add(&before.batch);
        self.requests += before.requests;
        self.duration += before.duration;
        self
    }
}

impl Engine {
    /// Catches every stream up that is not left to `serve`, one after the other.
    pub async fn sync(&self, request: &SyncRequest) -> Result<Vec<SyncReport>> {
        let mut log = RunLog::begin(self, "sync").await?;
        let synced = self.sync_streams(request, &mut log).await;
        self.conclude(synced, log).await
    }

    async fn conclude(&self, worked: Result<Vec<SyncReport>>, mut log: RunLog) -> Result<Vec<SyncReport>> {
        self.source.sign_off().await;
        match worked {
            Ok(reports) => {
                let worst = reports.iter().map(|report| report.ending.outcome()).max_by_key(severity);
                log.end(worst.unwrap_or(RunOutcome::Complete)).await?;
                Ok(reports)
            }
            Err(error) => {
                // The first error is the one to tell; a run that cannot be recorded as failed stays `running` until the
                // store is opened again.
                log.end(RunOutcome::Failed).await.ok();
                Err(error)
            }
        }
    }

    async fn sync_streams(&self, request: &SyncRequest, log: &mut RunLog) -> Result<Vec<SyncReport>> {
        let round = Round::of(self).await?;
        let reports = self.sync_round(request, round, log).await?;
        if !round.is_stale(self) || reports.iter().any(|report| report.ending.is_for_all()) {
            return Ok(reports);
        }
        let again = self.sync_round(request, Round::of(self).await?, log).await?;
        Ok(reports.into_iter().zip(again).map(|(before, after)| after.with(&before)).collect())
    }

    async fn sync_round(&self, request: &SyncRequest, round: Round, log: &mut RunLog) -> Result<Vec<SyncReport>> {
        let mut reports: Vec<SyncReport> = Vec::new();
        round.lay(self).await?;
        for spec in self.source.streams().iter().filter(|spec| spec.follows == Following::Sync) {
            let run = Run::begin(self, spec, round);
            // What ended the one before ends this as well.
            let report = match reports.last().map(|report| &report.ending).filter(|ending| ending.is_for_all()) {
                Some(ending) => run.not_begun(ending.clone()).await?,
                None => run.carry_out(Task::CatchUp(request), log).await?,
            };
            log.add(spec.name.as_str(), &report.batch, &report.status);
            reports.push(report);
        }
        Ok(reports)
    }
}

/// The worse of two outcomes is that of both.
fn severity(outcome: &RunOutcome) -> u8 {
    match outcome {
        RunOutcome::Complete => 0,
        RunOutcome::Incomplete => 1,
        RunOutcome::Running | RunOutcome::Failed | RunOutcome::Stopped => 2,
    }
}

/// What a run is to do.
#[derive(Clone, Copy)]
enum Task<'a> {
    CatchUp(&'a SyncRequest),
    Retries,
}

/// What the work of a run came to.
struct Worked {
    end: DrainEnd,
    batch: BatchCounts,
    /// The newest position, if nothing was asked for that exists.
    newest: Option<Position>,
}

/// One run over one stream, from the first line in the ledger to the last.
struct Run<'a> {
    engine: &'a Engine,
    stream: Arc<StreamContext>,
    /// Of snapshots: as of when all streams are to be seen.
    round: Round,
    began: Moment,
    requests_before: u64,
}

impl<'a> Run<'a> {
    fn begin(engine: &'a Engine, spec: &StreamSpec, round: Round) -> Run<'a> {
        let stream = Arc::new(StreamContext::new(engine, spec));
        let requests_before = engine.source.gateway().traffic().requests;
        Run { engine, stream, round, began: engine.world.clock.moment(), requests_before }
    }

    async fn carry_out(self, task: Task<'_>, log: &RunLog) -> Result<SyncReport> {
        let worked = tokio::select! {
            biased;
            worked = self.work(task) => worked?,
            never = log.keep_counting() => never,
        };
        self.end(worked).await
    }

    async fn work(&self, task: Task<'_>) -> Result<Worked> {
        let engine = self.engine;
        let owner = engine.world.entropy.worker_id();
        let account = AccountLink::join(engine, owner.clone()).await?;
        let worked = self.work_as(&owner, account, task).await;
        account::leave(engine, &owner).await;
        worked
    }

    async fn work_as(&self, owner: &WorkerId, account: AccountLink, task: Task<'_>) -> Result<Worked> {
        let worker = Worker::new(self.engine.clone(), self.stream.clone());
        let duties = Duties::start(self.engine, account);
        let mut dispatcher = Dispatcher::new(worker, owner.clone(), duties.watch());
        match task {
            Task::CatchUp(request) => self.catch_up(&mut dispatcher, request).await,
            Task::Retries => retries::work(self, &mut dispatcher).await,
        }
    }

    async fn catch_up(&self, dispatcher: &mut Dispatcher, request: &SyncRequest) -> Result<Worked> {
        if let Some(changes) = self.engine.source.changes() {
            return following::work(self, changes, dispatcher, request).await;
        }
        if let Density::Snapshot(_) = self.stream.spec.density {
            return snapshot::work(self, dispatcher).await;
        }
        let head = match self.finish_at_hand(dispatcher).await? {
            Ok(head) => head,
            Err(end) => return Ok(Worked { end, batch: dispatcher.totals, newest: None }),
        };
        let range = match self.locate(request.range).await? {
            Ok(range) => range,
            Err(end) => return Ok(Worked { end, batch: dispatcher.totals, newest: None }),
        };
        let wanted = range.resolve(self.stream.spec.origin, head);
        let row = self.open().await?;
        if !wanted.is_empty() {
            self.plan(&row, wanted, &range, request.force).await?;
        }
        self.tell_start(&self.open().await?, head).await?;
        let end = dispatcher.drain(Scope::Patient).await?;
        let engine = self.engine;
        if request.force == Force::Refetch {
            engine.steady(|| engine.store.recount(&self.stream.id, self.stream.spec.table)).await?;
        }
        let newest = wanted.is_empty().then_some(head.minus(1));
        Ok(Worked { end, batch: dispatcher.totals, newest })
    }

    /// Does what an earlier run left undone, and says where the head is after that; or why the run ends before.
    async fn finish_at_hand(&self, dispatcher: &mut Dispatcher) -> Result<Result<Position, DrainEnd>> {
        let engine = self.engine;
        let row = self.open().await?;
        let head = match self.head().await? {
            Ok(head) => head,
            Err(end) => return Ok(Err(end)),
        };
        self.tell_start(&row, head).await?;
        let outlook = engine.steady(|| engine.store.outlook(&self.stream.id)).await?;
        if outlook.open == 0 {
            return Ok(Ok(head));
        }
        match dispatcher.drain(Scope::AtHand).await? {
            DrainEnd::Done => self.head().await,
            end => Ok(Err(end)),
        }
    }

    /// The range with its date as a position.
    async fn locate(&self, range: Range) -> Result<Result<Range, DrainEnd>> {
        let Some(since) = range.since else { return Ok(Ok(range)) };
        let source = &self.engine.source;
        let from = ask(self.engine, async |call| source.position_at(&self.stream.spec.name, since, call).await).await?;
        Ok(from.map(|from| Range { from: Some(from), since: None, ..range }))
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
        let followed = self.engine.steady(|| self.engine.store.followed(&self.stream.id)).await?;
        // A snapshot is of about as much as the last one.
        let is_snapshot = matches!(self.stream.spec.density, Density::Snapshot(_));
        self.engine.emit(Event::RunStarted {
            expected: followed.expected.or_else(|| is_snapshot.then_some(row.stored.max(1))),
            stream: self.stream.id.clone(),
            origin: row.span.start(),
            frontier: row.frontier,
            target,
            settled: row.stored + explained,
        });
        Ok(())
    }

    async fn plan(&self, row: &StreamRow, wanted: Span, range: &Range, force: Force) -> Result<()> {
        let covered = row.span.intersect(wanted);
        planner::extend(self.engine, &self.stream, row, wanted, range).await?;
        if force == Force::Refetch {
            planner::rescan(self.engine, &self.stream, covered).await?;
        }
        Ok(())
    }

    async fn head(&self) -> Result<Result<Position, DrainEnd>> {
        let source = &self.engine.source;
        let head = ask(self.engine, async |call| source.head(&self.stream.spec.name, call).await).await?;
        if let Ok(head) = head {
            self.stream.heard_head(head);
        }
        Ok(head)
    }

    async fn end(self, worked: Worked) -> Result<SyncReport> {
        let Worked { end, batch, newest } = worked;
        let status = self.engine.stream_status(&self.stream.spec).await?;
        let is_settled = status.complete || status.origin == status.target;
        let ending = match (end, newest) {
            (DrainEnd::Stopped, _) => Ending::Stopped,
            (DrainEnd::Done, Some(newest)) if is_settled => Ending::NothingToDo { newest },
            (DrainEnd::Done, _) if status.complete => Ending::Complete,
            (DrainEnd::Done, _) => Ending::Incomplete(Left::Exceptions { next_retry_at: status.next_retry_at }),
            (DrainEnd::Outage { kind }, _) => Ending::Incomplete(Left::Outage { kind }),
            (DrainEnd::Spent { why, until }, _) => Ending::Incomplete(Left::Spent { why, until }),
            (DrainEnd::GateClosed { until }, _) => {
                let wait = until.since(self.engine.world.clock.moment());
                Ending::Incomplete(Left::GateClosed { until: self.engine.now() + wait })
            }
        };
        Ok(self.report(status, ending, batch))
    }

    async fn not_begun(self, ending: Ending) -> Result<SyncReport> {
        let status = self.engine.stream_status(&self.stream.spec).await?;
        Ok(self.report(status, ending, BatchCounts::default()))
    }

    fn report(&self, status: StreamStatus, ending: Ending, batch: BatchCounts) -> SyncReport {
        let traffic = self.engine.source.gateway().traffic();
        SyncReport {
            status,
            ending,
            batch,
            requests: traffic.requests - self.requests_before,
            throttled: traffic.throttled,
            duration: self.engine.world.clock.moment().since(self.began),
        }
    }
}
