//! From configuration to objects: the store, the source with its throttle, the engine.

use std::{env, sync::Arc, time::Duration};

use highwater_core::Observer;
use highwater_engine::{
    Engine, EngineSettings, Entropy, LeaseTimes, LiveSettings, Patience, Process, RescanSettings, Sizes, World,
};
use highwater_sources::{Clock, Hn};
use highwater_store::{Blobs, Store, StreamRow};
use tokio_util::sync::CancellationToken;

use crate::{
    args::Global,
    config::{Config, LiveConfig, SourceConfig, SourceKind, parse_duration},
    exit::Trouble,
    keyring::Keyring,
    location::{self, Location},
    remote,
};

/// How long a store that cannot write is waited for: to rehearse a full disk in less than the two minutes it gets.
const STORE_PATIENCE: &str = "HIGHWATER_STORE_PATIENCE";
/// How long a lease lasts without a heartbeat, which comes three times in it: to rehearse the loss of a process in less
/// than the 30 s that others wait for it. All processes of a store should agree on it.
const LEASE_TTL: &str = "HIGHWATER_LEASE_TTL";

pub(crate) struct Settings {
    pub(crate) config: Config,
    store_url: String,
    store_schema: Option<String>,
}

/// What a command means to do with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

impl Settings {
    pub(crate) fn load(global: &Global) -> Result<Self, Trouble> {
        let config = Config::load(global.config().as_deref())?;
        let (store_url, store_schema) = match global.store_url() {
            Some(url) => (url, None),
            None => (config.store_url.clone(), config.store_schema.clone()),
        };
        Ok(Settings { config, store_url, store_schema })
    }

    /// For people: without a password.
    pub(crate) fn store_shown(&self) -> String {
        location::shown(&self.store_url)
    }

    pub(crate) fn location(&self) -> Result<Location, Trouble> {
        Location::parse(&self.store_url, self.store_schema.as_deref())?.holding(self.config.sharding)
    }

    /// Where the key of this store is.
    pub(crate) fn keyring(&self) -> Result<Keyring, Trouble> {
        Ok(Keyring::find(&self.location()?, self.config.path.as_deref()))
    }

    pub(crate) async fn open_store(&self, access: Access) -> anyhow::Result<Arc<dyn Store>> {
        let store = self.location()?.open(access, self.config.sharding).await?;
        if access == Access::Write {
            self.check_names(&*store).await?;
        }
        Ok(store)
    }

    /// The items of a store are those of one source, by whatever name: under another, all of them would be taken for
    /// fetched.
    pub(crate) async fn check_names(&self, store: &dyn Store) -> anyhow::Result<()> {
        let Some(hn) = self.config.sources.iter().find(|source| source.kind == SourceKind::Hn) else { return Ok(()) };
        let is_items = |row: &StreamRow| row.axis == Hn::AXIS && row.id.stream.as_str() == Hn::ITEMS;
        let streams = store.streams().await?;
        if streams.iter().any(|row| is_items(row) && row.id.source == hn.name) {
            return Ok(());
        }
        match streams.iter().find(|row| is_items(row) && row.id.source != hn.name) {
            None => Ok(()),
            Some(StreamRow { id, .. }) => {
                let store = self.store_shown();
                let message = format!("{store} mirrors Hacker News as source '{}', not '{}'", id.source, hn.name);
                Err(Trouble::usage(message).hint("name the source as the store does, or use another store").into())
            }
        }
    }

    /// The engine for a source, with the ways in and out that the caller gives it.
    pub(crate) fn engine(
        &self,
        source: &SourceConfig,
        store: Arc<dyn Store>,
        observer: Arc<dyn Observer>,
        stop: CancellationToken,
    ) -> Result<Engine, Trouble> {
        let clock = Clock::system();
        let entropy = Entropy::from_system();
        let access = remote::Access { store: &store, keyring: self.keyring()? };
        let remote = remote::build(source, access, &clock, &entropy)?;
        let blobs = if source.gmail.is_some() { Some(self.blobs()?) } else { None };
        let settings = engine_settings(source)?;
        let world = World { clock, entropy, observer, stop: stop.into(), process: process() };
        Ok(Engine { name: source.name.clone(), source: remote, store, blobs, settings, world })
    }

    /// Where attachments go.
    pub(crate) fn blobs(&self) -> Result<Blobs, Trouble> {
        let url = &self.config.blobs;
        Blobs::open(url).map_err(|error| Trouble::usage(format!("store.blobs: {}", highwater_engine::describe(&error))))
    }
}

pub(crate) fn live_settings(live: &LiveConfig) -> LiveSettings {
    let default = LiveSettings::default();
    LiveSettings {
        workers: live.workers.unwrap_or(default.workers),
        queue: live.queue.unwrap_or(default.queue),
        idle_timeout: live.idle_timeout.unwrap_or(default.idle_timeout),
        rescan: RescanSettings {
            every: live.rescan_every.unwrap_or(default.rescan.every),
            window: live.rescan_window.unwrap_or(default.rescan.window),
            short_window: live.short_rescan_window.unwrap_or(default.rescan.short_window),
            history: live.history_every,
        },
    }
}

fn process() -> Process {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| env::var("HOSTNAME").ok());
    let host = host.map_or_else(|| "unknown".into(), |host| host.trim().to_owned());
    Process { host, pid: std::process::id() }
}

fn engine_settings(source: &SourceConfig) -> Result<EngineSettings, Trouble> {
    let limits = &source.limits;
    let mut settings = EngineSettings {
        sizes: Sizes { segment: limits.segment, job: limits.job, in_flight: remote::in_flight(source).max },
        dead_letters: limits.dead_letters,
        ..EngineSettings::default()
    };
    settings.follow_every = source.gmail.as_ref().map_or(settings.follow_every, |gmail| gmail.mail.poll_every);
    settings.retry.attempts = limits.attempts.unwrap_or(settings.retry.attempts);
    let Patience { retry, stall, store, .. } = &mut settings.patience;
    *retry = limits.retry_patience.unwrap_or(*retry);
    *stall = limits.stall_timeout.unwrap_or(*stall);
    *store = duration_from(STORE_PATIENCE)?.unwrap_or(*store);
    if let Some(ttl) = duration_from(LEASE_TTL)? {
        settings.lease = LeaseTimes { ttl, beat: ttl / 3 };
    }
    Ok(settings)
}

fn duration_from(variable: &str) -> Result<Option<Duration>, Trouble> {
    let Some(text) = env::var_os(variable) else { return Ok(None) };
    match text.to_str().and_then(parse_duration) {
        Some(duration) => Ok(Some(duration)),
        None => Err(Trouble::usage(format!("{variable}: expected a duration such as \"30s\", found {text:?}"))),
    }
}
