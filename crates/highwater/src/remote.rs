//! From configuration to a source: the way to the remote, its throttle, and who may ask.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use highwater_core::throttle::{
    Growth, InFlight, OnSlow, Policy as Tuning, Rate, Settings as ThrottleSettings, Window,
};
use highwater_engine::Entropy;
use highwater_sources::{
    Clock, Deadlines, Decoder, Decoding, Gateway, Hn, HttpTransport, Memory, Roots, Source, TransportSettings,
    gmail::{Gmail, GmailSettings, Mailbox, Policy},
    looker::{JOB_SIZE, Looker, LookerSettings},
};
use highwater_store::{MailboxId, Store};

use crate::{
    config::{GmailConfig, Limits, LookerConfig, RateLimit, SourceConfig, SourceKind},
    credentials::{self, Safe},
    exit::{Exit, Trouble},
    instance::Instance,
    keyring::Keyring,
};

/// What a remote is asked at, unless the operator knows better.
#[derive(Clone, Copy, Debug)]
struct Pace {
    rate: (f64, f64),
    in_flight: InFlight,
    /// With no rate to keep them apart.
    unlimited: InFlight,
    per_minute: Option<f64>,
    tuning: Tuning,
}

/// Hacker News states no limit; these are polite, and reach the whole history in about six hours. Answers that become
/// slow are its way of asking for less.
const HN: Pace = Pace {
    rate: (250.0, 2500.0),
    in_flight: InFlight { start: 64, max: 256 },
    unlimited: InFlight { start: 64, max: 64 },
    per_minute: None,
    tuning: Tuning { cut: 0.85, growth: Growth::Additive, on_slow: OnSlow::Shrink },
};

/// Looker states no limit in numbers. The delay between requests grows by half when it refuses, and shrinks by a tenth
/// after ten answers.
const LOOKER: Pace = Pace {
    rate: (10.0, 10.0),
    in_flight: InFlight { start: 8, max: 8 },
    unlimited: InFlight { start: 8, max: 8 },
    per_minute: Some(100.0),
    tuning: Tuning {
        cut: 1.0 / 1.5,
        growth: Growth::AfterSuccesses { count: 10, delay_factor: 0.9 },
        on_slow: OnSlow::Ignore,
    },
};
/// Lists that are not paged may be long, and take their time.
const LIST_MAX: usize = 256 * 1024 * 1024;
const LIST_PATIENCE: Duration = Duration::from_secs(600);
/// As the SDK has it.
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);

/// How many requests one user may have under way is written nowhere; ten were seen to be too many.
const GMAIL_IN_FLIGHT: InFlight = InFlight { start: 4, max: 32 };
/// A message of 150 MB in base64 within JSON.
const MAIL_BODY_MAX: usize = 256 * 1024 * 1024;
/// Of all mailboxes together: with what is not counted, and with the database's own, about 200 MB.
static MAIL_MEMORY: LazyLock<Memory> = LazyLock::new(|| Memory::new(64 * 1024 * 1024));

impl Pace {
    fn of(source: &SourceConfig) -> Pace {
        if source.looker.is_some() {
            return LOOKER;
        }
        match &source.gmail {
            None => HN,
            Some(gmail) => Pace {
                rate: gmail.mail.quota.rate(),
                in_flight: GMAIL_IN_FLIGHT,
                unlimited: InFlight { start: 16, max: 64 },
                per_minute: gmail.mail.quota.per_minute(),
                tuning: Tuning::default(),
            },
        }
    }
}

/// Who needs what to be asked.
pub(crate) struct Access<'a> {
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) keyring: Keyring,
}

pub(crate) fn build(
    source: &SourceConfig,
    access: Access<'_>,
    clock: &Clock,
    entropy: &Entropy,
) -> Result<Arc<dyn Source>, Trouble> {
    if let Some(config) = &source.looker {
        return build_looker(source, config, clock, entropy);
    }
    match (source.kind, &source.gmail) {
        (SourceKind::Hn, _) => {
            let gateway = gateway(source, &source.hn.base_url, TransportSettings::default(), clock, entropy)?;
            let decoder = Decoder::start()
                .map_err(|error| Trouble::new(Exit::Failed, format!("cannot start a thread: {error}")))?;
            Ok(Arc::new(Hn::new(gateway, Decoding::Beside(decoder))))
        }
        (SourceKind::Gmail, Some(config)) => build_gmail(source, config, access, clock, entropy),
        (kind, _) => {
            let message = format!("sources of kind {:?} cannot be mirrored by this version", kind.as_str());
            Err(Trouble::usage(message).hint("name the sources you mean, for example 'highwater sync hn'"))
        }
    }
}

fn build_gmail(
    source: &SourceConfig,
    config: &GmailConfig,
    access: Access<'_>,
    clock: &Clock,
    entropy: &Entropy,
) -> Result<Arc<dyn Source>, Trouble> {
    let deadlines = Deadlines { total: Duration::from_secs(600), ..Deadlines::default() };
    let memory = Some(MAIL_MEMORY.clone());
    let transport = TransportSettings { body_max: MAIL_BODY_MAX, memory, deadlines, ..TransportSettings::default() };
    let gateway = gateway(source, &config.base_url, transport, clock, entropy)?;
    let mailbox = MailboxId::new(&config.org, &config.account);
    let settings = GmailSettings {
        mailbox: Mailbox { id: mailbox.key(), org: config.org.clone(), account: config.account.clone() },
        policy: Policy::including(config.mail.include.iter().copied()),
        quota: config.mail.quota,
        max_bytes_day: config.mail.max_bytes_day,
        backfill: config.mail.backfill_days.map(|days| Duration::from_secs(u64::from(days) * 86_400)),
    };
    let safe = Safe {
        store: access.store.clone(),
        keyring: access.keyring,
        mailbox,
        source: source.name.clone(),
        clock: clock.clone(),
    };
    let bearer = credentials::bearer(Arc::new(safe), config)?;
    Ok(Arc::new(Gmail::new(gateway, bearer, settings, Decoding::Blocking)))
}

fn build_looker(
    source: &SourceConfig,
    config: &LookerConfig,
    clock: &Clock,
    entropy: &Entropy,
) -> Result<Arc<dyn Source>, Trouble> {
    let Instance { base_url, key, verifies, timeout } = Instance::find(&source.name, config)?;
    let first_byte = timeout.unwrap_or(ANSWER_PATIENCE);
    let deadlines = Deadlines { first_byte, total: first_byte.max(LIST_PATIENCE), ..Deadlines::default() };
    let roots = if verifies { Roots::Native } else { Roots::Anybody };
    let settings = TransportSettings { body_max: LIST_MAX, deadlines, roots, ..TransportSettings::default() };
    let transport = transport(source, &base_url, settings)?;
    let gateway = gateway_over(source, transport.clone(), clock, entropy);
    let settings = LookerSettings {
        source: source.name.to_string(),
        key,
        types: config.mirror.types.clone(),
        page: source.limits.job.unwrap_or(JOB_SIZE),
        max_calls: config.mirror.max_calls,
        max_calls_month: config.mirror.max_calls_month,
    };
    Ok(Arc::new(Looker::new(gateway, transport, settings, Decoding::Blocking)))
}

fn gateway(
    source: &SourceConfig,
    base_url: &str,
    settings: TransportSettings,
    clock: &Clock,
    entropy: &Entropy,
) -> Result<Gateway, Trouble> {
    Ok(gateway_over(source, transport(source, base_url, settings)?, clock, entropy))
}

fn transport(
    source: &SourceConfig,
    base_url: &str,
    settings: TransportSettings,
) -> Result<Arc<HttpTransport>, Trouble> {
    let transport = HttpTransport::new(base_url, settings).map_err(|error| {
        Trouble::usage(format!("sources.{}.base_url: {}", source.name, highwater_engine::describe(&error)))
    })?;
    Ok(Arc::new(transport))
}

fn gateway_over(source: &SourceConfig, transport: Arc<HttpTransport>, clock: &Clock, entropy: &Entropy) -> Gateway {
    let jitter = entropy.clone();
    Gateway::new(transport, throttle(source), clock.clone(), Box::new(move || jitter.unit()))
}

/// A rate of one's own is also the most, unless a greater one is given as well.
fn throttle(source: &SourceConfig) -> ThrottleSettings {
    let (limits, pace) = (&source.limits, Pace::of(source));
    let rate = match (limits.rate, limits.rate_max) {
        (Some(RateLimit::Unlimited), None) => Rate::Unlimited,
        (Some(RateLimit::Unlimited), Some(max)) => Rate::Limited { start: max, max },
        (Some(RateLimit::PerSecond(start)), max) => Rate::Limited { start, max: max.unwrap_or(start) },
        (None, max) => {
            let max = max.unwrap_or(pace.rate.1);
            Rate::Limited { start: pace.rate.0.min(max), max }
        }
    };
    let mut settings = ThrottleSettings::new(rate, in_flight(source));
    settings.burst = limits.burst.unwrap_or(settings.burst);
    let per_minute = |limit| Window { length: Duration::from_secs(60), limit };
    // A greater rate of one's own says that one knows the quota.
    let is_usual = match limits.rate {
        None => true,
        Some(RateLimit::PerSecond(rate)) => rate <= pace.rate.1,
        Some(RateLimit::Unlimited) => false,
    };
    let declared = if is_usual { pace.per_minute } else { None };
    settings.windows = limits.per_minute.or(declared).map(per_minute).into_iter().collect();
    settings.policy = pace.tuning;
    if limits.in_flight.is_some() || matches!(rate, Rate::Unlimited) {
        settings.policy.on_slow = OnSlow::Ignore;
    }
    settings
}

pub(crate) fn in_flight(source: &SourceConfig) -> InFlight {
    let Limits { rate, in_flight, in_flight_max, .. } = &source.limits;
    let pace = Pace::of(source);
    match (*in_flight, *in_flight_max) {
        (None, None) if *rate == Some(RateLimit::Unlimited) => pace.unlimited,
        (None, None) => pace.in_flight,
        (Some(start), None) => InFlight { start, max: start },
        (None, Some(max)) => InFlight { start: pace.in_flight.start.min(max), max },
        (Some(start), Some(max)) => InFlight { start, max },
    }
}
