//! The ways in which this API goes wrong, by name, and when they strike: a pure function of seed, request and how often
//! it was made.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, de::Error as _};

use super::{
    plan::{GmailPlan, GmailScript},
    route::Method,
};
use crate::{
    dice::Ladder,
    plan::LatencyPlan,
    rng::{Purpose, Seed, scale},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GmailFault {
    Internal,
    BadGateway,
    Unavailable,
    GatewayTimeout,
    TooMany,
    RateLimit,
    Unauthorized,
    NotFound,
    FailedPrecondition,
    EmptyPage,
    InvalidPageToken,
    RawMissing,
    RawTruncated,
    RawUndecodable,
    SwitchedOff,
    Html,
    CutJson,
    Reset,
    ResetBody,
    Truncated,
    Slow,
    Hang,
}

impl GmailFault {
    pub const ALL: [GmailFault; 22] = [
        GmailFault::Internal,
        GmailFault::BadGateway,
        GmailFault::Unavailable,
        GmailFault::GatewayTimeout,
        GmailFault::TooMany,
        GmailFault::RateLimit,
        GmailFault::Unauthorized,
        GmailFault::NotFound,
        GmailFault::FailedPrecondition,
        GmailFault::EmptyPage,
        GmailFault::InvalidPageToken,
        GmailFault::RawMissing,
        GmailFault::RawTruncated,
        GmailFault::RawUndecodable,
        GmailFault::SwitchedOff,
        GmailFault::Html,
        GmailFault::CutJson,
        GmailFault::Reset,
        GmailFault::ResetBody,
        GmailFault::Truncated,
        GmailFault::Slow,
        GmailFault::Hang,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            GmailFault::Internal => "500",
            GmailFault::BadGateway => "502",
            GmailFault::Unavailable => "503",
            GmailFault::GatewayTimeout => "504",
            GmailFault::TooMany => "429",
            GmailFault::RateLimit => "403-rate",
            GmailFault::Unauthorized => "401",
            GmailFault::NotFound => "404",
            GmailFault::FailedPrecondition => "failed-precondition",
            GmailFault::EmptyPage => "empty-page",
            GmailFault::InvalidPageToken => "invalid-page-token",
            GmailFault::RawMissing => "raw-missing",
            GmailFault::RawTruncated => "raw-truncated",
            GmailFault::RawUndecodable => "raw-undecodable",
            GmailFault::SwitchedOff => "403-off",
            GmailFault::Html => "html",
            GmailFault::CutJson => "cut-json",
            GmailFault::Reset => "reset",
            GmailFault::ResetBody => "reset-body",
            GmailFault::Truncated => "truncated",
            GmailFault::Slow => "slow",
            GmailFault::Hang => "hang",
        }
    }

    /// Whether it can happen to a call of `method`. A 404 elsewhere would say something untrue about the mailbox, and
    /// after a write nobody could tell what was done.
    const fn fits(self, method: Method) -> bool {
        match self {
            GmailFault::NotFound | GmailFault::RawMissing | GmailFault::RawTruncated | GmailFault::RawUndecodable => {
                matches!(method, Method::MessagesGet)
            }
            GmailFault::EmptyPage | GmailFault::InvalidPageToken => method.is_paged(),
            _ => true,
        }
    }

    /// Faults that may be the last word about one message. A throttle or a 401 concerns the whole account, and a slow
    /// answer is an answer.
    pub(super) const fn may_last(self) -> bool {
        !matches!(
            self,
            GmailFault::TooMany
                | GmailFault::RateLimit
                | GmailFault::Unauthorized
                | GmailFault::SwitchedOff
                | GmailFault::EmptyPage
                | GmailFault::InvalidPageToken
                | GmailFault::Slow
        )
    }
}

impl fmt::Display for GmailFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault `{0}`, expected one of {list}", list = GmailFault::ALL.map(|fault| format!("`{fault}`")).join(", "))]
pub struct UnknownGmailFault(String);

impl FromStr for GmailFault {
    type Err = UnknownGmailFault;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = GmailFault::ALL.into_iter().find(|fault| fault.as_str() == name);
        found.ok_or_else(|| UnknownGmailFault(name.to_owned()))
    }
}

impl<'de> Deserialize<'de> for GmailFault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// One line of a script; `None` is a good reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GmailStep(pub Option<GmailFault>);

impl<'de> Deserialize<'de> for GmailStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "normal" => Ok(GmailStep(None)),
            name => name.parse().map(|fault| GmailStep(Some(fault))).map_err(D::Error::custom),
        }
    }
}

#[derive(Debug)]
pub(super) struct GmailDice {
    seed: Seed,
    rates: Ladder<GmailFault>,
    cycle: u32,
    scripts: Vec<GmailScript>,
    by_share: Ladder<usize>,
    latency: LatencyPlan,
}

impl GmailDice {
    pub(super) fn new(seed: Seed, plan: &GmailPlan) -> Self {
        let shares = plan.scripts.iter().enumerate().filter_map(|(at, script)| Some((script.share?, at)));
        GmailDice {
            seed,
            rates: Ladder::new(plan.rates.iter().map(|(fault, rate)| (*rate, *fault))),
            cycle: u32::from(plan.heal_after) + 1,
            by_share: Ladder::new(shares),
            scripts: plan.scripts.clone(),
            latency: plan.latency.clone(),
        }
    }

    /// The fault of the `nth` request (from 0) of this kind; `message` for a get of one.
    pub(super) fn fault(&self, method: Method, message: Option<u64>, key: u64, nth: u32) -> Option<GmailFault> {
        if let Some(script) = message.and_then(|id| self.script(id)) {
            return script.replies.get(nth as usize).copied().unwrap_or(script.then).0;
        }
        if (nth + 1).is_multiple_of(self.cycle) {
            return None;
        }
        let hash = self.seed.hash_nth(Purpose::Fault, key, u64::from(nth));
        self.rates.pick(hash).filter(|fault| fault.fits(method))
    }

    /// The fault of a message that never heals.
    pub(super) fn lasting(&self, message: u64) -> Option<GmailFault> {
        self.script(message)?.then.0
    }

    pub(super) fn latency(&self, key: u64, nth: u32) -> Duration {
        let fixed = Duration::from_millis(u64::from(self.latency.fixed_ms));
        let hash = self.seed.hash_nth(Purpose::Latency, key, u64::from(nth));
        fixed + Duration::from_micros(scale(hash, u64::from(self.latency.jitter_ms) * 1_000 + 1))
    }

    fn script(&self, id: u64) -> Option<&GmailScript> {
        let named = self.scripts.iter().position(|script| script.ids().any(|named| named == id));
        let at = named.or_else(|| self.by_share.pick(self.seed.hash(Purpose::Script, id)))?;
        self.scripts.get(at)
    }
}
