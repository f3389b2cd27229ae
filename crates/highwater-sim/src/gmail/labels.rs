//! Labels as sets: one bit each, and the catalogue that names the bits.

use std::ops::BitOr;

use serde_json::{Value, json};

use crate::rng::{Purpose, Seed, SplitMix64};

/// User labels take the bits behind the system's.
pub(super) const USER_MAX: usize = 40;
const UNLISTED: usize = 4;

const SYSTEM: [&str; 14] = [
    "INBOX",
    "SENT",
    "DRAFT",
    "SPAM",
    "TRASH",
    "UNREAD",
    "STARRED",
    "IMPORTANT",
    "CHAT",
    "CATEGORY_PERSONAL",
    "CATEGORY_SOCIAL",
    "CATEGORY_PROMOTIONS",
    "CATEGORY_UPDATES",
    "CATEGORY_FORUMS",
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Labels(u64);

impl Labels {
    pub(super) const NONE: Labels = Labels(0);
    pub(super) const INBOX: Labels = Labels(1);
    pub(super) const SENT: Labels = Labels(1 << 1);
    pub(super) const DRAFT: Labels = Labels(1 << 2);
    pub(super) const SPAM: Labels = Labels(1 << 3);
    pub(super) const TRASH: Labels = Labels(1 << 4);
    pub(super) const UNREAD: Labels = Labels(1 << 5);
    pub(super) const STARRED: Labels = Labels(1 << 6);
    pub(super) const IMPORTANT: Labels = Labels(1 << 7);
    pub(super) const CHAT: Labels = Labels(1 << 8);

    pub(super) const fn contains(self, other: Labels) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) const fn touches(self, other: Labels) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn without(self, other: Labels) -> Labels {
        Labels(self.0 & !other.0)
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Of a set of one.
    const fn bit(self) -> usize {
        self.0.trailing_zeros() as usize
    }

    /// One of the five categories.
    pub(super) const fn category(nth: u64) -> Labels {
        Labels(1 << (9 + nth % 5))
    }
}

impl BitOr for Labels {
    type Output = Labels;

    fn bitor(self, other: Labels) -> Labels {
        Labels(self.0 | other.0)
    }
}

/// What the bits are called. The last few are known to messages but not to `labels.list`.
#[derive(Debug)]
pub(super) struct Catalogue {
    /// A label that was deleted leaves its place empty: ids are not used again.
    user: Vec<Option<String>>,
}

/// Why a label cannot be made, renamed or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LabelError {
    Unknown,
    Exists,
    Nameless,
    Full,
    System,
}

impl Catalogue {
    pub(super) fn new(seed: Seed, user: usize) -> Self {
        const PLACES: [&str; 10] = [
            "Work",
            "Family",
            "Reisen",
            "Счета",
            "Lists/rust",
            "Work/Projects",
            "領収書",
            "To do",
            "Café",
            "Old stuff",
        ];
        let name = |nth: usize| {
            let mut rng = SplitMix64::new(seed.hash(Purpose::MailLabel, nth as u64 | 1 << 40));
            format!("{} {}", PLACES[rng.below(PLACES.len() as u64) as usize], nth + 1)
        };
        Catalogue { user: (0..user).map(name).map(Some).collect() }
    }

    pub(super) fn user_count(&self) -> u64 {
        self.user.len() as u64
    }

    pub(super) fn user(&self, nth: u64) -> Labels {
        Labels(1 << (SYSTEM.len() as u64 + nth))
    }

    pub(super) fn unlisted(&self, nth: u64) -> Labels {
        Labels(1 << (SYSTEM.len() + USER_MAX + nth as usize % UNLISTED))
    }

    /// The label of an id that `labels.list` knows.
    pub(super) fn by_id(&self, id: &str) -> Option<Labels> {
        self.listed().find(|bit| self.id(*bit) == id).map(|bit| Labels(1 << bit))
    }

    /// The label that a search means: by name, with dashes for spaces if need be, or by id.
    pub(super) fn by_search(&self, text: &str) -> Option<Labels> {
        let plain = |name: &str| name.to_lowercase().replace([' ', '/'], "-");
        let found = self.listed().find(|bit| plain(self.name(*bit)) == plain(text));
        found.map(|bit| Labels(1 << bit)).or_else(|| self.by_id(text))
    }

    pub(super) fn ids(&self, labels: Labels) -> Vec<String> {
        (0..u64::BITS as usize).filter(|bit| labels.0 >> bit & 1 == 1).map(|bit| self.id(bit)).collect()
    }

    /// Every label that is listed, as `labels.list` shows it.
    pub(super) fn list(&self) -> Vec<Value> {
        self.listed().map(|bit| self.describe(bit)).collect()
    }

    pub(super) fn one(&self, label: Labels) -> Value {
        self.describe(label.bit())
    }

    pub(super) fn create(&mut self, name: &str) -> Result<Labels, LabelError> {
        self.check(name)?;
        if self.user.len() >= USER_MAX {
            return Err(LabelError::Full);
        }
        self.user.push(Some(name.to_owned()));
        Ok(self.user(self.user_count() - 1))
    }

    pub(super) fn rename(&mut self, id: &str, name: &str) -> Result<Labels, LabelError> {
        let label = self.own(id)?;
        if self.name(label.bit()) != name {
            self.check(name)?;
        }
        self.user[label.bit() - SYSTEM.len()] = Some(name.to_owned());
        Ok(label)
    }

    pub(super) fn delete(&mut self, id: &str) -> Result<Labels, LabelError> {
        let label = self.own(id)?;
        self.user[label.bit() - SYSTEM.len()] = None;
        Ok(label)
    }

    /// A label that its user may change.
    fn own(&self, id: &str) -> Result<Labels, LabelError> {
        let label = self.by_id(id).ok_or(LabelError::Unknown)?;
        if label.bit() < SYSTEM.len() { Err(LabelError::System) } else { Ok(label) }
    }

    fn check(&self, name: &str) -> Result<(), LabelError> {
        if name.trim().is_empty() {
            return Err(LabelError::Nameless);
        }
        let taken = self.listed().any(|bit| self.name(bit).eq_ignore_ascii_case(name));
        if taken { Err(LabelError::Exists) } else { Ok(()) }
    }

    fn listed(&self) -> impl Iterator<Item = usize> + use<'_> {
        let own = (0..self.user.len()).filter(|nth| self.user[*nth].is_some());
        (0..SYSTEM.len()).chain(own.map(|nth| SYSTEM.len() + nth))
    }

    fn describe(&self, bit: usize) -> Value {
        let kind = if bit < SYSTEM.len() { "system" } else { "user" };
        json!({
            "id": self.id(bit), "name": self.name(bit), "type": kind,
            "messageListVisibility": "show", "labelListVisibility": "labelShow",
        })
    }

    fn id(&self, bit: usize) -> String {
        match (SYSTEM.get(bit), bit.checked_sub(SYSTEM.len() + USER_MAX)) {
            (Some(name), _) => (*name).to_owned(),
            (None, Some(unlisted)) => format!("Label_{}", 9_000 + unlisted),
            (None, None) => format!("Label_{}", bit - SYSTEM.len() + 1),
        }
    }

    fn name(&self, bit: usize) -> &str {
        let own = || self.user.get(bit - SYSTEM.len()).and_then(Option::as_deref);
        SYSTEM.get(bit).copied().or_else(own).unwrap_or("")
    }
}
