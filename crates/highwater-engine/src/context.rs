//! What every part of a run shares: the store, the source, the clock, and who wants to know.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use highwater_core::{Event, Key, Moment, Observer, Position, Region, SourceName, Span, StreamId, Timestamp};
use highwater_sources::{Clock, Density, Source, StreamPolicy, StreamSpec};
use highwater_store::{Blobs, ErrorKind, Store, StoreError};

use crate::{EngineSettings, Entropy, Stop};

/// One source to be mirrored into one store.
#[derive(Clone)]
pub struct Engine {
    pub name: SourceName,
    pub source: Arc<dyn Source>,
    pub store: Arc<dyn Store>,
    /// Where large contents go; none for a source that has none.
    pub blobs: Option<Blobs>,
    pub settings: EngineSettings,
    pub world: World,
}

/// The outside of a run that is neither source nor store.
#[derive(Clone)]
pub struct World {
    pub clock: Clock,
    pub entropy: Entropy,
    pub observer: Arc<dyn Observer>,
    pub stop: Stop,
    pub process: Process,
}

/// How others tell this process from theirs.
#[derive(Clone, Debug)]
pub struct Process {
    pub host: String,
    pub pid: u32,
}

impl Engine {
    pub fn stream_id(&self, spec: &StreamSpec) -> StreamId {
        StreamId { source: self.name.clone(), stream: spec.name.clone() }
    }

    pub(crate) fn emit(&self, event: Event) {
        self.world.observer.notify(&event);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    /// Calls the store until it answers, as long as waiting can help and patience lasts. After a stop all calls together
    /// have until its deadline: what is not committed then is fetched again another day.
    pub(crate) async fn steady<T, F>(&self, mut call: impl FnMut() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let began = self.world.clock.moment();
        let mut wait = STORE_WAIT;
        let mut troubled = false;
        loop {
            match self.in_time(call()).await {
                Ok(value) => {
                    if troubled {
                        self.emit(Event::StoreHealed);
                    }
                    return Ok(value);
                }
                Err(error) if error.kind.may_heal() && self.may_wait(began) => {
                    troubled = true;
                    self.emit(Event::StoreTrouble { error: describe(&error) });
                    self.wait_for_store(wait).await;
                    wait = (wait * 2).min(STORE_WAIT_MAX);
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn in_time<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        tokio::select! {
            biased;
            answer = call => answer,
            () = self.world.stop.over(&self.world.clock, self.settings.patience.stop) => {
                Err(StoreError::new(ErrorKind::Unavailable, "waiting for the store after a stop was asked for"))
            }
        }
    }

    fn may_wait(&self, began: Moment) -> bool {
        let now = self.world.clock.moment();
        let deadline = self.world.stop.deadline(&self.world.clock, self.settings.patience.stop);
        now.since(began) < self.settings.patience.store && deadline.is_none_or(|deadline| now < deadline)
    }

    /// A stop cuts the wait short: the next try may be the last.
    async fn wait_for_store(&self, wait: Duration) {
        let clock = &self.world.clock;
        match self.world.stop.deadline(clock, self.settings.patience.stop) {
            Some(deadline) => clock.sleep_until(deadline.min(clock.moment() + wait.min(STORE_WAIT_STOPPING))).await,
            None => tokio::select! {
                biased;
                () = clock.sleep(wait) => {}
                () = self.world.stop.asked() => {}
            },
        }
    }
}

const STORE_WAIT: Duration = Duration::from_millis(100);
const STORE_WAIT_MAX: Duration = Duration::from_secs(5);
const STORE_WAIT_STOPPING: Duration = Duration::from_millis(500);

/// An error with its causes on one line.
pub fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The stream a run works on.
pub(crate) struct StreamContext {
    pub(crate) id: StreamId,
    pub(crate) spec: StreamSpec,
    pub(crate) policy: StreamPolicy,
    /// What a plan cuts the axis into.
    segment_size: AtomicU64,
    /// The exclusive end of the axis as last heard.
    head: AtomicI64,
    /// When this run began to look at everything, in milliseconds.
    round_began: AtomicI64,
}

impl StreamContext {
    pub(crate) fn new(engine: &Engine, spec: &StreamSpec) -> Self {
        let policy = engine.settings.applied_to(spec.policy);
        StreamContext {
            id: engine.stream_id(spec),
            spec: spec.clone(),
            policy,
            segment_size: AtomicU64::new(policy.segment_size),
            head: AtomicI64::new(i64::MIN),
            round_began: AtomicI64::new(i64::MIN),
        }
    }

    /// Keys that may be asked for at once: where a snapshot is taken, a job is about one request.
    pub(crate) fn keys_fetching(&self, settings: &EngineSettings) -> usize {
        match self.spec.density {
            Density::Snapshot(_) => settings.sizes.in_flight as usize * self.policy.job_size,
            _ => settings.keys_fetching(self.policy.job_size),
        }
    }

    /// Jobs at work at once, those that fetch and those that are being committed.
    pub(crate) fn jobs_max(&self, settings: &EngineSettings) -> usize {
        match self.spec.density {
            Density::Snapshot(_) => settings.sizes.in_flight as usize + 8,
            _ => settings.jobs_max(self.policy.job_size),
        }
    }

    /// Whether a job is worked on in parts, each written as it has come.
    pub(crate) fn is_in_parts(&self) -> bool {
        self.spec.density == Density::Sparse
    }

    pub(crate) fn segment_size(&self) -> u64 {
        self.segment_size.load(Ordering::Relaxed)
    }

    /// What suits this remote better than what suits most.
    pub(crate) fn cut_by(&self, segment_size: u64) {
        self.segment_size.store(segment_size.max(1), Ordering::Relaxed);
    }

    pub(crate) fn began_round(&self, at: Timestamp) {
        self.round_began.store(at.as_millis(), Ordering::Relaxed);
    }

    /// From when on what was fetched shows the state at the end of a span, or a later one. Positions are seconds; a run
    /// before this one may have ended in the same.
    pub(crate) fn seen_since(&self, span: Span) -> Timestamp {
        let end = span.end().0.saturating_mul(1000);
        Timestamp::from_millis(end.max(self.round_began.load(Ordering::Relaxed)))
    }

    pub(crate) fn heard_head(&self, head: Position) {
        self.head.fetch_max(head.0, Ordering::Relaxed);
    }

    /// Whether an absence of `key` may be final: where keys are positions, only more than `settled_behind` before the
    /// last object.
    pub(crate) fn region(&self, key: &Key) -> Region {
        let last = Position(self.head.load(Ordering::Relaxed)).minus(1);
        match key.number().filter(|_| self.spec.density == Density::Dense) {
            Some(position) if Position(position) >= last.minus(self.policy.settled_behind) => Region::Head,
            _ => Region::Settled,
        }
    }
}
