//! The plans that come with the simulator, as the same TOML a user would write.

use std::{fmt, str::FromStr};

use super::FaultPlan;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// A perfect API with ordinary items.
    None,
    /// Odd items and a few nulls, but no errors.
    Calm,
    /// A bad day: errors, resets, broken bodies, a quota.
    Storm,
    /// Everything, including hangs and ids that never answer.
    Chaos,
}

impl Preset {
    pub const ALL: [Preset; 4] = [Preset::None, Preset::Calm, Preset::Storm, Preset::Chaos];

    pub const fn as_str(self) -> &'static str {
        match self {
            Preset::None => "none",
            Preset::Calm => "calm",
            Preset::Storm => "storm",
            Preset::Chaos => "chaos",
        }
    }

    /// The TOML of the preset.
    pub const fn text(self) -> &'static str {
        match self {
            Preset::None => "",
            Preset::Calm => include_str!("calm.toml"),
            Preset::Storm => include_str!("storm.toml"),
            Preset::Chaos => include_str!("chaos.toml"),
        }
    }

    pub fn plan(self) -> FaultPlan {
        FaultPlan::parse(self.text()).expect("a test parses every preset")
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no preset; the presets are `none`, `calm`, `storm` and `chaos`")]
pub struct UnknownPreset(String);

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Preset::ALL.into_iter().find(|preset| preset.as_str() == name).ok_or_else(|| UnknownPreset(name.to_owned()))
    }
}
