//! Plays a scenario: processes that live a while and are killed, until one ends by itself.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use highwater_core::{Event, Observer, Timestamp};
use highwater_engine::{
    Ending, Engine, EngineError, Entropy, Process, Sample, Stop, SyncReport, SyncRequest, VerifyReport, World,
};
use highwater_sim::{HnSim, Seed, SimTransport};
use highwater_sources::{Clock, Decoding, Gateway, Hn, Transport};
use highwater_store::{Durability, Execution, OpenOptions, SqliteStore, Store};
use tempfile::TempDir;

use crate::{oracle, scenario::Scenario};

/// Weeks of work would still be a bug: the run must end.
const LIFE_MAX: Duration = Duration::from_secs(4 * 3600);
/// Processes after the last planned crash; retries left over are finished by later ones.
const LAST_RUNS: usize = 12;
/// How long what a process was told stays unwritten at most: a beat, and a commit.
const UNWRITTEN_MAX: Duration = Duration::from_millis(500);
const EPOCH: Timestamp = Timestamp::from_millis(1_750_000_000_000);

/// What happened, as one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventHash(u64);

#[derive(Default)]
pub(crate) struct Recorder(Mutex<DefaultHasher>);

impl Observer for Recorder {
    fn notify(&self, event: &Event) {
        let mut hasher = self.0.lock().unwrap();
        format!("{event:?}").hash(&mut *hasher);
    }
}

impl Recorder {
    pub(crate) fn hash(&self) -> EventHash {
        EventHash(self.0.lock().unwrap().finish())
    }
}

/// In memory where there is such a place.
pub(crate) fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    folder.unwrap()
}

/// One simulated world that outlives its processes.
pub(crate) struct Stage {
    pub(crate) sim: Arc<HnSim>,
    folder: TempDir,
    age: Duration,
    recorder: Arc<Recorder>,
    scenario: Scenario,
    processes: u64,
    /// Requests while the remote had asked for silence, by processes that could not know of it.
    unknowing: u64,
    /// The last one was killed before it could know, or write down, that the remote wants silence.
    forgot: bool,
}

/// How a process is built: tests put their own layers around the parts.
pub(crate) type WrapStore<'a> = &'a dyn Fn(Arc<dyn Store>) -> Arc<dyn Store>;
pub(crate) type WrapTransport<'a> = &'a dyn Fn(Arc<dyn Transport>) -> Arc<dyn Transport>;

pub(crate) enum LifeEnd {
    Killed,
    Ended(Result<Vec<SyncReport>, EngineError>),
}

impl Stage {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let world = highwater_sim::World::generated(Seed(scenario.seed), scenario.items);
        Stage {
            sim: Arc::new(HnSim::new(world, scenario.plan.clone())),
            folder: folder(),
            age: Duration::ZERO,
            recorder: Arc::default(),
            scenario: scenario.clone(),
            processes: 0,
            unknowing: 0,
            forgot: false,
        }
    }

    pub(crate) fn database(&self) -> std::path::PathBuf {
        self.folder.path().join("highwater.db")
    }

    /// One process, from opening the store to its end or its death.
    pub(crate) fn live(&mut self, life: Duration, store: WrapStore<'_>, transport: WrapTransport<'_>) -> LifeEnd {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        self.processes += 1;
        let violations = self.violations();
        let (end, lived) = runtime.block_on(async {
            let clock = Clock::simulated(EPOCH + self.age);
            let sync = async {
                let mut options = OpenOptions::new(self.database());
                options.execution = Execution::Inline;
                options.durability = Durability::Off;
                let opened = SqliteStore::open(options)?;
                let engine = self.engine(clock.clone(), store(Arc::new(opened)), transport);
                engine.sync(&SyncRequest::default()).await
            };
            let end = match tokio::time::timeout(life, sync).await {
                Ok(result) => LifeEnd::Ended(result),
                Err(_) => LifeEnd::Killed,
            };
            (end, clock.moment().since_start())
        });
        // Dropping the runtime drops every task where it stands, as a kill would.
        drop(runtime);
        self.age += lived;
        if self.forgot {
            self.unknowing += self.violations() - violations;
        }
        let written_by = self.sim.told_to_wait_at().map(|at| at + UNWRITTEN_MAX);
        self.forgot = matches!(end, LifeEnd::Killed) && written_by.is_some_and(|by| self.age <= by);
        end
    }

    fn violations(&self) -> u64 {
        self.sim.stats().report().retry_after_violations
    }

    /// A verification of every key through a store of the caller's making.
    pub(crate) fn verify(&self, store: WrapStore<'_>) -> VerifyReport {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut options = OpenOptions::read_only(self.database());
            options.execution = Execution::Inline;
            let opened = SqliteStore::open(options).unwrap();
            let clock = Clock::simulated(EPOCH + self.age);
            let engine = self.engine(clock, store(Arc::new(opened)), &|transport| transport);
            engine.verify(Sample::All).await.unwrap()
        })
    }

    fn engine(&self, clock: Clock, store: Arc<dyn Store>, transport: WrapTransport<'_>) -> Engine {
        let entropy = Entropy::seeded(self.scenario.seed ^ self.processes << 32);
        let jitter = entropy.clone();
        let remote = transport(Arc::new(SimTransport::new(self.sim.clone(), clock.clone(), self.age)));
        let gateway =
            Gateway::new(remote, self.scenario.throttle.clone(), clock.clone(), Box::new(move || jitter.unit()));
        Engine {
            name: "hn".parse().unwrap(),
            blobs: None,
            source: Arc::new(Hn::new(gateway, Decoding::Inline)),
            store,
            settings: self.scenario.engine.clone(),
            world: World {
                clock,
                entropy,
                observer: self.recorder.clone(),
                stop: Stop::default(),
                process: Process { host: "here".into(), pid: 1 },
            },
        }
    }

    /// Nothing goes out while the remote has asked for silence, whatever processes die meanwhile.
    fn check_silence(&self) {
        let violations = self.violations() - self.unknowing;
        assert_eq!(violations, 0, "requests while the remote had asked for silence");
    }

    /// Runs undisturbed until nothing is left to retry, and compares with the truth.
    pub(crate) fn finish(&mut self) -> EventHash {
        for _ in 0..LAST_RUNS {
            let end = self.live(LIFE_MAX, &|store| store, &|transport| transport);
            oracle::check_frontier(&self.database());
            let LifeEnd::Ended(result) = end else { panic!("the run does not end within {LIFE_MAX:?}") };
            let reports = result.unwrap();
            let waiting = oracle::waiting(&self.database());
            // The head may have grown meanwhile; later processes follow it.
            let at_the_head = reports[0].status.target.0.cast_unsigned() > *self.sim.world().ids().end();
            if at_the_head && (reports[0].ending == Ending::Complete || waiting == 0) {
                oracle::check_truth(&self.database(), &self.sim, &self.scenario);
                self.check_silence();
                return self.recorder.hash();
            }
            self.age += Duration::from_secs(300);
        }
        panic!("keys still wait for a retry after {LAST_RUNS} runs");
    }
}

pub(crate) fn to_the_end(scenario: &Scenario) -> EventHash {
    let mut stage = Stage::new(scenario);
    for life in &scenario.lives {
        match stage.live(*life, &|store| store, &|transport| transport) {
            LifeEnd::Killed => {}
            LifeEnd::Ended(result) => drop(result.unwrap()),
        }
        oracle::check_frontier(&stage.database());
    }
    stage.finish()
}
