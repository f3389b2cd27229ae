//! Plays a scene: processes that mirror an instance, one after the other, while it changes under their hands.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use highwater_core::{
    RetryPolicy, Timestamp,
    throttle::{InFlight, Rate, Settings},
};
use highwater_engine::{
    Ending, Engine, EngineError, EngineSettings, Entropy, Process, Sizes, Stop, SyncReport, SyncRequest, World,
    describe,
};
use highwater_sim::{LookerPlan, LookerSim, Seed, SimTransport};
use highwater_sources::{
    Clock, Decoding, Gateway, Transport,
    gmail::oauth::Secret,
    looker::{ApiKey, Looker, LookerSettings},
};
use highwater_store::{Durability, Execution, OpenOptions, SqliteStore};
use tempfile::TempDir;

use super::truth;
use crate::{
    oracle,
    run::{EventHash, Recorder},
};

/// After the newest content of a simulated instance.
const EPOCH: Timestamp = Timestamp::from_millis(1_772_359_200_000);
/// A day of work would still be a bug: the run must end.
const LIFE_MAX: Duration = Duration::from_secs(12 * 3600);
/// Processes after the last planned death; retries left over are finished by later ones.
const LAST_RUNS: usize = 12;

/// Faults of every kind that heals, often enough to meet each within a few hundred requests.
const FAULTS: &str = "
    [rates]
    500 = 0.01
    502 = 0.01
    503 = 0.005
    504 = 0.005
    429 = 0.005
    429-retry-after = 0.005
    401 = 0.005
    html = 0.005
    cut-json = 0.005
    reset = 0.005
    reset-body = 0.005
    truncated = 0.005
";

/// What a seed stands for.
#[derive(Clone)]
pub(super) struct Scene {
    pub(super) seed: u64,
    dashboards: u64,
    plan: LookerPlan,
    page: usize,
    in_flight: u32,
    /// How long each process lives before it is killed.
    pub(super) lives: Vec<Duration>,
}

impl Scene {
    pub(super) fn from_seed(seed: u64) -> Scene {
        let dice = Entropy::seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let between = |least: u64, most: u64| least + (dice.unit() * (most - least + 1) as f64) as u64;
        let ids = if dice.unit() < 0.5 { "number" } else { "text" };
        let sieve = if dice.unit() < 0.5 { "before" } else { "after" };
        let plan = format!(
            "[instance]\nbody_bytes = 600\n[latency]\nfixed_ms = {}\njitter_ms = {}\n[list]\nids = \"{ids}\"\n\
             sieve = \"{sieve}\"\n[mutations]\nevery_requests = {}\nmost = {}\n[login]\nlifetime_s = {}\n{}",
            between(1, 50),
            between(1, 200),
            between(1, 12),
            between(0, 120),
            between(5, 3_600),
            if dice.unit() < 0.7 { FAULTS } else { "" },
        );
        let lives = (0..between(0, 4)).map(|_| Duration::from_millis(between(10, 30_000))).collect();
        Scene {
            dashboards: between(5, 60),
            page: between(10, 25) as usize,
            in_flight: between(1, 8) as u32,
            lives,
            ..Scene::planned(seed, &plan)
        }
    }

    /// A small instance where happens what the plan says, and nothing else.
    pub(super) fn planned(seed: u64, plan: &str) -> Scene {
        let plan = LookerPlan::parse(plan).expect("a valid plan");
        Scene { seed, dashboards: 5, plan, page: 20, in_flight: 4, lives: Vec::new() }
    }
}

/// One simulated instance that outlives its processes.
pub(super) struct Stage {
    pub(super) sim: Arc<LookerSim>,
    scene: Scene,
    recorder: Arc<Recorder>,
    folder: TempDir,
    pub(super) age: Duration,
    processes: u64,
    /// Since a round began that has not ended.
    there: Option<BTreeSet<(String, String)>>,
}

impl Stage {
    pub(super) fn new(scene: Scene) -> Self {
        let sim = LookerSim::new(Seed(scene.seed), scene.dashboards, scene.plan.clone(), EPOCH.as_millis());
        Stage {
            sim: Arc::new(sim),
            recorder: Arc::default(),
            folder: crate::run::folder(),
            age: Duration::ZERO,
            processes: 0,
            there: None,
            scene,
        }
    }

    pub(super) fn database(&self) -> PathBuf {
        self.folder.path().join("highwater.db")
    }

    pub(super) fn hash(&self) -> EventHash {
        self.recorder.hash()
    }

    pub(super) fn changes_noted(&self) -> i64 {
        let count = "SELECT count(*) FROM looker_versions";
        oracle::open(&self.database()).query_row(count, [], |row| row.get(0)).unwrap()
    }

    pub(super) fn live(&mut self, lasts: Duration) {
        match self.run_checked(lasts) {
            None | Some(Ok(_) | Err(EngineError::Remote(_))) => {}
            Some(Err(error)) => panic!("{}", describe(&error)),
        }
        self.age += Duration::from_secs(1);
    }

    /// Lets processes work until one has found everything at rest and left nothing to be tried again.
    pub(super) fn settle(&mut self) {
        for _ in 0..LAST_RUNS {
            let (before, is_new) = (self.sim.counts(self.age).mutations, self.there.is_none());
            match self.run_checked(LIFE_MAX).unwrap_or_else(|| panic!("the run does not end within {LIFE_MAX:?}")) {
                Ok(reports) if is_complete(&reports) && is_new && self.sim.counts(self.age).mutations == before => {
                    return;
                }
                Ok(_) | Err(EngineError::Remote(_)) => {}
                Err(error) => panic!("{}", describe(&error)),
            }
            self.age += Duration::from_secs(300);
        }
        panic!("something is left to do after {LAST_RUNS} runs");
    }

    /// A run that says that it is complete has all that was there since its round began, by whichever process.
    fn run_checked(&mut self, lasts: Duration) -> Option<Result<Vec<SyncReport>, EngineError>> {
        let now = truth::present(self);
        let there: BTreeSet<_> =
            self.there.take().map_or(now.clone(), |there| there.intersection(&now).cloned().collect());
        let end = self.run(lasts);
        match &end {
            Some(Ok(reports)) if is_complete(reports) => truth::check_all_stored(self, &there),
            _ => self.there = Some(there),
        }
        end
    }

    /// One process, from opening the store to its end; none if it was killed before.
    fn run(&mut self, lasts: Duration) -> Option<Result<Vec<SyncReport>, EngineError>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        self.processes += 1;
        let (end, lived) = runtime.block_on(async {
            let clock = Clock::simulated(EPOCH + self.age);
            let sync = async { self.engine(clock.clone())?.sync(&SyncRequest::default()).await };
            let end = tokio::time::timeout(lasts, sync).await.ok();
            (end, clock.moment().since_start())
        });
        // Dropping the runtime drops every task where it stands, as a kill would.
        drop(runtime);
        self.age += lived;
        end
    }

    fn engine(&self, clock: Clock) -> Result<Engine, EngineError> {
        let mut options = OpenOptions::new(self.database());
        options.execution = Execution::Inline;
        options.durability = Durability::Off;
        let entropy = Entropy::seeded(self.scene.seed ^ self.processes << 32);
        Ok(Engine {
            name: "bi".parse().unwrap(),
            source: Arc::new(self.source(&clock, &entropy)),
            store: Arc::new(SqliteStore::open(options)?),
            blobs: None,
            settings: EngineSettings {
                sizes: Sizes { segment: None, job: Some(self.scene.page), in_flight: self.scene.in_flight },
                retry: RetryPolicy { attempts: 6, ..EngineSettings::default().retry },
                ..EngineSettings::default()
            },
            world: World {
                clock,
                entropy,
                observer: self.recorder.clone(),
                stop: Stop::default(),
                process: Process { host: "here".into(), pid: 1 },
            },
        })
    }

    fn source(&self, clock: &Clock, entropy: &Entropy) -> Looker {
        let transport: Arc<dyn Transport> =
            Arc::new(SimTransport::new(self.sim.clone(), clock.clone(), self.age).allowing(64 << 20));
        let in_flight = InFlight { start: self.scene.in_flight, max: self.scene.in_flight };
        let throttle = Settings::new(Rate::Unlimited, in_flight);
        let jitter = entropy.clone();
        let gateway = Gateway::new(transport.clone(), throttle, clock.clone(), Box::new(move || jitter.unit()));
        let key = ApiKey { client_id: "sim-client".into(), client_secret: Secret::new("sim-secret") };
        let settings = LookerSettings {
            source: "bi".into(),
            key,
            types: Vec::new(),
            page: self.scene.page,
            max_calls: None,
            max_calls_month: None,
        };
        Looker::new(gateway, transport, settings, Decoding::Inline)
    }
}

fn is_complete(reports: &[SyncReport]) -> bool {
    reports.iter().all(|report| report.ending == Ending::Complete)
}
