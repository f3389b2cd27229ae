//! One `[sources.NAME]` section with its limits.

use std::time::Duration;

use highwater_core::{DeadLetterPolicy, SourceName};
use highwater_sources::check_base_url;
use toml::Value;

use super::{
    gmail::{self, GmailConfig},
    looker::{self, LookerConfig},
    reader::{Reader, positive},
};

highwater_core::word! {
    pub(crate) enum SourceKind {
        Hn = "hn",
        Gmail = "gmail",
        Looker = "looker",
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SourceConfig {
    pub(crate) name: SourceName,
    pub(crate) kind: SourceKind,
    pub(crate) hn: HnConfig,
    /// Of a source of that kind.
    pub(crate) gmail: Option<GmailConfig>,
    pub(crate) looker: Option<LookerConfig>,
    pub(crate) limits: Limits,
}

#[derive(Clone, Debug)]
pub(crate) struct HnConfig {
    pub(crate) base_url: String,
    pub(crate) live: LiveConfig,
}

impl Default for HnConfig {
    fn default() -> Self {
        HnConfig { base_url: "https://hacker-news.firebaseio.com".into(), live: LiveConfig::default() }
    }
}

/// What `[sources.NAME.live]` may say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LiveConfig {
    pub(crate) workers: Option<usize>,
    pub(crate) queue: Option<usize>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) rescan_every: Option<Duration>,
    pub(crate) rescan_window: Option<Duration>,
    pub(crate) short_rescan_window: Option<Duration>,
    pub(crate) history_every: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RateLimit {
    Unlimited,
    PerSecond(f64),
}

/// What `[sources.NAME.limits]` may say; the contract names the keys, so they stand side by side here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) rate: Option<RateLimit>,
    pub(crate) rate_max: Option<f64>,
    pub(crate) per_minute: Option<f64>,
    pub(crate) burst: Option<f64>,
    pub(crate) in_flight: Option<u32>,
    pub(crate) in_flight_max: Option<u32>,
    pub(crate) attempts: Option<u32>,
    pub(crate) segment: Option<u64>,
    pub(crate) job: Option<usize>,
    pub(crate) stall_timeout: Option<Duration>,
    pub(crate) retry_patience: Option<Duration>,
    pub(crate) dead_letters: Option<DeadLetterPolicy>,
}

impl SourceConfig {
    pub(crate) fn default_hn() -> Self {
        SourceConfig {
            name: "hn".parse().expect("a plain word is a name"),
            kind: SourceKind::Hn,
            hn: HnConfig::default(),
            gmail: None,
            looker: None,
            limits: Limits::default(),
        }
    }
}

pub(super) fn parse_all(sources: Reader) -> Result<Vec<SourceConfig>, String> {
    sources.into_sections()?.into_iter().map(|(name, section)| parse_source(&name, section)).collect()
}

/// What follows `highwater auth` for all sources; no source may be called so.
pub(crate) const ROTATE_KEY: &str = "rotate-key";

fn parse_source(name: &str, mut section: Reader) -> Result<SourceConfig, String> {
    let path = section.path_of("kind");
    if name == ROTATE_KEY {
        return Err(format!("sources.{name}: 'highwater auth {name}' means something else; choose another name"));
    }
    let name = name.parse().map_err(|error| format!("{path}: {error}").replace(".kind", ""))?;
    let kind = section.word("kind")?.ok_or_else(|| {
        let kinds: Vec<_> = SourceKind::ALL.iter().map(|kind| kind.as_str()).collect();
        format!("{path} is missing: one of {}", kinds.join(", "))
    })?;
    let base_url = parse_base_url(&mut section)?;
    let limits = match section.section("limits")? {
        Some(limits) => parse_limits(limits, kind)?,
        None => Limits::default(),
    };
    let (mut hn, mut gmail, mut looker) = (HnConfig::default(), None, None);
    match kind {
        SourceKind::Hn => {
            hn.live = parse_live(&mut section)?;
            hn.base_url = base_url.unwrap_or(hn.base_url);
        }
        SourceKind::Gmail => gmail = Some(gmail::parse(&mut section, base_url, &limits)?),
        SourceKind::Looker => looker = Some(looker::parse(&mut section, base_url, &limits)?),
    }
    section.finish()?;
    Ok(SourceConfig { name, kind, hn, gmail, looker, limits })
}

/// Refused here, before anything is opened or made.
fn parse_base_url(section: &mut Reader) -> Result<Option<String>, String> {
    let url = section.string("base_url")?.map(|url| url.trim().to_owned());
    if let Some(Err(error)) = url.as_deref().map(check_base_url) {
        return Err(format!("{}: {error}", section.path_of("base_url")));
    }
    Ok(url)
}

fn parse_live(section: &mut Reader) -> Result<LiveConfig, String> {
    let Some(mut live) = section.section("live")? else { return Ok(LiveConfig::default()) };
    let parsed = LiveConfig {
        workers: live.whole("workers")?,
        queue: live.whole("queue")?,
        idle_timeout: live.duration("idle_timeout")?,
        rescan_every: live.duration("rescan_every")?,
        rescan_window: live.duration("rescan_window")?,
        short_rescan_window: live.duration("short_rescan_window")?,
        history_every: live.duration("history_every")?,
    };
    check_size(&live, "workers", parsed.workers.map(|workers| workers as u64), WORKERS_MAX)?;
    check_size(&live, "queue", parsed.queue.map(|queue| queue as u64), QUEUE_MAX)?;
    for (key, time) in [
        ("idle_timeout", parsed.idle_timeout),
        ("rescan_every", parsed.rescan_every),
        ("rescan_window", parsed.rescan_window),
        ("short_rescan_window", parsed.short_rescan_window),
        ("history_every", parsed.history_every),
    ] {
        check_time(&live, key, time)?;
    }
    live.finish()?;
    Ok(parsed)
}

/// Workers beyond the requests that may be under way only wait; the queue is in memory.
const WORKERS_MAX: u64 = 256;
const QUEUE_MAX: u64 = 1_000_000;

fn parse_limits(mut limits: Reader, kind: SourceKind) -> Result<Limits, String> {
    let parsed = Limits {
        rate: limits.read("rate", "a number above 0 or \"unlimited\"", parse_rate)?,
        rate_max: limits.number("rate_max")?,
        per_minute: limits.number("per_minute")?,
        burst: limits.number("burst")?,
        in_flight: limits.whole("in_flight")?,
        in_flight_max: limits.whole("in_flight_max")?,
        attempts: limits.whole("attempts")?,
        segment: limits.whole("segment")?,
        job: limits.whole("job")?,
        stall_timeout: limits.duration("stall_timeout")?,
        retry_patience: limits.duration("retry_patience")?,
        dead_letters: limits.word("dead_letters")?,
    };
    check_order(&limits, &parsed)?;
    check_time(&limits, "stall_timeout", parsed.stall_timeout)?;
    check_size(&limits, "segment", parsed.segment, SEGMENT_MAX)?;
    let job_max = if kind == SourceKind::Gmail { gmail::JOB_MAX } else { JOB_MAX };
    check_size(&limits, "job", parsed.job.map(|job| job as u64), job_max)?;
    limits.finish()?;
    Ok(parsed)
}

fn parse_rate(value: &Value) -> Option<RateLimit> {
    match value.as_str() {
        Some("unlimited") => Some(RateLimit::Unlimited),
        _ => positive(value).map(RateLimit::PerSecond),
    }
}

/// The keys of a segment are at hand while it is worked on, the rows of a job until they are committed.
const SEGMENT_MAX: u64 = 100_000;
const JOB_MAX: u64 = 1_000;

fn check_size(reader: &Reader, key: &str, size: Option<u64>, max: u64) -> Result<(), String> {
    match size {
        Some(size) if size > max => Err(format!("{}: {size} is too large, at most {max}", reader.path_of(key))),
        _ => Ok(()),
    }
}

fn check_time(reader: &Reader, key: &str, time: Option<Duration>) -> Result<(), String> {
    match time {
        Some(time) if time < Duration::from_secs(1) => {
            Err(format!("{}: less than a second is too short", reader.path_of(key)))
        }
        _ => Ok(()),
    }
}

fn check_order(reader: &Reader, limits: &Limits) -> Result<(), String> {
    if let (Some(RateLimit::PerSecond(rate)), Some(max)) = (limits.rate, limits.rate_max)
        && rate > max
    {
        return Err(format!("{}: {max} is below rate, which is {rate}", reader.path_of("rate_max")));
    }
    if let (Some(start), Some(max)) = (limits.in_flight, limits.in_flight_max)
        && start > max
    {
        return Err(format!("{}: {max} is below in_flight, which is {start}", reader.path_of("in_flight_max")));
    }
    Ok(())
}
