//! What the types of a plan cannot say: ranges, and keys that exclude each other.

use super::{FaultPlan, PlanError, Script, StreamPlan};
use crate::rng::Share;

/// Clients are entitled to give up on an object; five spoiled replies in a row is what they must bear.
pub(crate) const HEAL_AFTER_MAX: u8 = 5;

impl FaultPlan {
    pub(super) fn check(&self) -> Result<(), PlanError> {
        ensure((1..=HEAL_AFTER_MAX).contains(&self.heal_after), "heal_after", "must be between 1 and 5")?;
        probability("body.odd", self.body.odd)?;
        probability("mutations.unpublished", self.mutations.unpublished)?;
        probability("mutations.profiles", self.mutations.profiles)?;
        self.stream.check()?;
        for (fault, rate) in &self.rates {
            probability(&format!("rates.{fault}"), *rate)?;
        }
        let rates: f64 = self.rates.values().sum();
        ensure(rates <= 1.0, "rates", "must not add up to more than 1")?;
        self.scripts.iter().try_for_each(Script::check)?;
        let shares: f64 = self.scripts.iter().filter_map(|script| script.share).sum();
        ensure(shares <= 1.0, "script.share", "must not add up to more than 1")
    }
}

impl StreamPlan {
    fn check(&self) -> Result<(), PlanError> {
        ensure(!self.forms.is_empty(), "stream.forms", "must name at least one form")?;
        let errors = self.status_first.iter().all(|status| (400..600).contains(status));
        ensure(errors, "stream.status_first", "must have statuses from 400 to 599")
    }
}

impl Script {
    fn check(&self) -> Result<(), PlanError> {
        let targets = [self.id.is_some(), !self.ids.is_empty(), self.share.is_some()];
        let named = targets.into_iter().filter(|named| *named).count();
        ensure(named == 1, "script", "must have exactly one of `id`, `ids` and `share`")?;
        if let Some(share) = self.share {
            probability("script.share", share)?;
        }
        let lasts = self.then.fault().is_none_or(|fault| fault.may_last());
        ensure(lasts, "script.then", "must be `normal` or a fault that can last, not a 429, `delayed` or `slow`")
    }
}

pub(crate) fn probability(key: &str, value: f64) -> Result<(), PlanError> {
    ensure(Share::new(value).is_some(), key, "must be a probability between 0 and 1")
}

pub(crate) fn ensure(holds: bool, key: &str, why: &'static str) -> Result<(), PlanError> {
    if holds { Ok(()) } else { Err(PlanError::Value { key: key.to_owned(), why }) }
}
