//! The one owner of a run's state: claims segments, hands their jobs to workers, and hears what became of them.
//! Everything that waits is in one `select!`; nothing here fetches or writes rows.

mod ahead;
mod beat;
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
    AlertBook, BatchCounts, Event, Failure, FailureKind, KeySet, Lease, Moment, Purpose, SegmentId, Span, Timestamp,
    WorkerId,
};
use highwater_sources::{Density, Discovered, Tags};
use highwater_store::{Claim, Claimed, StoreError, Wanted};
use tokio::{
    sync::Notify,
    task::{Id as TaskId, JoinHandle, JoinSet},
};

use crate::{
    EngineError,
    duties::DutyWatch,
    error::Result,
    refusal::RefusalWatch,
    work::{Job, Marks, SegmentWork},
    worker::{JobEnd, JobError, SecondLook, Worker},
};
use ahead::Ahead;
use idle::Idle;
use jobs::Running;
use ready::Ready;
use spent::Spent;

/// A claimed segment and the jobs it was cut into.
type Prepared = (Arc<SegmentWork>, Vec<Job>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What can be done at once.
    AtHand,
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
    claiming: Option<JoinHandle<Result<Vec<Prepared>>>>,
    ahead: Ahead,
    /// Nothing could be claimed; ask again then.
    claim_again_at: Option<Moment>,
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
            self.start_claim();
            self.start_probe().await?;
            if let Some(end) = self.hopeless(scope) {
                return Ok(end);
            }
            let wake = match self.idle(scope).await? {
                Idle::Busy => self.claim_again_at,
                Idle::Wait(until) => Some(until),
                Idle::Done => return Ok(DrainEnd::Done),
            };
            let wake = [wake, self.allowance_at()].into_iter().flatten().min();
            tokio::select! {
                biased;
                () = stop.asked() => return Ok(DrainEnd::Stopped),
                Some(joined) = self.tasks.join_next_with_id() => self.handle_joined(joined)?,
                claimed = awaited(&mut self.claiming) => {
                    let claimed = claimed.map_err(|died| EngineError::TaskDied(format!("a claim: {died}")))?;
                    self.handle_claimed(claimed?).await?;
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
    fn start_claim(&mut self) {
        if self.claiming.is_some() || self.claim_again_at.is_some() || self.spent.is_some() {
            return;
        }
        let wanted = self.ahead.wants(self.ready.len(), self.open.len()).or_else(|| self.wants_new());
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

    async fn handle_claimed(&mut self, claimed: Vec<Prepared>) -> Result<()> {
        if (claimed.len() as u32) < self.ahead.limit() {
            self.claim_again_at = Some(self.worker.engine.world.clock.moment() + RECLAIM);
        } else {
            self.ahead.learn(self.ready.len());
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
const RECLAIM: std::time::Duration = std::time::Duration::from_millis(250);

/// Leases segments and finds out which of their keys are still open.
async fn claim(worker: Worker, owner: WorkerId, limit: u32, wanted: Wanted) -> Result<Vec<Prepared>> {
    let engine = &worker.engine;
    let request = |now: Timestamp| Claim {
        stream: &worker.stream.id,
        owner: &owner,
        limit,
        wanted,
        lease_ttl: engine.settings.lease.ttl,
        now,
    };
    let claimed = engine.steady(|| engine.store.claim(request(engine.now()))).await?;
    refresh_head(&worker, &claimed).await;
    let mut works = Vec::with_capacity(claimed.len());
    for segment in claimed {
        works.push(prepare(&worker, segment).await?);
    }
    Ok(works)
}

/// Keys that may not be published yet are judged by where the head is now.
async fn refresh_head(worker: &Worker, claimed: &[Claimed]) {
    let unpublished = highwater_core::Pending::Unpublished.as_str();
    if claimed.iter().flat_map(|segment| &segment.due).any(|exception| exception.reason == unpublished) {
        // A head that cannot be read now leaves the old one standing: keys are waited for a little longer.
        if let Ok(head) = worker.engine.source.head(&worker.stream.spec.name, &worker.control_call()).await {
            worker.stream.heard_head(head);
        }
    }
}

async fn prepare(worker: &Worker, mut claimed: Claimed) -> Result<Prepared> {
    let engine = &worker.engine;
    let spec = &worker.stream.spec;
    if let Density::Snapshot(renewal) = spec.density {
        return snapshot::prepare(worker, claimed, renewal).await;
    }
    let keys = open_up(worker, &mut claimed).await?;
    let asked = with_due(&keys, &claimed);
    let known = engine.steady(|| engine.store.known(&worker.stream.id, spec.table, &asked)).await?;
    let marks = if claimed.purpose == Purpose::Rescan && worker.second_look == SecondLook::ByMark {
        let read_at = Some(engine.now());
        let tags = Tags::Asked(engine.steady(|| engine.store.tags(spec.table, &keys)).await?.into());
        Marks { tags, read_at }
    } else {
        Marks::default()
    };
    let (segment, span) = (claimed.lease.segment, claimed.span);
    let (work, jobs) = SegmentWork::new(claimed, keys, known, marks, worker.stream.policy.job_size);
    let count = jobs.iter().map(|job| job.keys.len()).sum();
    worker.window.widen(count);
    engine.emit(Event::Claimed { segment, span, keys: count as u64 });
    Ok((Arc::new(work), jobs))
}

/// The keys of what is left of a segment, which is cut in two as often as it holds too many.
async fn open_up(worker: &Worker, claimed: &mut Claimed) -> Result<KeySet> {
    let engine = &worker.engine;
    loop {
        let span = scan_span(worker.stream.spec.density, claimed);
        if span.is_empty() {
            return Ok(KeySet::List(Vec::new()));
        }
        if let Density::Named(_) = worker.stream.spec.density {
            return Ok(KeySet::List(engine.steady(|| engine.store.listed(&worker.stream.id, span)).await?));
        }
        match discover(worker, span).await? {
            Discovered::Keys(keys) => return Ok(keys),
            Discovered::Roll(roll) => return Ok(KeySet::List(roll.keys)),
            Discovered::Refused(failure) => return Err(failure.into()),
            Discovered::TooMany => {
                let middle = claimed.span.start().plus(claimed.span.len() / 2);
                engine.steady(|| engine.store.cut(&claimed.lease, middle)).await?;
                claimed.span = Span::new(claimed.span.start(), middle);
            }
        }
    }
}

/// Lists are made by many requests, and begun anew until patience ends.
async fn discover(worker: &Worker, span: Span) -> Result<Discovered> {
    let engine = &worker.engine;
    let (clock, began) = (&engine.world.clock, engine.world.clock.moment());
    let mut attempt = 0;
    loop {
        match engine.source.discover(&worker.stream.spec.name, span, &worker.control_call()).await {
            Ok(discovered) => return Ok(discovered),
            Err(failure)
                if failure.kind == FailureKind::Credentials
                    || clock.moment().since(began) >= engine.settings.patience.retry =>
            {
                return Err(failure.into());
            }
            Err(failure) => {
                attempt += 1;
                let wait = engine.settings.retry.delay(attempt, engine.world.entropy.unit());
                engine.emit(Event::HeadFailed { kind: failure.kind, retry_at: engine.now() + wait });
                clock.sleep(wait).await;
            }
        }
    }
}

/// Keys that are due may be stored by now, or belong to no span.
fn with_due(keys: &KeySet, claimed: &Claimed) -> KeySet {
    match keys {
        KeySet::Range(span) => KeySet::Range(*span),
        KeySet::List(list) => {
            let due = claimed.due.iter().map(|exception| exception.key.clone());
            KeySet::List(list.iter().cloned().chain(due).collect())
        }
    }
}

/// What to look at again. Where the keys are known without asking the remote, the rows themselves say what is missing, which also finds a row
/// that went missing behind the cursor; elsewhere the cursor spares a second listing.
fn scan_span(density: Density, claimed: &Claimed) -> Span {
    match density {
        Density::Dense | Density::Named(_) => claimed.span,
        Density::Sparse | Density::Snapshot(_) => claimed.rest(),
    }
}

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
