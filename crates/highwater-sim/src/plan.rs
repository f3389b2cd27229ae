//! The fault plan: what a simulator does wrong, how often and for how long. This file owns the keys and their
//! defaults; it parses and checks, and decides nothing about single requests.
//!
//! A plan is TOML. Every key is optional; an unknown key is refused. Presets: `none`, `calm`, `storm`, `chaos`.
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `heal_after` | 4 | 1 to 5; after so many requests for one id in a row that `rates` may spoil, one is always good |
//! | `body.odd` | 0 | share of items with an odd shape (no time, `descendants` -1, NUL in the text, ...) |
//! | `body.gzip` | false | compress bodies for clients that accept gzip |
//! | `body.slow_chunk` | 64 | bytes in one drip of a `slow` reply |
//! | `body.slow_gap_ms` | 50 | pause before each drip |
//! | `body.etag` | true | `X-Firebase-ETag: true` is answered with an `ETag`, a matching `If-None-Match` with 304 |
//! | `latency.fixed_ms` | 0 | every reply waits so long |
//! | `latency.jitter_ms` | 0 | plus up to so long, uniform, fixed by seed, id and request number |
//! | `quota.per_second` | none | token bucket: requests a second; over it the answer is 429 |
//! | `quota.burst` | 1 | size of the bucket |
//! | `quota.retry_after_s` | none | `Retry-After` of those 429; faults that carry the header use it too, or else 1 |
//! | `head.lag_ids` | 0 | so many of the newest ids are `null` at the start, |
//! | `head.lag_ms` | 0 | and any new id for so long after `maxitem` has announced it |
//! | `head.behind` | 0 | `maxitem` starts so many ids below the last one |
//! | `head.jump_max` | 9 | and grows by 1 to so many ids |
//! | `head.every_ms` | 1000 | each so many milliseconds |
//! | `clock.now` | none | unix time of the item that is newest at the start; without it ids count from October 2006 |
//! | `clock.seconds_per_id` | 12 | and so much between neighbours |
//! | `mutations.every_ms` | none | one mutation each so many milliseconds |
//! | `mutations.window_ids` | 2000 | they strike one of so many newest ids whose bodies are out |
//! | `mutations.unpublished` | 0 | share of mutations that never appear in `updates` |
//! | `mutations.profiles` | 0.2 | share of mutations that change a profile instead of an item |
//! | `mutations.stop_after_ms` | none | no mutation after that |
//! | `mutations.updates_every_ms` | 1000 | how often `updates` is written anew, with what changed since the last time |
//! | `stream.keep_alive_ms` | 30000 | a `keep-alive` each so often |
//! | `stream.forms` | `["put"]` | how writes are told, one form after the other: `put`, `put-path`, `put-index`, `patch`, `put-null` |
//! | `stream.split` | 0 | frames are sent in pieces of so many bytes; 0 sends them whole |
//! | `stream.cut_after_events` | none | after so many events, the first included, the next breaks off within its frame |
//! | `stream.drop_after_events` | none | after so many events the stream ends |
//! | `stream.silent_after_events` | none | after so many events nothing more is sent, and the stream stays open |
//! | `stream.redirect` | none | streams are sent on by 307: to another `path`, or to another `port` of the server |
//! | `stream.status_first` | `[]` | the first attempts to open each stream are answered with these statuses |
//! | `rates.<fault>` | 0 | probability per request, by hash of seed, id and request number, so that runs replay |
//! | `script.id`, `.ids`, `.share` | | whom a `[[script]]` concerns: one id, some ids, or a share of all ids |
//! | `script.replies` | `[]` | faults for the 1st, 2nd, ... request of such an id; `"normal"` for a good reply |
//! | `script.then` | `"normal"` | every later reply; a fault here lasts for ever and is part of the truth |
//!
//! Faults: `500`, `502`, `503`, `503-retry-after`, `429`, `429-retry-after`, `401`, `403`, `404`, `null`, `delayed`,
//! `wrong-id`, `oversized`, `html`, `reset`, `reset-body`, `truncated`, `cut-json`, `slow`, `hang`.
//!
//! Rules that let a correct client finish: ids with a script are spared by `rates`; `null` by rate strikes at most
//! the first two of the `heal_after` requests; neither `null` by rate nor a script by share touches the newest ids,
//! whose `null` a client must not believe.

mod check;
mod live;
mod preset;

use std::{collections::BTreeMap, fmt, fs, io, num::NonZeroU32, path::PathBuf, time::Duration};

use serde::{Deserialize, de::DeserializeOwned};

pub(crate) use self::check::{HEAL_AFTER_MAX, ensure, probability};
pub use self::{
    live::{ClockPlan, MutationPlan, Redirect, StreamPlan, WriteForm},
    preset::{Preset, UnknownPreset},
};
use crate::{
    answer::RetryAfter,
    fault::{Fault, Step},
};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultPlan {
    pub heal_after: u8,
    pub body: BodyPlan,
    pub latency: LatencyPlan,
    pub quota: QuotaPlan,
    pub head: HeadPlan,
    pub clock: ClockPlan,
    pub mutations: MutationPlan,
    pub stream: StreamPlan,
    pub rates: BTreeMap<Fault, f64>,
    #[serde(rename = "script")]
    pub scripts: Vec<Script>,
}

impl FaultPlan {
    /// The plan behind a command line argument: the name of a preset, or else a file.
    pub fn load(preset_or_path: &str) -> Result<Self, PlanError> {
        match preset_or_path.parse::<Preset>() {
            Ok(preset) => Ok(preset.plan()),
            Err(unknown) => FaultPlan::parse(&read(preset_or_path, &unknown)?),
        }
    }

    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let plan: FaultPlan = of_toml(text)?;
        plan.check()?;
        Ok(plan)
    }

    /// A commented plan with every key, to start from.
    pub const fn sample() -> &'static str {
        include_str!("plan/sample.toml")
    }
}

impl Default for FaultPlan {
    fn default() -> Self {
        FaultPlan {
            heal_after: 4,
            body: BodyPlan::default(),
            latency: LatencyPlan::default(),
            quota: QuotaPlan::default(),
            head: HeadPlan::default(),
            clock: ClockPlan::default(),
            mutations: MutationPlan::default(),
            stream: StreamPlan::default(),
            rates: BTreeMap::new(),
            scripts: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BodyPlan {
    pub odd: f64,
    pub gzip: bool,
    pub slow_chunk: NonZeroU32,
    pub slow_gap_ms: u32,
    pub etag: bool,
}

impl BodyPlan {
    pub(crate) const fn slow_gap(&self) -> Duration {
        Duration::from_millis(self.slow_gap_ms as u64)
    }
}

impl Default for BodyPlan {
    fn default() -> Self {
        const CHUNK: NonZeroU32 = NonZeroU32::new(64).expect("64 is not zero");
        BodyPlan { odd: 0.0, gzip: false, slow_chunk: CHUNK, slow_gap_ms: 50, etag: true }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LatencyPlan {
    pub fixed_ms: u32,
    pub jitter_ms: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuotaPlan {
    pub per_second: Option<NonZeroU32>,
    pub burst: Option<NonZeroU32>,
    pub retry_after_s: Option<NonZeroU32>,
}

impl QuotaPlan {
    pub(crate) fn retry_after(&self) -> Option<RetryAfter> {
        self.retry_after_s.map(|seconds| RetryAfter(seconds.get()))
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HeadPlan {
    pub lag_ids: u32,
    pub lag_ms: u32,
    pub behind: u32,
    pub jump_max: NonZeroU32,
    pub every_ms: NonZeroU32,
}

impl Default for HeadPlan {
    fn default() -> Self {
        // Items appear in batches of under ten.
        const JUMP: NonZeroU32 = NonZeroU32::new(9).expect("9 is not zero");
        const EVERY: NonZeroU32 = NonZeroU32::new(1_000).expect("1,000 is not zero");
        HeadPlan { lag_ids: 0, lag_ms: 0, behind: 0, jump_max: JUMP, every_ms: EVERY }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    pub id: Option<u64>,
    #[serde(default)]
    pub ids: Vec<u64>,
    pub share: Option<f64>,
    #[serde(default)]
    pub replies: Vec<Step>,
    #[serde(default)]
    pub then: Step,
}

/// The text of the file that an argument names, which is no preset.
pub(crate) fn read(path: &str, unknown: &impl fmt::Display) -> Result<String, PlanError> {
    fs::read_to_string(path).map_err(|source| PlanError::Read { path: path.into(), hint: unknown.to_string(), source })
}

pub(crate) fn of_toml<T: DeserializeOwned>(text: &str) -> Result<T, PlanError> {
    toml::from_str(text).map_err(|error| PlanError::Toml(error.to_string()))
}

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("cannot read the fault plan {path}; {hint}", path = path.display())]
    Read { path: PathBuf, hint: String, source: io::Error },
    /// The text names the key, its line and the keys that are known.
    #[error("the fault plan is not valid: {0}")]
    Toml(String),
    #[error("the fault plan is not valid: `{key}` {why}")]
    Value { key: String, why: &'static str },
}

#[cfg(test)]
mod tests;
