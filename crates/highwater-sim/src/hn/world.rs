//! The items and users a simulator serves: generated from a seed, or loaded from a file of real ones. Bodies only;
//! faults and time are not known here.

use std::{ops::RangeInclusive, path::Path};

use bytes::Bytes;

use super::{
    item::{self, Flags, Flavour, Look, Times},
    loaded::{LoadError, Loaded},
    tree::{Kind, Tree},
    users::{self, Users},
};
use crate::rng::{Purpose, Seed, Share, scale};

#[derive(Debug)]
pub struct World {
    seed: Seed,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Generated { tree: Tree, users: Users, look: Look },
    Loaded(Loaded),
}

impl World {
    /// Items 1 to `items`, each a function of the seed and its id; no table is kept.
    pub fn generated(seed: Seed, items: u64) -> Self {
        let tree = Tree { seed, last: items };
        let look = Look { odd: Share::NONE, times: Times::SinceEpoch };
        World { seed, source: Source::Generated { tree, users: Users::new(seed, items), look } }
    }

    /// Items from a file of JSON lines, plain or gzip, one body a line, ids ascending without a gap. The lines are
    /// served byte for byte.
    pub fn from_jsonl(seed: Seed, path: &Path) -> Result<Self, LoadError> {
        Ok(World { seed, source: Source::Loaded(Loaded::open(path)?) })
    }

    pub const fn seed(&self) -> Seed {
        self.seed
    }

    pub fn ids(&self) -> RangeInclusive<u64> {
        match &self.source {
            Source::Generated { tree, .. } => 1..=tree.last,
            Source::Loaded(loaded) => loaded.ids(),
        }
    }

    /// The body of an item, or `None` outside the world.
    pub fn item(&self, id: u64) -> Option<Bytes> {
        match &self.source {
            Source::Generated { tree, users, look } => {
                (1..=tree.last).contains(&id).then(|| item::body(*tree, *users, *look, id))
            }
            Source::Loaded(loaded) => loaded.item(id),
        }
    }

    pub fn user(&self, name: &str) -> Option<Bytes> {
        match &self.source {
            Source::Generated { users, .. } => users.find(name).map(|user| users.body(user).into()),
            Source::Loaded(loaded) => {
                loaded.submitted(name).map(|ids| users::body(self.seed, name, ids.iter().rev().copied()).into())
            }
        }
    }

    /// Odd shapes and times are a matter of the plan; a loaded world has those it has.
    pub(super) fn with_look(mut self, planned: Look) -> Self {
        if let Source::Generated { look, .. } = &mut self.source {
            *look = planned;
        }
        self
    }

    pub(super) fn is_comment(&self, id: u64) -> bool {
        match &self.source {
            Source::Generated { tree, .. } => (1..=tree.last).contains(&id) && tree.kind(id) == Kind::Comment,
            Source::Loaded(loaded) => loaded.is_comment(id),
        }
    }

    /// What the lists of stories need to know of a live item; `None` for dead, deleted and missing ones.
    pub(super) fn listing(&self, id: u64) -> Option<Listing> {
        match &self.source {
            Source::Generated { tree, .. } => {
                let kind = tree.kind(id);
                (item::state(*tree, kind, id) == Flags::Live)
                    .then(|| Listing { kind, flavour: item::flavour(*tree, id) })
            }
            Source::Loaded(loaded) => loaded.listing(id),
        }
    }

    pub(super) fn author(&self, id: u64) -> Option<String> {
        match &self.source {
            Source::Generated { users, .. } => String::from_utf8(users.author(id).name().to_vec()).ok(),
            Source::Loaded(loaded) => loaded.author(id).map(str::to_owned),
        }
    }

    /// An id below `bound` steps from the newest, by draw.
    pub(super) fn recent(&self, max: u64, bound: u64, draw: u64) -> u64 {
        max.saturating_sub(scale(self.seed.hash(Purpose::List, draw), bound)).max(*self.ids().start())
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Listing {
    pub(super) kind: Kind,
    pub(super) flavour: Flavour,
}
