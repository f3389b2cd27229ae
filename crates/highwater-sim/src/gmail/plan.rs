//! The fault plan of the simulated Gmail: the keys, their defaults and their checks. `GmailPlan::sample` explains each.

mod parts;
mod preset;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use self::{
    parts::{
        AfterBound, ClientPlan, Consent, CostTable, GmailBody, GmailMutations, GmailQuota, GmailScript, HistoryPlan,
        ListPlan, MailboxPlan, PenaltyPlan, SearchDate, SearchPlan, SharesPlan, SizePlan, Throttle, TokenPlan,
        TokenStyle,
    },
    preset::{GmailPreset, UnknownGmailPreset},
};
use super::{fault::GmailFault, labels, oauth};
use crate::plan::{HEAL_AFTER_MAX, LatencyPlan, PlanError, ensure, of_toml, probability, read};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GmailPlan {
    pub heal_after: u8,
    pub mailbox: MailboxPlan,
    pub shares: SharesPlan,
    pub size: SizePlan,
    pub body: GmailBody,
    pub latency: LatencyPlan,
    pub quota: GmailQuota,
    pub penalty: PenaltyPlan,
    pub list: ListPlan,
    pub search: SearchPlan,
    pub history: HistoryPlan,
    pub client: ClientPlan,
    pub token: TokenPlan,
    pub mutations: GmailMutations,
    pub rates: BTreeMap<GmailFault, f64>,
    #[serde(rename = "script")]
    pub scripts: Vec<GmailScript>,
}

impl Default for GmailPlan {
    fn default() -> Self {
        GmailPlan {
            heal_after: 4,
            mailbox: MailboxPlan::default(),
            shares: SharesPlan::default(),
            size: SizePlan::default(),
            body: GmailBody::default(),
            latency: LatencyPlan::default(),
            quota: GmailQuota::default(),
            penalty: PenaltyPlan::default(),
            list: ListPlan::default(),
            search: SearchPlan::default(),
            history: HistoryPlan::default(),
            client: ClientPlan::default(),
            token: TokenPlan::default(),
            mutations: GmailMutations::default(),
            rates: BTreeMap::new(),
            scripts: Vec::new(),
        }
    }
}

impl GmailPlan {
    /// The plan behind a command line argument: the name of a preset, or else a file.
    pub fn load(preset_or_path: &str) -> Result<Self, PlanError> {
        match preset_or_path.parse::<GmailPreset>() {
            Ok(preset) => Ok(preset.plan()),
            Err(unknown) => GmailPlan::parse(&read(preset_or_path, &unknown)?),
        }
    }

    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let plan: GmailPlan = of_toml(text)?;
        plan.check()?;
        Ok(plan)
    }

    /// A commented plan with every key, to start from.
    pub const fn sample() -> &'static str {
        include_str!("plan/sample.toml")
    }

    fn check(&self) -> Result<(), PlanError> {
        ensure((1..=HEAL_AFTER_MAX).contains(&self.heal_after), "heal_after", "must be between 1 and 5")?;
        let labels = usize::from(self.mailbox.user_labels);
        ensure(labels <= labels::USER_MAX, "mailbox.user_labels", "must be at most 40")?;
        ensure(self.mailbox.years > 0, "mailbox.years", "must be at least 1")?;
        self.shares.check()?;
        for (key, share) in [
            ("size.large", self.size.large),
            ("list.inversions", self.list.inversions),
            ("history.bare", self.history.bare),
            ("history.swapped", self.history.swapped),
            ("size.attachments", self.size.attachments),
            ("token.failures", self.token.failures),
        ] {
            probability(key, share)?;
        }
        let readable = self.client.public_key.as_deref().is_none_or(|key| oauth::public_key(key).is_some());
        ensure(readable, "client.public_key", "must be a public key in PEM")?;
        ensure(!self.quota.shapes.is_empty(), "quota.shapes", "must name at least one")?;
        ensure([403, 429].contains(&self.penalty.status), "penalty.status", "must be 403 or 429")?;
        self.check_faults()
    }

    fn check_faults(&self) -> Result<(), PlanError> {
        for (fault, rate) in &self.rates {
            probability(&format!("rates.{fault}"), *rate)?;
        }
        ensure(self.rates.values().sum::<f64>() <= 1.0, "rates", "must not add up to more than 1")?;
        self.scripts.iter().try_for_each(GmailScript::check)?;
        let shares: f64 = self.scripts.iter().filter_map(|script| script.share).sum();
        ensure(shares <= 1.0, "script.share", "must not add up to more than 1")
    }
}

impl SharesPlan {
    fn check(&self) -> Result<(), PlanError> {
        let natures = [self.sent, self.drafts, self.spam, self.trash, self.chats];
        for (key, share) in ["sent", "drafts", "spam", "trash", "chats"].into_iter().zip(natures) {
            probability(&format!("shares.{key}"), share)?;
        }
        probability("shares.odd", self.odd)?;
        probability("shares.unlisted_label", self.unlisted_label)?;
        ensure(natures.iter().sum::<f64>() <= 1.0, "shares", "must leave room: the natures add up to more than 1")
    }
}

impl GmailScript {
    fn check(&self) -> Result<(), PlanError> {
        let named = [!self.ids.is_empty(), self.share.is_some()].into_iter().filter(|named| *named).count();
        ensure(named == 1, "script", "must have exactly one of `ids` and `share`")?;
        probability("script.share", self.share.unwrap_or(0.0))?;
        let hex = self.ids.iter().all(|id| u64::from_str_radix(id, 16).is_ok());
        ensure(hex, "script.ids", "must be message ids: up to 16 hex digits")?;
        let lasts = self.then.0.is_none_or(GmailFault::may_last);
        ensure(lasts, "script.then", "must be `normal` or a fault of one message that can last")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_and_every_preset_parse() {
        GmailPlan::parse(GmailPlan::sample()).unwrap();
        assert_eq!(GmailPreset::None.plan(), GmailPlan::default());
        assert!(GmailPreset::ALL.iter().all(|preset| GmailPlan::parse(preset.text()).is_ok()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, key) in [
            ("heal_after = 9", "heal_after"),
            ("[shares]\nspam = 2", "shares.spam"),
            ("[mailbox]\nuser_labels = 99", "mailbox.user_labels"),
            ("[rates]\n500 = 0.7\n502 = 0.7", "rates"),
            ("[rates]\nnull = 0.1", "null"),
            ("[[script]]\nids = ['xyz']", "script.ids"),
            ("[[script]]\nshare = 0.1\nthen = '429'", "script.then"),
            ("[quota]\nper_second = 3", "per_second"),
        ] {
            let error = GmailPlan::parse(text).unwrap_err().to_string();
            assert!(error.contains(key), "{text}: {error}");
        }
    }
}
