//! The workers that fetch what the remote has told of: ahead of everything else, a few quick tries, and what cannot be
//! had then becomes ordinary work.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use highwater_core::{
    Event, Failure, Key, Lane, Position, Record, RescanReason, RetryPolicy, Span, Strike, schema::Table,
};
use highwater_sources::{Answer, Beat, Call, Density, Fetched, Tags};
use highwater_store::{ErrorKind, LiveCommit, RescanPlan};
use tokio::task::JoinSet;

use super::{
    Followed, Service,
    queue::{Taken, TakenKey},
};
use crate::{EngineError, error::Result};

/// Keys a worker takes at a time: one commit for all of them, and none waits long for the others.
const BATCH: usize = 16;
/// Quick tries before a key becomes ordinary work.
const TRIES: u32 = 3;
const RETRY: RetryPolicy =
    RetryPolicy { attempts: TRIES, base: Duration::from_millis(300), max: Duration::from_secs(3) };
/// While everything fails, keys wait without a strike.
const OUTAGE_LOOK: Duration = Duration::from_secs(1);
/// So many falls without anything stored in between are no accident.
const FALLS_IN_ROW_MAX: u32 = 100;

impl Service {
    /// Keeps the workers at work: one that falls is replaced and counted.
    pub(super) async fn update(self: &Arc<Self>) -> Result<()> {
        let mut workers: JoinSet<Result<()>> = JoinSet::new();
        let mut falls_in_row = 0;
        let mut updated = 0;
        loop {
            while workers.len() < self.settings.workers {
                let service = self.clone();
                workers.spawn(async move { service.update_one_by_one().await });
            }
            self.pulse.note(|pulse| pulse.workers_alive = workers.len());
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
                pulse.workers_alive = workers.len();
            });
            self.engine.emit(Event::LiveWorkerFell);
            if falls_in_row > FALLS_IN_ROW_MAX {
                return Err(EngineError::TaskDied(format!("the update workers: {fallen}")));
            }
        }
    }

    async fn update_one_by_one(&self) -> Result<()> {
        loop {
            let mut taken = self.queue.take(BATCH).await;
            self.pulse.note(|pulse| pulse.queue_depth = self.queue.depth());
            self.defer_spent(&mut taken).await?;
            if !taken.keys.is_empty() {
                self.fetch(&mut taken).await?;
            }
            self.pulse.note(|pulse| pulse.queue_depth = self.queue.depth());
        }
    }

    /// What has used up its tries is ordinary work from now on.
    async fn defer_spent(&self, taken: &mut Taken) -> Result<()> {
        let spent: Vec<TakenKey> = taken.keys.iter().filter(|taken| taken.tries >= TRIES).cloned().collect();
        for TakenKey { live, .. } in spent {
            if let Some(followed) = self.followed(&live.stream) {
                self.defer(followed, &live.key).await?;
            }
            taken.finish(&live.key);
        }
        Ok(())
    }

    async fn fetch(&self, taken: &mut Taken) -> Result<()> {
        let stream = taken.keys[0].live.stream.clone();
        let followed = self.followed(&stream).expect("only what is followed is queued");
        let keys: Vec<Key> = taken.keys.iter().map(|taken| taken.live.key.clone()).collect();
        let sorted = self.ask(followed, &keys, Lane::Live).await;
        self.store(followed, &sorted).await?;
        for key in sorted.settled() {
            taken.finish(&key);
        }
        for key in &sorted.delayed {
            self.defer(followed, key).await?;
            taken.finish(key);
        }
        let now = self.engine.world.clock.moment();
        for (key, _) in sorted.failed {
            let tries = taken.keys.iter().find(|taken| taken.live.key == key).map_or(0, |taken| taken.tries);
            let (tries, wait) = match sorted.strike {
                Strike::Outage => (tries, OUTAGE_LOOK),
                Strike::Counts => (tries + 1, RETRY.delay(tries + 1, self.engine.world.entropy.unit())),
            };
            taken.put_back(&key, tries, now + wait);
        }
        if sorted.stopping {
            // The process ends; what is left in the queue is told of by the cursor that stays behind it.
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    pub(super) async fn ask(&self, followed: &Followed, keys: &[Key], lane: Lane) -> Sorted {
        let clock = &self.engine.world.clock;
        let call = Call { tags: Tags::Asked(Arc::new(BTreeMap::new())), ..Call::new(lane, Beat::new(clock.clone())) };
        let answers = match self.engine.source.fetch(&followed.stream.spec.name, keys, &call).await {
            Ok(answers) => answers,
            Err(failure) => {
                let fetched = Fetched::Failed(failure);
                keys.iter().map(|key| Answer { key: key.clone(), fetched: fetched.clone() }).collect()
            }
        };
        let strike = self.guard.observe(&answers, clock.moment(), self.engine.now());
        Sorted::of(answers, followed.stream.spec.table, strike)
    }

    pub(super) async fn store(&self, followed: &Followed, sorted: &Sorted) -> Result<()> {
        let mut parts = vec![(sorted.records.clone(), sorted.unchanged.clone())];
        while let Some((records, unchanged)) = parts.pop() {
            if records.is_empty() && unchanged.is_empty() {
                continue;
            }
            let stream = followed.stream.id.clone();
            let commit = Arc::new(LiveCommit { stream, now: self.engine.now(), records, unchanged });
            let began = self.engine.world.clock.moment();
            match self.engine.steady(|| self.engine.store.commit_live(commit.clone())).await {
                Ok(done) => self.note_stored(&done, began),
                Err(error) if error.kind == ErrorKind::Refused && commit.records.len() > 1 => {
                    let LiveCommit { records, unchanged, .. } = Arc::unwrap_or_clone(commit);
                    parts.extend(records.into_iter().map(|record| (vec![record], Vec::new())));
                    parts.push((Vec::new(), unchanged));
                }
                // The store cannot hold this one: the ordinary path tries it as often as any other, and lists it.
                Err(error) if error.kind == ErrorKind::Refused && commit.records.len() == 1 => {
                    self.defer(followed, &commit.records[0].key).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn note_stored(&self, done: &highwater_store::LiveCommitted, began: highwater_core::Moment) {
        let now = self.engine.world.clock.moment();
        self.pulse.note(|pulse| {
            pulse.updated += done.batch.stored();
            pulse.ages.merge(&done.ages);
            pulse.last_sound = Some(now);
        });
        let took = now.since(began);
        self.engine.emit(Event::LiveCommitted { batch: done.batch, ages: done.ages, took });
    }

    /// Makes a key ordinary work. What lies beyond the plan is going to be planned anyway.
    pub(super) async fn defer(&self, followed: &Followed, key: &Key) -> Result<()> {
        let engine = &self.engine;
        let at = match (followed.stream.spec.density, key.number()) {
            (Density::Dense, Some(id)) => Some(Position(id)),
            _ => engine.steady(|| engine.store.listed_at(&followed.stream.id, key)).await?,
        };
        engine.emit(Event::LiveDeferred { key: key.clone() });
        let row = self.row(followed).await?;
        let Some(at) = at.filter(|at| row.span.contains(*at)) else { return Ok(()) };
        let plan = RescanPlan {
            stream: followed.stream.id.clone(),
            reason: RescanReason::Key,
            span: Span::new(at, at.plus(1)),
            segment_size: 1,
            now: engine.now(),
        };
        engine.steady(|| engine.store.begin_rescan(&plan)).await?;
        followed.news.notify_one();
        Ok(())
    }
}

/// Answers as what is to be done with them.
pub(super) struct Sorted {
    records: Vec<Record>,
    unchanged: Vec<(Key, &'static Table)>,
    /// Stored, but the remote holds content back.
    delayed: Vec<Key>,
    /// Nothing there: what is stored stays, and what is not is looked for by the ordinary work.
    absent: Vec<Key>,
    pub(super) failed: Vec<(Key, Failure)>,
    pub(super) strike: Strike,
    pub(super) stopping: bool,
}

impl Sorted {
    fn of(answers: Vec<Answer>, table: &'static Table, strike: Strike) -> Self {
        let mut sorted = Sorted {
            records: Vec::new(),
            unchanged: Vec::new(),
            delayed: Vec::new(),
            absent: Vec::new(),
            failed: Vec::new(),
            strike,
            stopping: false,
        };
        for Answer { key, fetched } in answers {
            match fetched {
                Fetched::Found(record) => sorted.records.push(record),
                Fetched::Delayed { record, .. } => {
                    sorted.records.push(record);
                    sorted.delayed.push(key);
                }
                Fetched::Unchanged => sorted.unchanged.push((key, table)),
                Fetched::Absent | Fetched::Excluded { .. } => sorted.absent.push(key),
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
        stored.chain(unchanged).chain(&self.absent).cloned().collect()
    }
}
