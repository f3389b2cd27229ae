//! The one owner of a run's state: claims segments, hands their jobs to workers, and hears what became of them.
//! Everything that waits is in one `select!`; nothing here fetches or writes rows.

mod ahead;
mod beat;
mod claiming;
mod idle;
mod jobs;
mod outage;
mod ready;
mod snapshot;
mod spent;

use std::{
    collections::{BTreeMap, HashMap},
    future::{Future, pending},
    sync::Arc,
};

use futures_util::future::{BoxFuture, try_join_all};
use highwater_core::{
    AlertBook, BatchCounts, Event, Failure, FailureKind, Lease, Moment, SegmentId, Timestamp, WorkerId,
};
use highwater_store::{StoreError, Wanted};
use tokio::{
    sync::Notify,
    task::{Id as TaskId, JoinHandle, JoinSet},
};

use crate::{
    EngineError,
    duties::DutyWatch,
    error::Result,
    refusal::RefusalWatch,
    work::SegmentWork,
    worker::{JobEnd, JobError, Worker},
};
use ahead::Ahead;
use claiming::{Haul, claim};
use idle::Idle;
use jobs::Running;
use ready::Ready;
use spent::Spent;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What can be done at once.
    AtHand,
    /// Of what is there only retries, also those that fall due within the run's patience.
    Retries,
    /// Also what falls due within the run's patience.
    Patient,
    /// Whatever comes, until a stop.
    Endless,
}

/// Why a drain ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DrainEnd {
    /// Nothing is left that is worth waiting for.
    Done,
    Stopped,
    /// The remote wants to be left alone for longer than we wait.
    GateClosed {
        until: Moment,
    },
    Outage {
        kind: Option<FailureKind>,
    },
    /// The operator's allowance of calls or bytes is used up.
    Spent {
        why: String,
        /// When there is more, if that is known.
        until: Option<Timestamp>,
    },
}

impl DrainEnd {
    pub(crate) fn spent(failure: Failure, now: Timestamp) -> DrainEnd {
        DrainEnd::Spent { why: failure.message, until: failure.retry_after.map(|wait| now + wait) }
    }
}

pub(crate) struct Dispatcher {
    worker: Worker,
    owner: WorkerId,
    open: BTreeMap<SegmentId, Arc<SegmentWork>>,
    ready: Ready,
    tasks: JoinSet<Result<JobEnd, JobError>>,
    running: BTreeMap<u64, Running>,
    numbers: HashMap<TaskId, u64>,
    next_number: u64,
    /// A task of its own: a claim may hold the store's writer, and whatever else this loop asks of the store would
    /// wait for ever for a future that nobody polls.
    claiming: Option<JoinHandle<Result<Haul>>>,
    ahead: Ahead,
    /// Nothing could be claimed; ask again then.
    claim_again_at: Option<Moment>,
    /// When to look for retries that have fallen due, although there is enough to do.
    look_for_due_at: Moment,
    probing: Option<BoxFuture<'static, Result<(), Failure>>>,
    head_deadline: Option<Moment>,
    panics_in_row: u32,
    spent: Option<Spent>,
    alerts: AlertBook,
    refusals: RefusalWatch,
    duties: DutyWatch,
    /// There may be more to claim than when it was last asked.
    news: Arc<Notify>,
    beating: Option<JoinHandle<Result<Vec<Lease>, StoreError>>>,
    beats_failed: u32,
    pub(crate) totals: BatchCounts,
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        if let Some(beating) = &self.beating {
            beating.abort();
        }
        if let Some(claiming) = &self.claiming {
            claiming.abort();
        }
    }
}

impl Dispatcher {
    pub(crate) fn new(worker: Worker, owner: WorkerId, duties: DutyWatch) -> Self {
        let refusals = RefusalWatch::new(&worker.engine);
        let ahead = Ahead::new(&worker.engine, &worker.stream);
        Dispatcher {
            worker,
            owner,
            duties,
            news: Arc::default(),
            beating: None,
            beats_failed: 0,
            open: BTreeMap::new(),
            ready: Ready::new(),
            tasks: JoinSet::new(),
            running: BTreeMap::new(),
            numbers: HashMap::new(),
            next_number: 0,
            ahead,
            claiming: None,
            claim_again_at: None,
            look_for_due_at: Moment::START,
            probing: None,
            head_deadline: None,
            panics_in_row: 0,
            spent: None,
            alerts: AlertBook::default(),
            refusals,
            totals: BatchCounts::default(),
        }
    }

    /// To be told when something was planned.
    pub(crate) fn news(&self) -> Arc<Notify> {
        self.news.clone()
    }

    /// Works until nothing is left to do in `scope`, or something ends the run early. Leases still open are given back.
    pub(crate) async fn drain(&mut self, scope: Scope) -> Result<DrainEnd> {
        let ended = match self.work(scope).await {
            Err(EngineError::Spent(failure)) => Ok(DrainEnd::spent(failure, self.worker.engine.now())),
            ended => ended,
        };
        if !matches!(ended, Ok(DrainEnd::Done)) {
            self.wind_down().await;
        }
        let leases: Vec<_> = std::mem::take(&mut self.open).into_values().map(|work| work.lease.clone()).collect();
        let (engine, store) = (&self.worker.engine, &self.worker.engine.store);
        match ended {
            ended if leases.is_empty() => ended,
            Ok(end) => {
                engine.steady(|| store.release(&leases)).await?;
                Ok(end)
            }
            Err(error) => {
                // The store may be what failed, and has been waited for already; leases that stay end by themselves.
                tokio::select! {
                    biased;
                    _ = store.release(&leases) => {}
                    () = engine.world.clock.sleep(RELEASE_PATIENCE) => {}
                }
                Err(error)
            }
        }
    }

    async fn work(&mut self, scope: Scope) -> Result<DrainEnd> {
        let mut beat = tokio::time::interval(self.beat_every());
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let stop = self.worker.engine.world.stop.clone();
        let clock = self.worker.engine.world.clock.clone();
        let (turns, news) = (self.worker.turns.clone(), self.news.clone());
        loop {
            if let Some(end) = self.allowance_over(scope) {
                return Ok(end);
            }
            self.start_jobs();
            self.start_claim(scope);
            self.start_probe().await?;
            if let Some(end) = self.hopeless(scope) {
                return Ok(end);
            }
            let wake = match self.idle(scope).await? {
                Idle::Busy => self.claim_again_at,
                Idle::Wait(until) => Some(until),
                Idle::Done => return Ok(DrainEnd::Done),
            };
            let wake = [wake, self.allowance_at(), self.next_look_for_due(scope)].into_iter().flatten().min();
            tokio::select! {
                biased;
                () = stop.asked() => return Ok(DrainEnd::Stopped),
                Some(joined) = self.tasks.join_next_with_id() => self.handle_joined(joined)?,
                claimed = awaited(&mut self.claiming) => {
                    let claimed = claimed.map_err(|died| EngineError::TaskDied(format!("a claim: {died}")))?;
                    self.handle_claimed(claimed?, scope).await?;
                }
                () = turns.over() => {}
                probed = awaited(&mut self.probing) => self.handle_probed(probed),
                died = self.duties.died() => return self.without_duties(died),
                () = news.notified() => self.claim_again_at = None,
                _ = beat.tick() => self.start_beat(),
                beaten = awaited(&mut self.beating) => {
                    let beaten = beaten.map_err(|died| EngineError::TaskDied(format!("a heartbeat: {died}")))?;
                    self.handle_beat(beaten)?;
                }
                () = sleep_until(&clock, wake) => self.claim_again_at = None,
            }
        }
    }

    /// Another dispatcher that cannot go on stops the gateway for all, and has the reason.
    fn without_duties(&self, died: &'static str) -> Result<DrainEnd> {
        if self.worker.engine.source.gateway().is_stopped() {
            return Ok(DrainEnd::Stopped);
        }
        Err(EngineError::TaskDied(died.into()))
    }

    fn beat_every(&self) -> std::time::Duration {
        let settings = &self.worker.engine.settings;
        settings.lease.beat.min(settings.patience.stall / 4).max(std::time::Duration::from_millis(10))
    }

    /// Claims ahead of need, so that workers never wait for it.
    fn start_claim(&mut self, scope: Scope) {
        if self.claiming.is_some() || self.claim_again_at.is_some() || self.spent.is_some() {
            return;
        }
        let wanted = match scope {
            Scope::Retries => self.ready.is_empty().then_some(Wanted::Due),
            Scope::AtHand | Scope::Patient | Scope::Endless => {
                let more = self.ahead.wants(self.ready.len(), self.open.len());
                more.or_else(|| self.wants_new()).or_else(|| self.wants_due(scope))
            }
        };
        if let Some(wanted) = wanted {
            let limit = self.ahead.limit();
            self.claiming = Some(tokio::spawn(claim(self.worker.clone(), self.owner.clone(), limit, wanted)));
        }
    }

    /// A pass fills all there is to do for minutes at a low rate; the frontier does not wait for that.
    fn wants_new(&self) -> Option<Wanted> {
        let has_room = self.ahead.has_room(self.open.len());
        (has_room && self.ready.has_nothing_new()).then_some(Wanted::New)
    }

    /// What was claimed for minutes does not keep a retry that falls due meanwhile waiting for as long.
    fn wants_due(&self, scope: Scope) -> Option<Wanted> {
        let now = self.worker.engine.world.clock.moment();
        self.next_look_for_due(scope).is_some_and(|at| at <= now).then_some(Wanted::Due)
    }

    /// None while other claims find them, or some are waiting already.
    fn next_look_for_due(&self, scope: Scope) -> Option<Moment> {
        let is_idle =
            scope != Scope::Retries && self.claiming.is_none() && self.claim_again_at.is_none() && self.spent.is_none();
        (is_idle && self.ready.has_only_backfill()).then_some(self.look_for_due_at)
    }

    async fn handle_claimed(&mut self, haul: Haul, scope: Scope) -> Result<()> {
        let Haul { wanted, segments: claimed } = haul;
        let now = self.worker.engine.world.clock.moment();
        self.look_for_due_at = now + LOOK_FOR_DUE;
        // A look for retries alone says nothing of what else there is.
        let tells_all = wanted != Wanted::Due || scope == Scope::Retries;
        let is_filled = claimed.len() as u32 >= self.ahead.limit();
        match (tells_all, is_filled) {
            (true, true) => self.ahead.learn(self.ready.len()),
            (true, false) => self.claim_again_at = Some(now + RECLAIM),
            (false, _) => {}
        }
        let (done, claimed): (Vec<_>, Vec<_>) = claimed.into_iter().partition(|(_, jobs)| jobs.is_empty());
        try_join_all(done.iter().map(|(work, _)| self.worker.close(work))).await?;
        for (work, jobs) in claimed {
            self.open.insert(work.lease.segment, work.clone());
            jobs.into_iter().for_each(|job| self.ready.push(work.clone(), job));
        }
        Ok(())
    }

    /// Lets what is in hand be committed, for a moment; then cancels.
    async fn wind_down(&mut self) {
        let engine = self.worker.engine.clone();
        engine.emit(Event::Stopping);
        engine.source.gateway().stop();
        if let Some(claiming) = self.claiming.take() {
            claiming.abort();
            // Cancelled or done: segments it has leased are free again when the lease ends.
            claiming.await.ok();
        }
        self.probing = None;
        self.ready.clear();
        let (clock, patience) = (&engine.world.clock, engine.settings.patience.stop);
        let deadline = engine.world.stop.work_ends(clock, patience).unwrap_or(clock.moment() + patience);
        loop {
            tokio::select! {
                biased;
                joined = self.tasks.join_next() => match joined {
                    None => break,
                    Some(Ok(Ok(end))) => self.totals.add(&end.batch()),
                    // The run ends for another reason already; what these jobs held is fetched again.
                    Some(_) => {}
                },
                () = clock.sleep_until(deadline) => break,
            }
        }
        self.tasks.shutdown().await;
        self.open.retain(|_, work| !work.is_closed());
    }
}

const RELEASE_PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);
/// As long as the shortest wait before a retry.
const LOOK_FOR_DUE: std::time::Duration = std::time::Duration::from_secs(1);
const RECLAIM: std::time::Duration = std::time::Duration::from_millis(250);

/// The output of an optional future, which is then gone; never, when there is none.
async fn awaited<F: Future + Unpin>(future: &mut Option<F>) -> F::Output {
    match future {
        Some(running) => {
            let output = running.await;
            *future = None;
            output
        }
        None => pending().await,
    }
}

async fn sleep_until(clock: &highwater_sources::Clock, moment: Option<Moment>) {
    match moment {
        Some(moment) => clock.sleep_until(moment).await,
        None => pending().await,
    }
}
