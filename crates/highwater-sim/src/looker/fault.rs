//! The ways in which this API goes wrong, by name, and when they strike: a pure function of seed, request and how often
//! it was made.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, de::Error as _};

use super::{
    kind::LookerType,
    plan::{LookerPlan, LookerScript},
};
use crate::{
    dice::Ladder,
    params::hash_text,
    plan::LatencyPlan,
    rng::{Purpose, Seed, Share, scale},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LookerFault {
    Internal,
    BadGateway,
    Unavailable,
    GatewayTimeout,
    TooMany,
    TooManyRetryAfter,
    Unauthorized,
    Forbidden,
    NotFound,
    Unprocessable,
    Html,
    CutJson,
    Reset,
    ResetBody,
    Truncated,
    Slow,
    Hang,
}

impl LookerFault {
    pub const ALL: [LookerFault; 17] = [
        LookerFault::Internal,
        LookerFault::BadGateway,
        LookerFault::Unavailable,
        LookerFault::GatewayTimeout,
        LookerFault::TooMany,
        LookerFault::TooManyRetryAfter,
        LookerFault::Unauthorized,
        LookerFault::Forbidden,
        LookerFault::NotFound,
        LookerFault::Unprocessable,
        LookerFault::Html,
        LookerFault::CutJson,
        LookerFault::Reset,
        LookerFault::ResetBody,
        LookerFault::Truncated,
        LookerFault::Slow,
        LookerFault::Hang,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            LookerFault::Internal => "500",
            LookerFault::BadGateway => "502",
            LookerFault::Unavailable => "503",
            LookerFault::GatewayTimeout => "504",
            LookerFault::TooMany => "429",
            LookerFault::TooManyRetryAfter => "429-retry-after",
            LookerFault::Unauthorized => "401",
            LookerFault::Forbidden => "403",
            LookerFault::NotFound => "404",
            LookerFault::Unprocessable => "422",
            LookerFault::Html => "html",
            LookerFault::CutJson => "cut-json",
            LookerFault::Reset => "reset",
            LookerFault::ResetBody => "reset-body",
            LookerFault::Truncated => "truncated",
            LookerFault::Slow => "slow",
            LookerFault::Hang => "hang",
        }
    }

    /// Faults that say something about what was asked for; by chance they would be a lie no client could detect.
    pub(super) const fn is_scripted(self) -> bool {
        matches!(self, LookerFault::Forbidden | LookerFault::NotFound | LookerFault::Unprocessable)
    }

    /// Faults that may be the last word about one object. A throttle or a 401 concerns the whole account, and a slow
    /// answer is an answer.
    pub(super) const fn may_last(self) -> bool {
        !matches!(
            self,
            LookerFault::TooMany | LookerFault::TooManyRetryAfter | LookerFault::Unauthorized | LookerFault::Slow
        )
    }
}

impl fmt::Display for LookerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault `{0}`, expected one of {list}", list = LookerFault::ALL.map(|fault| format!("`{fault}`")).join(", "))]
pub struct UnknownLookerFault(String);

impl FromStr for LookerFault {
    type Err = UnknownLookerFault;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = LookerFault::ALL.into_iter().find(|fault| fault.as_str() == name);
        found.ok_or_else(|| UnknownLookerFault(name.to_owned()))
    }
}

impl<'de> Deserialize<'de> for LookerFault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// One line of a script; `None` is a good reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookerStep(pub Option<LookerFault>);

impl<'de> Deserialize<'de> for LookerStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "normal" => Ok(LookerStep(None)),
            name => name.parse().map(|fault| LookerStep(Some(fault))).map_err(D::Error::custom),
        }
    }
}

/// What a request asks for, as far as scripts care.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject<'a> {
    Object(LookerType, &'a str),
    Page { path: &'a str, offset: u64 },
}

#[derive(Debug)]
pub(super) struct LookerDice {
    seed: Seed,
    rates: Ladder<LookerFault>,
    cycle: u32,
    scripts: Vec<LookerScript>,
    latency: LatencyPlan,
}

impl LookerDice {
    pub(super) fn new(seed: Seed, plan: &LookerPlan) -> Self {
        LookerDice {
            seed,
            rates: Ladder::new(plan.rates.iter().map(|(fault, rate)| (*rate, *fault))),
            cycle: u32::from(plan.heal_after) + 1,
            scripts: plan.scripts.clone(),
            latency: plan.latency.clone(),
        }
    }

    /// The fault of the `nth` request (from 0) of this kind.
    pub(super) fn fault(&self, subject: Subject<'_>, key: u64, nth: u32) -> Option<LookerFault> {
        if let Some(step) = self.scripted(subject, nth) {
            return step.0;
        }
        if (nth + 1).is_multiple_of(self.cycle) {
            return None;
        }
        self.rates.pick(self.seed.hash_nth(Purpose::Fault, key, u64::from(nth)))
    }

    /// What a script says, if one concerns this.
    pub(super) fn scripted(&self, subject: Subject<'_>, nth: u32) -> Option<LookerStep> {
        let script = self.scripts.iter().find(|script| self.concerns(script, subject))?;
        Some(script.replies.get(nth as usize).copied().unwrap_or(script.then))
    }

    /// The fault of an object that never heals.
    pub(super) fn lasting(&self, kind: LookerType, id: &str) -> Option<LookerFault> {
        self.scripts.iter().find(|script| self.concerns(script, Subject::Object(kind, id)))?.then.0
    }

    /// The fault of a list that shows this object whole.
    pub(super) fn spoils_lists(&self, kind: LookerType, id: &str) -> Option<LookerFault> {
        let spoils = |script: &&LookerScript| script.in_lists && self.concerns(script, Subject::Object(kind, id));
        self.scripts.iter().find(spoils)?.then.0
    }

    pub(super) fn may_spoil_lists(&self) -> bool {
        self.scripts.iter().any(|script| script.in_lists)
    }

    pub(super) fn latency(&self, key: u64, nth: u32) -> Duration {
        let fixed = Duration::from_millis(u64::from(self.latency.fixed_ms));
        let hash = self.seed.hash_nth(Purpose::Latency, key, u64::from(nth));
        fixed + Duration::from_micros(scale(hash, u64::from(self.latency.jitter_ms) * 1_000 + 1))
    }

    fn concerns(&self, script: &LookerScript, subject: Subject<'_>) -> bool {
        match subject {
            Subject::Page { path, offset } => {
                script.path.as_deref() == Some(path) && script.offset.is_none_or(|wanted| wanted == offset)
            }
            Subject::Object(kind, id) if script.kind == Some(kind) => {
                let share = script.share.and_then(Share::new).unwrap_or(Share::NONE);
                let hash = self.seed.hash(Purpose::Script, hash_text(kind.index() as u64, id));
                script.ids.iter().any(|named| named == id) || share.hit(hash)
            }
            Subject::Object(..) => false,
        }
    }
}
