//! Plays a scene: processes that mirror a mailbox, one after the other, while it lives on.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use highwater_core::{Event, Observer, Timestamp};
use highwater_engine::{
    Ending, Engine, EngineError, Entropy, Left, Process, ServeRequest, Stop, SyncReport, SyncRequest, World, describe,
};
use highwater_sim::{GmailSim, MessageTruth, Seed, SimRequest, SimTransport};
use highwater_sources::{
    Clock, Decoding, Gateway, Transport,
    gmail::{
        Gmail, GmailSettings, Mailbox, Policy,
        oauth::{Bearer, BearerSettings, TokenEndpoint},
    },
};
use highwater_store::{Blobs, Durability, Execution, MailboxStore, MoveProgress, OpenOptions, Sharding, SqliteStore};
use tempfile::TempDir;

use super::{
    keeper::Kept,
    scene::{Life, Scene},
};
use crate::{
    oracle,
    run::{EventHash, Recorder},
};

/// 1 March 2026: after the newest message of a simulated mailbox.
pub(super) const EPOCH: Timestamp = Timestamp::from_millis(1_772_359_200_000);
pub(super) const ACCOUNT: &str = "ann@example.com";
/// What rows of the mailbox begin with.
pub(super) const MAILBOX: &str = "e985ca47a38d9189";

/// Weeks of work would still be a bug: the run must end.
const LIFE_MAX: Duration = Duration::from_secs(12 * 3600);
/// Processes after the last planned death; retries left over are finished by later ones.
const LAST_RUNS: usize = 12;

/// A run that ended because of the remote has not heard all.
fn has_settled(reports: &[SyncReport]) -> bool {
    let is_done = |ending: &Ending| matches!(ending, Ending::Complete | Ending::Incomplete(Left::Exceptions { .. }));
    reports.iter().all(|report| is_done(&report.ending))
}

/// What is told to whoever watches, kept to look for secrets in it.
#[derive(Default)]
pub(super) struct Said {
    recorder: Recorder,
    texts: Mutex<Vec<String>>,
}

impl Observer for Said {
    fn notify(&self, event: &Event) {
        self.recorder.notify(event);
        self.texts.lock().unwrap().push(format!("{event:?}"));
    }
}

/// One simulated mailbox that outlives its processes.
pub(super) struct Stage {
    pub(super) sim: Arc<GmailSim>,
    pub(super) scene: Scene,
    pub(super) blobs: Blobs,
    said: Arc<Said>,
    kept: Kept,
    folder: TempDir,
    age: Duration,
    processes: u64,
    killed: u64,
}

impl Stage {
    pub(super) fn new(scene: Scene) -> Self {
        let sim = GmailSim::new(Seed(scene.seed), scene.messages, scene.plan.clone(), EPOCH.as_millis());
        Stage {
            sim: Arc::new(sim),
            blobs: Blobs::in_memory(),
            said: Arc::default(),
            kept: Kept::new(),
            folder: crate::run::folder(),
            age: Duration::ZERO,
            processes: 0,
            killed: 0,
            scene,
        }
    }

    pub(super) fn database(&self) -> PathBuf {
        self.folder.path().join("highwater.db")
    }

    pub(super) fn hash(&self) -> EventHash {
        self.said.recorder.hash()
    }

    pub(super) fn said(&self) -> String {
        self.said.texts.lock().unwrap().join("\n")
    }

    /// All messages there are or were.
    pub(super) fn truth(&self) -> Vec<MessageTruth> {
        self.sim.truth(0, usize::MAX, self.age)
    }

    pub(super) fn live(&mut self, life: &Life) {
        match self.run(life.lasts) {
            None => self.killed += 1,
            Some(Ok(_)) => {}
            // A remote that fails too often to be asked for its head is asked again the next time.
            Some(Err(EngineError::Remote(failure))) => self.note(&failure.message),
            Some(Err(error)) => panic!("{}", describe(&error)),
        }
        if let Some(page) = life.then.page() {
            self.sim.answer(&SimRequest::get(page), self.age);
        }
        self.age += life.away;
    }

    /// Lets processes work undisturbed, with a mailbox at rest, until one leaves nothing to be tried again.
    pub(super) fn settle(&mut self) {
        self.age = self.age.max(self.scene.stops_at() + Duration::from_secs(1));
        for _ in 0..LAST_RUNS {
            match self.run(LIFE_MAX).unwrap_or_else(|| panic!("the run does not end within {LIFE_MAX:?}")) {
                Ok(reports) if has_settled(&reports) && oracle::waiting(&self.database()) == 0 => return,
                Ok(_) => {}
                Err(EngineError::Remote(failure)) => self.note(&failure.message),
                Err(error) => panic!("{}", describe(&error)),
            }
            self.age += Duration::from_secs(300);
        }
        panic!("something is left to do after {LAST_RUNS} runs");
    }

    /// Nothing goes out while the remote has asked for silence. (A process that is killed takes what it has just heard
    /// with it, so only worlds without a kill are asked.)
    pub(super) fn check_silence(&self) {
        let asked = self.sim.counts(self.age).requests_in_penalty;
        assert!(asked == 0 || self.killed > 0, "{asked} requests while the remote had asked for silence");
    }

    fn note(&self, text: &str) {
        self.said.texts.lock().unwrap().push(text.to_owned());
    }

    /// One process, from opening the store to its end; none if it was killed before.
    pub(super) fn run(&mut self, lasts: Duration) -> Option<Result<Vec<SyncReport>, EngineError>> {
        self.process(lasts, async |engine| engine.sync(&SyncRequest::default()).await)
    }

    /// A process that keeps the mailbox current, until it is killed.
    pub(super) fn serve(&mut self, lasts: Duration) {
        let ended = self.process(lasts, async |engine| engine.serve(&ServeRequest::default()).await);
        assert!(ended.is_none(), "a service has ended by itself: {ended:?}");
    }

    pub(super) fn wait_until(&mut self, at: Timestamp) {
        self.age = self.age.max(at.since(EPOCH));
    }

    fn process<T>(
        &mut self,
        lasts: Duration,
        work: impl AsyncFnOnce(Engine) -> Result<T, EngineError>,
    ) -> Option<Result<T, EngineError>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        self.processes += 1;
        let (end, lived) = runtime.block_on(async {
            let clock = Clock::simulated(EPOCH + self.age);
            let process = async {
                let engine = self.engine(clock.clone())?;
                engine.store.arrange(&MoveProgress::default()).await?;
                work(engine).await
            };
            let end = tokio::time::timeout(lasts, process).await.ok();
            (end, clock.moment().since_start())
        });
        // Dropping the runtime drops every task where it stands, as a kill would.
        drop(runtime);
        self.age += lived;
        end
    }

    /// All mail into the store itself, where the checks look for it.
    pub(super) fn bring_home(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let store = SqliteStore::open(self.options(Sharding::None)).unwrap();
        runtime.block_on(store.arrange(&MoveProgress::default())).unwrap();
    }

    fn options(&self, sharding: Sharding) -> OpenOptions {
        let mut options = OpenOptions { sharding, ..OpenOptions::new(self.database()) };
        options.execution = Execution::Inline;
        options.durability = Durability::Off;
        options
    }

    /// Another now and then: processes differ in where they want mail to lie.
    fn sharding(&self) -> Sharding {
        const ALL: [Sharding; 3] = [Sharding::Year, Sharding::None, Sharding::Size(300_000)];
        ALL[((self.scene.seed + self.processes / 2) % 3) as usize]
    }

    fn engine(&self, clock: Clock) -> Result<Engine, EngineError> {
        let options = self.options(self.sharding());
        let entropy = Entropy::seeded(self.scene.seed ^ self.processes << 32);
        Ok(Engine {
            name: "mail".parse().unwrap(),
            source: Arc::new(self.source(&clock, &entropy)),
            store: Arc::new(SqliteStore::open(options)?),
            blobs: Some(self.blobs.clone()),
            settings: self.scene.engine.clone(),
            world: World {
                clock,
                entropy,
                observer: self.said.clone(),
                stop: Stop::default(),
                process: Process { host: "here".into(), pid: 1 },
            },
        })
    }

    fn source(&self, clock: &Clock, entropy: &Entropy) -> Gmail {
        let transport: Arc<dyn Transport> =
            Arc::new(SimTransport::new(self.sim.clone(), clock.clone(), self.age).allowing(64 << 20));
        let jitter = entropy.clone();
        let throttle = self.scene.throttle.clone();
        let gateway = Gateway::new(transport.clone(), throttle, clock.clone(), Box::new(move || jitter.unit()));
        let endpoint = TokenEndpoint::over(transport, "http://127.0.0.1/token", clock.clone());
        let bearer = BearerSettings { account: ACCOUNT.into(), client: None, remedy: "give it another".into() };
        let bearer = Bearer::new(Arc::new(self.kept.clone()), endpoint, clock.clone(), bearer);
        let settings = GmailSettings {
            mailbox: Mailbox { id: MAILBOX.into(), org: "default".into(), account: ACCOUNT.into() },
            policy: Policy::including(self.scene.include.iter().copied()),
            quota: self.scene.quota,
            backfill: None,
            max_bytes_day: self.scene.max_bytes_day,
        };
        Gmail::new(gateway, bearer, settings, Decoding::Inline)
    }
}
