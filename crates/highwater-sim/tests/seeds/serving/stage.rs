//! Plays a scene: processes that keep a mirror current, are killed, stay away and come back, while the world goes on.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use highwater_core::Timestamp;
use highwater_engine::{Engine, EngineError, Entropy, Process, Sample, ServeRequest, Stop, VerifyReport, World};
use highwater_sim::{HnSim, Seed, SimTransport, StreamOrder};
use highwater_sources::{Clock, Decoding, Gateway, Hn};
use highwater_store::{Durability, Execution, OpenOptions, SqliteStore};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::scene::{Act, End, Life, Scene};
use crate::run::{EventHash, Recorder};

pub(crate) const EPOCH: Timestamp = Timestamp::from_millis(1_750_000_000_000);

/// How often it is asked whether a process is done.
const LOOK: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(crate) struct Silences(Mutex<Vec<(Duration, Option<Duration>)>>);

impl Silences {
    fn note(&self, order: StreamOrder, now: Duration) {
        let mut silences = self.0.lock().unwrap();
        let open = silences.last_mut().filter(|(_, end)| end.is_none());
        match (order, open) {
            (StreamOrder::Silence, None) => silences.push((now, None)),
            (StreamOrder::Restore, Some((_, end))) => *end = Some(now),
            _ => {}
        }
    }

    /// When that which is written at `at` is told.
    pub(crate) fn told(&self, at: Duration) -> Duration {
        let silences = self.0.lock().unwrap();
        let within = silences.iter().find(|(start, end)| *start <= at && end.is_none_or(|end| at < end));
        within.and_then(|(_, end)| *end).unwrap_or(at)
    }
}

/// One simulated world that outlives its processes.
pub(crate) struct Stage {
    pub(crate) sim: Arc<HnSim>,
    pub(crate) scene: Scene,
    pub(crate) age: Duration,
    /// When streams were kept silent: what is written then is told at the end.
    pub(crate) silences: Silences,
    folder: TempDir,
    recorder: Arc<Recorder>,
    processes: u64,
}

impl Stage {
    pub(crate) fn new(scene: Scene) -> Self {
        let world = highwater_sim::World::generated(Seed(scene.seed), scene.items);
        Stage {
            sim: Arc::new(HnSim::new(world, scene.plan.clone())),
            silences: Silences::default(),
            folder: crate::run::folder(),
            age: Duration::ZERO,
            recorder: Arc::default(),
            processes: 0,
            scene,
        }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("highwater.db")
    }

    pub(crate) fn now(&self) -> Timestamp {
        EPOCH + self.age
    }

    pub(crate) fn hash(&self) -> EventHash {
        self.recorder.hash()
    }

    pub(crate) fn live(&mut self, life: &Life) {
        self.run(life, || false);
    }

    /// A last process, alone with a world that has stopped to change, until nothing is left to do and one more pass by
    /// schedule has ended.
    pub(crate) fn settle(&mut self) {
        self.sim.go_down(self.age);
        self.age = self.age.max(self.scene.stops_at() + Duration::from_secs(60));
        let (path, since) = (self.database(), self.now());
        let left = || super::books::left_to_do(&path, since);
        let is_settled = || path.exists() && left().is_empty();
        let longest = self.scene.live.rescan.every + Duration::from_secs(2 * 3600);
        let last = Life { lasts: longest, end: End::Killed, acts: Vec::new(), away: Duration::ZERO };
        assert!(self.run(&last, is_settled), "not at rest within {longest:?}: {:?}", left());
    }

    /// Whether it was `done` before the end of its time.
    fn run(&mut self, life: &Life, done: impl Fn() -> bool) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        self.processes += 1;
        let (is_done, lived) = runtime.block_on(async {
            let clock = Clock::simulated(EPOCH + self.age);
            let stop = CancellationToken::new();
            let serving = async {
                let engine = self.engine(clock.clone(), stop.clone().into())?;
                engine.serve(&ServeRequest { live: self.scene.live, ..ServeRequest::default() }).await
            };
            let looking = async {
                while !done() {
                    clock.sleep(LOOK).await;
                }
            };
            tokio::pin!(serving);
            let is_done = tokio::select! {
                biased;
                ended = &mut serving => panic!("the service has ended by itself: {ended:?}"),
                () = self.act(&life.acts, &clock) => unreachable!("acts never end"),
                () = looking => true,
                () = clock.sleep(life.lasts) => false,
            };
            if life.end == End::Stopped {
                stop.cancel();
                serving.await.unwrap();
            }
            (is_done, clock.moment().since_start())
        });
        // Dropping the runtime drops every task where it stands, as a kill would.
        drop(runtime);
        self.age += lived;
        // A silence ends with the process that it was meant for.
        self.carry_out(Act::Order(StreamOrder::Restore), self.age);
        is_done
    }

    /// A verification of every key, while nobody serves.
    pub(crate) fn verify(&self) -> VerifyReport {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let engine = self.engine(Clock::simulated(EPOCH + self.age), Stop::default()).unwrap();
            engine.verify(Sample::All).await.unwrap()
        })
    }

    async fn act(&self, acts: &[(Duration, Act)], clock: &Clock) {
        let began = clock.moment();
        for (at, act) in acts {
            clock.sleep_until(began + *at).await;
            self.carry_out(*act, self.age + *at);
        }
        std::future::pending().await
    }

    fn carry_out(&self, act: Act, now: Duration) {
        match act {
            Act::Order(order) => {
                self.silences.note(order, now);
                self.sim.order(order, now);
            }
            Act::Down(lasts) => self.sim.go_down(now + lasts),
            Act::Grow(by) => drop(self.sim.grow(by, now)),
            Act::Burst(_) | Act::Mutate(..) if now >= self.scene.stops_at() => {}
            Act::Burst(count) => drop(self.sim.burst(count, now)),
            Act::Mutate(below, publicity) => {
                let newest = self.sim.max_item(now);
                // An id whose body is not out yet cannot change.
                self.sim.mutate(newest.saturating_sub(below), None, publicity, now).ok();
            }
        }
    }

    fn engine(&self, clock: Clock, stop: Stop) -> Result<Engine, EngineError> {
        let mut options = OpenOptions::new(self.database());
        options.execution = Execution::Inline;
        options.durability = Durability::Off;
        let entropy = Entropy::seeded(self.scene.seed ^ self.processes << 32);
        let jitter = entropy.clone();
        let remote = Arc::new(SimTransport::new(self.sim.clone(), clock.clone(), self.age));
        let gateway = Gateway::new(remote, self.scene.throttle.clone(), clock.clone(), Box::new(move || jitter.unit()));
        Ok(Engine {
            name: "hn".parse().unwrap(),
            blobs: None,
            source: Arc::new(Hn::new(gateway, Decoding::Inline)),
            store: Arc::new(SqliteStore::open(options)?),
            settings: self.scene.engine.clone(),
            world: World {
                clock,
                entropy,
                observer: self.recorder.clone(),
                stop,
                process: Process { host: "here".into(), pid: 1 },
            },
        })
    }
}
