//! From configuration to objects: the store, the source with its throttle, the engine.

use std::{env, sync::Arc, time::Duration};

use highwater_core::{
    Observer,
    throttle::{InFlight, OnSlow, Rate, Settings as ThrottleSettings, Window},
};
use highwater_engine::{
    Engine, EngineSettings, Entropy, LeaseTimes, LiveSettings, Patience, Process, RescanSettings, Sizes, World,
};
use highwater_sources::{Clock, Decoding, Gateway, Hn, HttpTransport, Source, TransportSettings};
use highwater_store::Store;
use tokio_util::sync::CancellationToken;

use crate::{
    args::Global,
    config::{Config, Limits, LiveConfig, RateLimit, SourceConfig, SourceKind, parse_duration},
    exit::Trouble,
    keyring::Keyring,
    location::{self, Location},
};

/// Hacker News states no limit; these are polite, and reach the whole history in about six hours.
const HN_RATE: f64 = 250.0;
const HN_RATE_MAX: f64 = 2500.0;
const IN_FLIGHT: u32 = 64;
const IN_FLIGHT_MAX: u32 = 256;

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
        let config = Config::load(global.config.as_deref())?;
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
        Location::parse(&self.store_url, self.store_schema.as_deref())
    }

    /// Where the key of this store is.
    pub(crate) fn keyring(&self) -> Result<Keyring, Trouble> {
        Ok(Keyring::find(&self.location()?, self.config.path.as_deref()))
    }

    pub(crate) async fn open_store(&self, access: Access) -> anyhow::Result<Arc<dyn Store>> {
        Ok(self.location()?.open(access).await?)
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
        let remote = build_source(source, &clock, &entropy)?;
        let settings = engine_settings(&source.limits)?;
        let world = World { clock, entropy, observer, stop: stop.into(), process: process() };
        Ok(Engine { name: source.name.clone(), source: remote, store, settings, world })
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

fn build_source(source: &SourceConfig, clock: &Clock, entropy: &Entropy) -> Result<Arc<dyn Source>, Trouble> {
    if source.kind != SourceKind::Hn {
        let message = format!("sources of kind {:?} cannot be mirrored by this version", source.kind.as_str());
        return Err(Trouble::usage(message).hint("name the sources you mean, for example 'highwater sync hn'"));
    }
    let transport = HttpTransport::new(&source.hn.base_url, TransportSettings::default()).map_err(|error| {
        Trouble::usage(format!("sources.{}.base_url: {}", source.name, highwater_engine::describe(&error)))
    })?;
    let jitter = entropy.clone();
    let gateway =
        Gateway::new(Arc::new(transport), throttle(&source.limits), clock.clone(), Box::new(move || jitter.unit()));
    Ok(Arc::new(Hn::new(gateway, Decoding::Blocking)))
}

/// A rate of one's own is also the most, unless a greater one is given as well.
fn throttle(limits: &Limits) -> ThrottleSettings {
    let rate = match (limits.rate, limits.rate_max) {
        (Some(RateLimit::Unlimited), None) => Rate::Unlimited,
        (Some(RateLimit::Unlimited), Some(max)) => Rate::Limited { start: max, max },
        (Some(RateLimit::PerSecond(start)), max) => Rate::Limited { start, max: max.unwrap_or(start) },
        (None, max) => {
            let max = max.unwrap_or(HN_RATE_MAX);
            Rate::Limited { start: HN_RATE.min(max), max }
        }
    };
    let mut settings = ThrottleSettings::new(rate, in_flight(limits));
    settings.burst = limits.burst.unwrap_or(settings.burst);
    let per_minute = |limit| Window { length: Duration::from_secs(60), limit };
    settings.windows = limits.per_minute.map(per_minute).into_iter().collect();
    // Hacker News announces no quota: answers that become slow are its way of asking for less.
    if limits.in_flight.is_none() && !matches!(rate, Rate::Unlimited) {
        settings.policy.on_slow = OnSlow::Shrink;
    }
    settings
}

fn in_flight(limits: &Limits) -> InFlight {
    match (limits.in_flight, limits.in_flight_max) {
        (None, None) if limits.rate == Some(RateLimit::Unlimited) => InFlight { start: IN_FLIGHT, max: IN_FLIGHT },
        (None, None) => InFlight { start: IN_FLIGHT, max: IN_FLIGHT_MAX },
        (Some(start), None) => InFlight { start, max: start },
        (None, Some(max)) => InFlight { start: IN_FLIGHT.min(max), max },
        (Some(start), Some(max)) => InFlight { start, max },
    }
}

fn engine_settings(limits: &Limits) -> Result<EngineSettings, Trouble> {
    let mut settings = EngineSettings {
        sizes: Sizes { segment: limits.segment, job: limits.job, in_flight: in_flight(limits).max },
        dead_letters: limits.dead_letters,
        ..EngineSettings::default()
    };
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
