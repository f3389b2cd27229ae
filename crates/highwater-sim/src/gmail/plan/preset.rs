//! The plans that come with the simulator, as the same TOML a user would write.

use std::str::FromStr;

use super::GmailPlan;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GmailPreset {
    /// A perfect API with ordinary mail and no quota.
    None,
    /// Odd mail, and the odd behaviour that is no error.
    Calm,
    /// A bad day: errors, resets, throttling, a mailbox that changes.
    Storm,
    /// Google's quota, and a penalty box.
    Penalty,
    /// Tokens, pages and history end soon.
    Expiry,
    /// Odd mail, some of it out of reach for good.
    Broken,
}

impl GmailPreset {
    pub const ALL: [GmailPreset; 6] = [
        GmailPreset::None,
        GmailPreset::Calm,
        GmailPreset::Storm,
        GmailPreset::Penalty,
        GmailPreset::Expiry,
        GmailPreset::Broken,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            GmailPreset::None => "none",
            GmailPreset::Calm => "calm",
            GmailPreset::Storm => "storm",
            GmailPreset::Penalty => "penalty",
            GmailPreset::Expiry => "expiry",
            GmailPreset::Broken => "broken",
        }
    }

    /// The TOML of the preset.
    pub const fn text(self) -> &'static str {
        match self {
            GmailPreset::None => "",
            GmailPreset::Calm => include_str!("calm.toml"),
            GmailPreset::Storm => include_str!("storm.toml"),
            GmailPreset::Penalty => include_str!("penalty.toml"),
            GmailPreset::Expiry => include_str!("expiry.toml"),
            GmailPreset::Broken => include_str!("broken.toml"),
        }
    }

    pub fn plan(self) -> GmailPlan {
        GmailPlan::parse(self.text()).expect("a test parses every preset")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no preset; the presets are `none`, `calm`, `storm`, `penalty`, `expiry` and `broken`")]
pub struct UnknownGmailPreset(String);

impl FromStr for GmailPreset {
    type Err = UnknownGmailPreset;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = GmailPreset::ALL.into_iter().find(|preset| preset.as_str() == name);
        found.ok_or_else(|| UnknownGmailPreset(name.to_owned()))
    }
}
