//! The mirror that stays current: listens, fetches what is told of, catches up, looks again, and accounts for every
//! moment in which it did not listen. Until it is stopped.

mod authors;
mod closed;
mod heads;
mod listener;
mod names;
mod owed;
mod pulse;
mod queue;
mod record;
mod rescans;
mod role;
mod settings;
mod updates;
mod windows;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use highwater_core::{BatchCounts, Lane, Position, StreamName, Timestamp, WorkerId};
use highwater_sources::{Beat, Call};
use highwater_store::{ErrorKind, RunOutcome, StreamRow};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify, mpsc, watch},
    task::JoinSet,
};

pub use pulse::{Pulse, PulseView, Unheard};
pub use settings::{LiveSettings, RescanSettings};

use crate::{
    EngineError,
    account::AccountLink,
    context::{Engine, StreamContext},
    dispatcher::{Dispatcher, DrainEnd, Scope},
    duties::Duties,
    error::Result,
    guard::Guard,
    run::RunLog,
    worker::Worker,
};
use authors::Authors;
use closed::{ClosedSpans, Overhearing};
use listener::FeedNews;
use queue::LiveQueue;

#[derive(Clone, Debug, Default)]
pub struct ServeRequest {
    pub live: LiveSettings,
    pub pulse: Arc<Pulse>,
}

/// One source kept current by this process.
struct Service {
    engine: Engine,
    owner: WorkerId,
    settings: LiveSettings,
    /// The first is the one the feed is about.
    streams: Vec<Followed>,
    guard: Arc<Guard>,
    /// Spans of the first stream that were closed since they were last looked through for names.
    closed: Arc<ClosedSpans>,
    authors: Authors,
    queue: Arc<LiveQueue>,
    pulse: Arc<Pulse>,
    heads: watch::Sender<Option<Position>>,
    /// The feed has named something beyond the head.
    beyond_head: Notify,
    feed_news: mpsc::Sender<FeedNews>,
    /// Heard by whoever keeps the windows, one at a time.
    feed_heard: AsyncMutex<mpsc::Receiver<FeedNews>>,
    /// When the feed last gave a sign of life; held for a few instructions.
    last_event: Mutex<Option<Timestamp>>,
    told_anything: Notify,
    /// The feed has named something.
    told_keys: Notify,
    /// Where the mirror began when that was last looked up: it never begins later.
    origin: AtomicI64,
}

/// A stream and the dispatcher that works on it.
struct Followed {
    stream: Arc<StreamContext>,
    news: Arc<Notify>,
}

impl Engine {
    /// Keeps every stream current until a stop is asked for. An error is one that does not heal by itself.
    pub async fn serve(&self, request: &ServeRequest) -> Result<()> {
        let mut run = RunLog::begin(self, "serve").await?;
        let owner = self.world.entropy.worker_id();
        let serve = async {
            match self.source.changes() {
                Some(changes) => self.serve_record(&owner, changes, request).await,
                None => self.serve_as(&owner, request).await,
            }
        };
        let served = tokio::select! {
            biased;
            served = serve => served,
            never = run.keep_counting() => never,
        };
        crate::account::leave(self, &owner).await;
        let (outcome, batch) = match &served {
            Ok(batch) => (RunOutcome::Stopped, *batch),
            Err(_) => (RunOutcome::Failed, BatchCounts::default()),
        };
        run.count(&batch);
        let ended = run.end(outcome).await;
        served?;
        ended
    }

    async fn serve_as(&self, owner: &WorkerId, request: &ServeRequest) -> Result<BatchCounts> {
        let account = AccountLink::join(self, owner.clone()).await?;
        let duties = Duties::start(self, account);
        let mut dispatchers: JoinSet<Result<(DrainEnd, BatchCounts)>> = JoinSet::new();
        let mut streams = Vec::new();
        let (guard, closed) = (Arc::<Guard>::default(), Arc::<ClosedSpans>::default());
        for spec in self.source.streams() {
            let stream = Arc::new(StreamContext::new(self, spec));
            let mut engine = self.clone();
            if streams.is_empty() {
                engine.world.observer = Arc::new(Overhearing::new(engine.world.observer, closed.clone()));
            }
            let worker = Worker::guarded(engine, stream.clone(), guard.clone());
            let mut dispatcher = Dispatcher::new(worker, owner.clone(), duties.watch());
            streams.push(Followed { stream, news: dispatcher.news() });
            dispatchers.spawn(async move { Ok((dispatcher.drain(Scope::Endless).await?, dispatcher.totals)) });
        }
        let service = Arc::new(Service::new(self, owner, request, streams, guard, closed));
        let ended = tokio::select! {
            biased;
            () = self.world.stop.asked() => Ok(()),
            ended = dispatchers.join_next() => ended.map_or(Ok(()), dispatcher_died),
            led = service.lead_in_turn() => led,
        };
        service.say_goodbye().await;
        ended?;
        let mut batch = BatchCounts::default();
        while let Some(ended) = dispatchers.join_next().await {
            let (_, totals) = ended.map_err(|died| EngineError::TaskDied(format!("a dispatcher: {died}")))??;
            batch.add(&totals);
        }
        Ok(batch)
    }
}

/// A dispatcher without end has ended.
fn dispatcher_died(ended: Result<Result<(DrainEnd, BatchCounts)>, tokio::task::JoinError>) -> Result<()> {
    match ended {
        Ok(Ok((DrainEnd::Stopped, _))) => Ok(()),
        Ok(Ok((end, _))) => Err(EngineError::TaskDied(format!("a dispatcher ended by itself: {end:?}"))),
        Ok(Err(error)) => Err(error),
        Err(died) => Err(EngineError::TaskDied(format!("a dispatcher: {died}"))),
    }
}

impl Service {
    fn new(
        engine: &Engine,
        owner: &WorkerId,
        request: &ServeRequest,
        streams: Vec<Followed>,
        guard: Arc<Guard>,
        closed: Arc<ClosedSpans>,
    ) -> Self {
        const NEWS_MAX: usize = 64;
        let (feed_news, feed_heard) = mpsc::channel(NEWS_MAX);
        Service {
            owner: owner.clone(),
            settings: request.live,
            streams,
            guard,
            closed,
            authors: Authors::default(),
            queue: LiveQueue::new(engine.world.clock.clone(), request.live.queue),
            pulse: request.pulse.clone(),
            heads: watch::Sender::new(None),
            beyond_head: Notify::new(),
            feed_news,
            feed_heard: AsyncMutex::new(feed_heard),
            last_event: Mutex::default(),
            told_anything: Notify::new(),
            told_keys: Notify::new(),
            origin: AtomicI64::new(i64::MAX),
            engine: engine.clone(),
        }
    }

    /// Stands by until the role is free, then leads until it is lost.
    async fn lead_in_turn(self: &Arc<Self>) -> Result<()> {
        loop {
            if !self.take_role().await? {
                let now = self.engine.world.clock.moment();
                self.pulse.note(|pulse| pulse.last_sound = Some(now));
                self.engine.world.clock.sleep(self.role_look()).await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.hold_role() => {}
                led = self.lead() => match led {
                    Err(EngineError::Store(error)) if error.kind == ErrorKind::Fenced => {}
                    led => return led,
                },
            }
            self.lose_role();
        }
    }

    /// Everything that only one process does. Ends with the first part that cannot go on.
    async fn lead(self: &Arc<Self>) -> Result<()> {
        for followed in &self.streams {
            self.row(followed).await?;
        }
        let blind_before = self.blind_before().await?;
        let mut feed_heard = self.feed_heard.lock().await;
        // What an earlier time in this role has left behind is told by the store.
        while feed_heard.try_recv().is_ok() {}
        self.last_event.lock().expect("no code panics while it holds this lock").take();
        tokio::select! {
            biased;
            ended = self.keep_windows(blind_before, &mut feed_heard) => ended,
            ended = self.follow_feeds() => ended,
            ended = self.update() => ended,
            ended = async { self.first_heard(blind_before).await; self.extend().await } => ended,
            ended = self.look_again() => ended,
            ended = self.follow_names() => ended,
            ended = async { self.owe_inherited().await?; self.note_heard().await } => ended,
        }
    }

    async fn follow_feeds(&self) -> Result<()> {
        let Some(live) = self.engine.source.live() else { return std::future::pending().await };
        self.pulse.note(|pulse| pulse.feeds = live.feeds().len());
        let feeds = live.feeds().iter().map(|feed| Box::pin(self.follow(live, *feed)));
        let (ended, _, _) = futures_util::future::select_all(feeds).await;
        ended
    }

    /// What was told and is not stored is entered, and until when all was heard is noted: the next start knows since when
    /// nobody listened.
    async fn say_goodbye(&self) {
        let owing = async {
            // Not entered, the cursor stays before what was told, and the next start takes the time since as blind.
            if let Err(error) = self.owe_told().await {
                tracing::debug!(error = %crate::describe(&error), "entering what was told and is not stored");
            }
        };
        self.in_short(owing).await;
        let farewell = async {
            if let Some(until) = self.heard_until() {
                // Not noted, the next start takes the time since as blind, which costs a look and loses nothing.
                self.engine.store.heard(&self.heard(until)).await.ok();
            }
            self.drop_role().await;
        };
        self.in_short(farewell).await;
    }

    async fn in_short(&self, ending: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = ending => {}
            () = self.engine.world.clock.sleep(FAREWELL) => {}
        }
    }

    fn main(&self) -> &Followed {
        &self.streams[0]
    }

    fn followed(&self, name: &StreamName) -> Option<&Followed> {
        self.streams.iter().find(|followed| followed.stream.spec.name == *name)
    }

    async fn row(&self, followed: &Followed) -> Result<StreamRow> {
        let (engine, stream) = (&self.engine, &followed.stream);
        Ok(engine.steady(|| engine.store.open_stream(&stream.id, stream.spec.axis)).await?)
    }

    /// Where this mirror begins, looked up only if it is not known to begin before `lowest`.
    async fn origin(&self, lowest: Position) -> Result<Position> {
        let known = Position(self.origin.load(Ordering::Relaxed));
        if known <= lowest {
            return Ok(known);
        }
        let row = self.row(self.main()).await?;
        if row.span.is_empty() {
            return Ok(self.main().stream.spec.origin);
        }
        self.origin.store(row.span.start().0, Ordering::Relaxed);
        Ok(row.span.start())
    }

    fn control_call(&self) -> Call {
        Call::new(Lane::Live, Beat::new(self.engine.world.clock.clone()))
    }
}

const FAREWELL: Duration = Duration::from_secs(1);
