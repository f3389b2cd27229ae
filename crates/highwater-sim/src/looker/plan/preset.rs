//! The plans that come with the simulator, as the same TOML a user would write.

use std::str::FromStr;

use super::LookerPlan;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookerPreset {
    /// A perfect API with no quota, on which nothing changes.
    None,
    /// What is odd about it and no error: shuffled lists, short pages, content that is edited.
    Calm,
    /// A bad day: errors, resets, throttling, tokens that end, an instance that changes.
    Storm,
    /// Everything, including objects, pages and types that cannot be had.
    Chaos,
}

impl LookerPreset {
    pub const ALL: [LookerPreset; 4] =
        [LookerPreset::None, LookerPreset::Calm, LookerPreset::Storm, LookerPreset::Chaos];

    pub const fn as_str(self) -> &'static str {
        match self {
            LookerPreset::None => "none",
            LookerPreset::Calm => "calm",
            LookerPreset::Storm => "storm",
            LookerPreset::Chaos => "chaos",
        }
    }

    /// The TOML of the preset.
    pub const fn text(self) -> &'static str {
        match self {
            LookerPreset::None => "",
            LookerPreset::Calm => include_str!("calm.toml"),
            LookerPreset::Storm => include_str!("storm.toml"),
            LookerPreset::Chaos => include_str!("chaos.toml"),
        }
    }

    pub fn plan(self) -> LookerPlan {
        LookerPlan::parse(self.text()).expect("a test parses every preset")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no preset; the presets are `none`, `calm`, `storm` and `chaos`")]
pub struct UnknownLookerPreset(String);

impl FromStr for LookerPreset {
    type Err = UnknownLookerPreset;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = LookerPreset::ALL.into_iter().find(|preset| preset.as_str() == name);
        found.ok_or_else(|| UnknownLookerPreset(name.to_owned()))
    }
}
