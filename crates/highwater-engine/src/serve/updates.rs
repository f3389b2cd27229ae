//! The workers that fetch what the remote has told of: ahead of everything else, a few quick tries, and what cannot be
//! had then becomes ordinary work.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{Stream, StreamExt, stream::FuturesUnordered};
use highwater_core::{
    Event, ExceptionState, Failure, Key, KeySet, Lane, Moment, Position, Record, RescanReason, RetryPolicy, Span,
    Strike, Timestamp, schema::Table,
};
use highwater_sources::{Answer, Beat, Call, Density, Fetched, Tags};
use highwater_store::{ErrorKind, LiveCommit, LiveCommitted, RescanPlan};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::JoinSet,
};

use super::{
    Followed, Service,
    queue::{Taken, TakenKey},
};
use crate::{EngineError, error::Result};

/// Keys a worker takes at a time: few commits for all of them.
const BATCH: usize = 16;
/// Quick tries before a key becomes ordinary work.
const TRIES: u32 = 3;
/// The head runs ahead of the bodies by seconds. What is new is asked for again for so long before it is left to the
/// catch-up, which may be days away from it,
const PUBLISHED_WITHIN: Duration = Duration::from_secs(30);
/// and all that is waited for together no more often than twenty times a second.
const APART: Duration = Duration::from_millis(50);
const RETRY: RetryPolicy =
    RetryPolicy { attempts: TRIES, base: Duration::from_millis(300), max: Duration::from_secs(3) };
/// A worker that waits for an answer for so long lets another take its turn: a remote that never answers some requests
/// has 30 s for each, and the rest of the feed is not to wait for that.
const PATIENCE: Duration = Duration::from_secs(5);
/// Workers for each turn, so that there is somebody to take one that is given up.
const WORKERS_A_TURN: usize = 4;
/// How long the first answers wait for others to be stored with.
const GATHER: Duration = Duration::from_millis(30);
/// New positions are planned a moment after they are fetched.
const PLANNED_SOON: Duration = Duration::from_secs(1);
/// While everything fails, keys wait without a strike.
const OUTAGE_LOOK: Duration = Duration::from_secs(1);
/// So many falls without anything stored in between are no accident.
const FALLS_IN_ROW_MAX: u32 = 100;

impl Service {
    /// Keeps the workers at work: one that falls is replaced and counted.
    pub(super) async fn update(self: &Arc<Self>) -> Result<()> {
        let turns = Arc::new(Semaphore::new(self.settings.workers));
        let mut workers: JoinSet<Result<()>> = JoinSet::new();
        let mut falls_in_row = 0;
        let mut updated = 0;
        loop {
            while workers.len() < WORKERS_A_TURN * self.settings.workers {
                let (service, turns) = (self.clone(), turns.clone());
                workers.spawn(async move { service.update_one_by_one(&turns).await });
            }
            self.pulse.note(|pulse| pulse.workers_alive = workers.len().min(self.settings.workers));
            let fallen = match workers.join_next().await.expect("there is at least one worker") {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => return Err(error),
                Err(fallen) => fallen,
            };
            let progress = self.pulse.view().updated;
            falls_in_row = if progress > updated { 1 } else { falls_in_row + 1 };
            updated = progress;
            self.pulse.note(|pulse| {
                pulse.worker_falls += 1;
                pulse.workers_alive = workers.len().min(self.settings.workers);
            });
            self.engine.emit(Event::LiveWorkerFell);
            if falls_in_row > FALLS_IN_ROW_MAX {
                return Err(EngineError::TaskDied(format!("the update workers: {fallen}")));
            }
        }
    }

    async fn update_one_by_one(&self, turns: &Semaphore) -> Result<()> {
        loop {
            let turn = turns.acquire().await.expect("the semaphore is never closed");
            let mut taken = self.queue.take(BATCH).await;
            self.pulse.note(|pulse| pulse.queue_depth = self.queue.depth());
            self.defer_spent(&mut taken).await?;
            if !taken.keys.is_empty() {
                self.fetch(&mut taken, turn).await?;
            }
            self.pulse.note(|pulse| pulse.queue_depth = self.queue.depth());
        }
    }

    /// What has used up its tries is ordinary work from now on, unless it is new and may come any moment.
    async fn defer_spent(&self, taken: &mut Taken) -> Result<()> {
        let now = self.engine.world.clock.moment();
        let spent: Vec<TakenKey> = taken.keys.iter().filter(|taken| taken.tries >= TRIES).cloned().collect();
        for TakenKey { live, entered, .. } in spent {
            let Some(followed) = self.followed(&live.stream) else { continue };
            match self.defer(followed, &live.key).await? {
                Deferral::NotThereYet if now.since(entered) < PUBLISHED_WITHIN && self.queue.is_roomy() => {}
                Deferral::Done | Deferral::NotThereYet => taken.finish(&live.key),
                Deferral::NotPlannedYet => {
                    let soon = self.engine.world.clock.moment() + PLANNED_SOON;
                    taken.put_back(&live.key, TRIES, soon);
                }
            }
        }
        Ok(())
    }

    async fn fetch(&self, taken: &mut Taken, turn: SemaphorePermit<'_>) -> Result<()> {
        let stream = taken.keys[0].live.stream.clone();
        let followed = self.followed(&stream).expect("only what is followed is queued");
        let keys: Vec<Key> = taken.keys.iter().map(|taken| taken.live.key.clone()).collect();
        let each = keys.iter().map(|key| self.ask(followed, std::slice::from_ref(key), Lane::Live));
        let mut asked: FuturesUnordered<_> = each.collect();
        let clock = &self.engine.world.clock;
        let (mut turn, impatient_at) = (Some(turn), clock.moment() + PATIENCE);
        loop {
            let first = tokio::select! {
                biased;
                first = asked.next() => first,
                () = clock.sleep_until(impatient_at), if turn.is_some() => {
                    turn = None;
                    continue;
                }
            };
            let Some(first) = first else { return Ok(()) };
            let sorted = self.gather(first, &mut asked).await;
            self.settle_told(followed, sorted, taken).await?;
        }
    }

    /// What comes in within a moment is stored together; one that takes its time keeps nobody else waiting.
    async fn gather(&self, mut sorted: Sorted, asked: &mut (impl Stream<Item = Sorted> + Unpin)) -> Sorted {
        let clock = &self.engine.world.clock;
        let until = clock.moment() + GATHER;
        loop {
            tokio::select! {
                biased;
                more = asked.next() => match more {
                    Some(more) => sorted.add(more),
                    None => return sorted,
                },
                () = clock.sleep_until(until) => return sorted,
            }
        }
    }

    async fn settle_told(&self, followed: &Followed, sorted: Sorted, taken: &mut Taken) -> Result<()> {
        let Unstored { behind, unplanned } = self.store(followed, &sorted).await?;
        self.note_authors(followed, &sorted).await?;
        let now = self.engine.world.clock.moment();
        for key in &behind {
            let tries = taken.tries_of(key);
            taken.put_back(key, tries, now + RETRY.base);
        }
        for key in &unplanned {
            taken.put_back(key, 0, now + PLANNED_SOON);
        }
        for key in sorted.settled() {
            taken.finish(&key);
        }
        for key in sorted.delayed.iter().filter(|key| !behind.contains(key)) {
            match self.defer(followed, key).await? {
                Deferral::Done | Deferral::NotThereYet => taken.finish(key),
                Deferral::NotPlannedYet => taken.put_back(key, 0, now + PLANNED_SOON),
            }
        }
        for key in sorted.failed.into_iter().map(|(key, _)| key).chain(sorted.absent) {
            let tries = taken.tries_of(&key);
            let (tries, wait) = match sorted.strike {
                Strike::Outage => (tries, OUTAGE_LOOK),
                Strike::Counts => (tries + 1, self.retry_delay(tries + 1)),
            };
            taken.put_back(&key, tries, now + wait);
        }
        if sorted.stopping {
            // The process ends; what is left in the queue is told of by the cursor that stays behind it.
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    fn retry_delay(&self, tries: u32) -> Duration {
        let together =
            if tries > TRIES { APART * u32::try_from(self.queue.depth()).unwrap_or(u32::MAX) } else { Duration::ZERO };
        RETRY.delay(tries, self.engine.world.entropy.unit()) + together
    }

    /// Who wrote what was just stored, for the streams that mirror them.
    async fn note_authors(&self, followed: &Followed, sorted: &Sorted) -> Result<()> {
        for named in &self.streams {
            let Density::Named(from) = named.stream.spec.density else { continue };
            let Some(column) = from.table.position(from.column) else { continue };
            if followed.stream.spec.name.as_str() != from.stream {
                continue;
            }
            let names = sorted.records.iter().filter_map(|record| record.body.values[column].as_text());
            let new = self.authors.new_ones(names.map(str::to_owned));
            if !new.is_empty() {
                self.engine.steady(|| self.engine.store.note_names(&named.stream.id, &new)).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn ask(&self, followed: &Followed, keys: &[Key], lane: Lane) -> Sorted {
        let clock = &self.engine.world.clock;
        let call = Call { tags: Tags::Asked(Arc::new(BTreeMap::new())), ..Call::new(lane, Beat::new(clock.clone())) };
        let asked_at = self.engine.now();
        let answers = match self.engine.source.fetch(&followed.stream.spec.name, keys, &call).await {
            Ok(answers) => answers,
            Err(failure) => {
                let fetched = Fetched::Failed(failure);
                keys.iter().map(|key| Answer::new(key.clone(), fetched.clone())).collect()
            }
        };
        let strike = self.guard.observe(&answers, clock.moment(), self.engine.now());
        Sorted { asked_at, ..Sorted::of(answers, followed.stream.spec.table, strike) }
    }

    pub(super) async fn store(&self, followed: &Followed, sorted: &Sorted) -> Result<Unstored> {
        let mut unstored = Unstored::default();
        let mut parts = vec![(sorted.records.clone(), sorted.unchanged.clone())];
        while let Some((records, unchanged)) = parts.pop() {
            if records.is_empty() && unchanged.is_empty() {
                continue;
            }
            let stream = followed.stream.id.clone();
            let commit =
                Arc::new(LiveCommit { stream, now: self.engine.now(), asked_at: sorted.asked_at, records, unchanged });
            let began = self.engine.world.clock.moment();
            match self.engine.steady(|| self.engine.store.commit_live(commit.clone())).await {
                Ok(done) => {
                    self.note_stored(followed, &done, began);
                    unstored.behind.extend(done.behind);
                }
                Err(error)
                    if error.kind == ErrorKind::Refused && commit.records.len() + commit.unchanged.len().min(1) > 1 =>
                {
                    let LiveCommit { records, unchanged, .. } = Arc::unwrap_or_clone(commit);
                    parts.extend(records.into_iter().map(|record| (vec![record], Vec::new())));
                    parts.push((Vec::new(), unchanged));
                }
                // The store cannot hold this one: the ordinary path tries it as often as any other, and lists it.
                Err(error) if error.kind == ErrorKind::Refused && commit.records.len() == 1 => {
                    let key = &commit.records[0].key;
                    if self.defer(followed, key).await? == Deferral::NotPlannedYet {
                        unstored.unplanned.push(key.clone());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(unstored)
    }

    fn note_stored(&self, followed: &Followed, done: &LiveCommitted, began: Moment) {
        let now = self.engine.world.clock.moment();
        let is_main = followed.stream.id == self.main().stream.id;
        self.pulse.note(|pulse| {
            pulse.updated += if is_main { done.batch.stored() } else { 0 };
            pulse.ages.merge(&done.ages);
            pulse.last_sound = Some(now);
        });
        let took = now.since(began);
        self.engine.emit(Event::LiveCommitted { batch: done.batch, ages: done.ages, took });
    }

    /// Makes a key ordinary work.
    pub(super) async fn defer(&self, followed: &Followed, key: &Key) -> Result<Deferral> {
        let (engine, stream) = (&self.engine, &followed.stream);
        let keys = KeySet::List(vec![key.clone()]);
        let known = engine.steady(|| engine.store.known(&stream.id, stream.spec.table, &keys)).await?;
        let is_missing = known.exceptions.iter().any(|exception| exception.state == ExceptionState::Missing);
        if !is_missing && !known.stored.contains(key) {
            return Ok(Deferral::NotThereYet);
        }
        let at = match (stream.spec.density, key.number()) {
            (Density::Dense, Some(id)) => Some(Position(id)),
            _ => engine.steady(|| engine.store.listed_at(&stream.id, key)).await?,
        };
        let row = self.row(followed).await?;
        let Some(at) = at.filter(|at| row.span.contains(*at)) else { return Ok(Deferral::NotPlannedYet) };
        engine.emit(Event::LiveDeferred { key: key.clone() });
        let plan = RescanPlan {
            stream: stream.id.clone(),
            reason: RescanReason::Key,
            span: Span::new(at, at.plus(1)),
            segment_size: 1,
            now: engine.now(),
        };
        engine.steady(|| engine.store.begin_rescan(&plan)).await?;
        followed.news.notify_one();
        Ok(Deferral::Done)
    }
}

/// What became of a key that the workers are done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deferral {
    /// Somebody else answers for it.
    Done,
    /// Nothing is known of it: the catch-up is going to ask for it, sooner or later.
    NotThereYet,
    /// It is stored and lies beyond the plan, for another moment.
    NotPlannedYet,
}

/// Keys that are to be asked for again.
#[derive(Default)]
pub(super) struct Unstored {
    /// Something else was stored while they were on their way.
    pub(super) behind: BTreeSet<Key>,
    /// The store refuses them, and they cannot become ordinary work yet.
    pub(super) unplanned: Vec<Key>,
}

/// Answers as what is to be done with them.
pub(super) struct Sorted {
    asked_at: Timestamp,
    records: Vec<Record>,
    unchanged: Vec<(Key, &'static Table)>,
    /// Stored, but the remote holds content back.
    delayed: Vec<Key>,
    /// Nothing there, which one answer does not prove.
    absent: Vec<Key>,
    excluded: Vec<Key>,
    pub(super) failed: Vec<(Key, Failure)>,
    pub(super) strike: Strike,
    pub(super) stopping: bool,
}

impl Sorted {
    fn of(answers: Vec<Answer>, table: &'static Table, strike: Strike) -> Self {
        let mut sorted = Sorted {
            asked_at: Timestamp::EPOCH,
            records: Vec::new(),
            unchanged: Vec::new(),
            delayed: Vec::new(),
            absent: Vec::new(),
            excluded: Vec::new(),
            failed: Vec::new(),
            strike,
            stopping: false,
        };
        for Answer { key, fetched, .. } in answers {
            match fetched {
                Fetched::Found(record) => sorted.records.push(record),
                Fetched::Delayed { record, .. } => {
                    sorted.records.push(record);
                    sorted.delayed.push(key);
                }
                Fetched::Unchanged => sorted.unchanged.push((key, table)),
                Fetched::Absent => sorted.absent.push(key),
                Fetched::Excluded { .. } => sorted.excluded.push(key),
                Fetched::Failed(failure) => sorted.failed.push((key, failure)),
                Fetched::Skipped => sorted.stopping = true,
            }
        }
        sorted
    }

    /// Keys that need nothing more.
    fn settled(&self) -> Vec<Key> {
        let stored = self.records.iter().map(|record| &record.key).filter(|key| !self.delayed.contains(key));
        let unchanged = self.unchanged.iter().map(|(key, _)| key);
        stored.chain(unchanged).chain(&self.excluded).cloned().collect()
    }

    fn add(&mut self, more: Sorted) {
        let Sorted { asked_at, records, unchanged, delayed, absent, excluded, failed, strike, stopping } = more;
        self.asked_at = self.asked_at.min(asked_at);
        self.records.extend(records);
        self.unchanged.extend(unchanged);
        self.delayed.extend(delayed);
        self.absent.extend(absent);
        self.excluded.extend(excluded);
        self.failed.extend(failed);
        self.stopping |= stopping;
        if strike == Strike::Outage {
            self.strike = strike;
        }
    }
}
