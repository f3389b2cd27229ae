//! The fault plan of the simulated Looker: the keys, their defaults and their checks. `LookerPlan::sample` explains each.

mod parts;
mod preset;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use self::{
    parts::{
        Cue, Deed, Denial, IdOrder, InstancePlan, ListPlan, LoginPlan, LookerBody, LookerMutations, LookerQuota,
        LookerScript, Sieve, Unsorted,
    },
    preset::{LookerPreset, UnknownLookerPreset},
};
use super::{fault::LookerFault, kind::LookerType};
use crate::plan::{HEAL_AFTER_MAX, LatencyPlan, PlanError, ensure, of_toml, probability, read};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LookerPlan {
    pub heal_after: u8,
    pub instance: InstancePlan,
    pub body: LookerBody,
    pub latency: LatencyPlan,
    pub quota: LookerQuota,
    pub login: LoginPlan,
    pub list: ListPlan,
    /// Types that the caller may not see.
    pub forbidden: BTreeMap<LookerType, Denial>,
    pub mutations: LookerMutations,
    /// Changes that come with certain requests.
    #[serde(rename = "change")]
    pub cues: Vec<Cue>,
    pub rates: BTreeMap<LookerFault, f64>,
    #[serde(rename = "script")]
    pub scripts: Vec<LookerScript>,
}

impl Default for LookerPlan {
    fn default() -> Self {
        LookerPlan {
            heal_after: 4,
            instance: InstancePlan::default(),
            body: LookerBody::default(),
            latency: LatencyPlan::default(),
            quota: LookerQuota::default(),
            login: LoginPlan::default(),
            list: ListPlan::default(),
            forbidden: BTreeMap::new(),
            mutations: LookerMutations::default(),
            cues: Vec::new(),
            rates: BTreeMap::new(),
            scripts: Vec::new(),
        }
    }
}

impl LookerPlan {
    /// The plan behind a command line argument: the name of a preset, or else a file.
    pub fn load(preset_or_path: &str) -> Result<Self, PlanError> {
        match preset_or_path.parse::<LookerPreset>() {
            Ok(preset) => Ok(preset.plan()),
            Err(unknown) => LookerPlan::parse(&read(preset_or_path, &unknown)?),
        }
    }

    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let plan: LookerPlan = of_toml(text)?;
        plan.check()?;
        Ok(plan)
    }

    /// A commented plan with every key, to start from.
    pub const fn sample() -> &'static str {
        include_str!("plan/sample.toml")
    }

    fn check(&self) -> Result<(), PlanError> {
        ensure((1..=HEAL_AFTER_MAX).contains(&self.heal_after), "heal_after", "must be between 1 and 5")?;
        ensure(self.instance.years > 0, "instance.years", "must be at least 1")?;
        ensure((0.0..=100.0).contains(&self.instance.others), "instance.others", "must be between 0 and 100")?;
        for (key, share) in [
            ("instance.trash", self.instance.trash),
            ("instance.own_access", self.instance.own_access),
            ("quota.retry_after", self.quota.retry_after),
            ("login.failures", self.login.failures),
        ] {
            probability(key, share)?;
        }
        let status = [400, 401, 403, 404].contains(&self.login.refused_status);
        ensure(status, "login.refused_status", "must be 400, 401, 403 or 404")?;
        let editable = self.mutations.types.iter().all(|kind| kind.edited().is_some());
        ensure(editable, "mutations.types", "must not name queries: they never change")?;
        for cue in &self.cues {
            let complete = match cue.deed {
                Deed::Revoke => true,
                Deed::Insert => cue.kind.is_some(),
                _ => cue.kind.is_some() && cue.id.is_some(),
            };
            ensure(complete, "change", "must have `type` and, unless something is inserted, `id`")?;
        }
        self.check_faults()
    }

    fn check_faults(&self) -> Result<(), PlanError> {
        for (fault, rate) in &self.rates {
            probability(&format!("rates.{fault}"), *rate)?;
            ensure(
                !fault.is_scripted(),
                &format!("rates.{fault}"),
                "is only for scripts: it would be a lie elsewhere",
            )?;
        }
        ensure(self.rates.values().sum::<f64>() <= 1.0, "rates", "must not add up to more than 1")?;
        self.scripts.iter().try_for_each(LookerScript::check)
    }
}

impl LookerScript {
    fn check(&self) -> Result<(), PlanError> {
        let objects = self.kind.is_some() && (self.ids.is_empty() == self.share.is_some());
        let page = self.kind.is_none() && self.ids.is_empty() && self.share.is_none() && self.path.is_some();
        ensure(objects != page, "script", "must have `type` and one of `ids` and `share`, or else `path`")?;
        ensure(page || self.path.is_none(), "script.path", "must not stand beside `type`")?;
        ensure(page || self.offset.is_none(), "script.offset", "must stand beside `path`")?;
        probability("script.share", self.share.unwrap_or(0.0))?;
        let lasts = self.then.0.is_none_or(LookerFault::may_last);
        ensure(lasts, "script.then", "must be `normal` or a fault of one object that can last")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_and_every_preset_parse() {
        LookerPlan::parse(LookerPlan::sample()).unwrap();
        assert_eq!(LookerPreset::None.plan(), LookerPlan::default());
        assert!(LookerPreset::ALL.iter().all(|preset| LookerPlan::parse(preset.text()).is_ok()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, key) in [
            ("heal_after = 9", "heal_after"),
            ("[instance]\ntrash = 2", "instance.trash"),
            ("[rates]\n500 = 0.7\n502 = 0.7", "rates"),
            ("[rates]\n404 = 0.1", "rates.404"),
            ("[rates]\nnull = 0.1", "null"),
            ("[[script]]\ntype = 'looks'", "script"),
            ("[[script]]\npath = '/looks/search'\nids = ['1']", "script"),
            ("[[script]]\ntype = 'looks'\nids = ['1']\nthen = '429'", "script.then"),
            ("[forbidden]\nletters = '403'", "letters"),
            ("[mutations]\ntypes = ['queries']", "mutations.types"),
            ("[[change]]\npath = '/looks'\ndo = 'edit'\ntype = 'looks'", "change"),
            ("[login]\nrefused_status = 200", "login.refused_status"),
        ] {
            let error = LookerPlan::parse(text).unwrap_err().to_string();
            assert!(error.contains(key), "{text}: {error}");
        }
    }
}
