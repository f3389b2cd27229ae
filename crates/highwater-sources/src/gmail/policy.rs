//! Which messages are mirrored.

use std::collections::BTreeSet;

highwater_core::word! {
    /// What is left out unless asked for.
    pub enum Kind {
        Spam = "spam",
        Trash = "trash",
        Drafts = "drafts",
        Chats = "chats",
    }
}

impl Kind {
    pub(super) fn label(self) -> &'static str {
        match self {
            Kind::Spam => "SPAM",
            Kind::Trash => "TRASH",
            Kind::Drafts => "DRAFT",
            Kind::Chats => "CHAT",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Policy {
    include: BTreeSet<&'static str>,
}

impl Policy {
    pub fn including(kinds: impl IntoIterator<Item = Kind>) -> Self {
        Policy { include: kinds.into_iter().map(Kind::as_str).collect() }
    }

    /// The kinds that are left out.
    pub(super) fn excluded(&self) -> impl Iterator<Item = Kind> {
        Kind::ALL.iter().copied().filter(|kind| !self.include.contains(kind.as_str()))
    }

    pub(super) fn leaves_out(&self, reason: &str) -> bool {
        self.excluded().any(|kind| kind.as_str() == reason)
    }

    /// Why a message with these labels is left out, if it is.
    pub(super) fn reason<'a>(&self, mut labels: impl Iterator<Item = &'a str>) -> Option<&'static str> {
        labels.find_map(|label| self.excluded().find(|kind| kind.label() == label)).map(Kind::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_four_kinds_is_mirrored_unless_asked_for() {
        let default = Policy::default();
        assert_eq!(default.reason(["INBOX", "UNREAD", "Label_1"].into_iter()), None);
        assert_eq!(default.reason(["UNREAD", "TRASH"].into_iter()), Some("trash"));
        assert_eq!(default.reason(["DRAFT"].into_iter()), Some("drafts"));
        let more = Policy::including([Kind::Trash, Kind::Chats]);
        assert_eq!(more.reason(["TRASH", "CHAT"].into_iter()), None);
        assert_eq!(more.reason(["TRASH", "SPAM"].into_iter()), Some("spam"));
    }
}
