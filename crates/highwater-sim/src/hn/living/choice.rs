//! Which change strikes a body next: by what is asked for, or else by a hash among those that make a difference.

use std::{fmt, str::FromStr};

use super::{Change, Living};
use crate::rng::{SplitMix64, mix};

/// A change to an item, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutationKind {
    Score,
    /// Of the text, or else of the title.
    Text,
    Dead,
    Delete,
    Kids,
    /// Neither dead nor deleted any more.
    Revive,
}

impl MutationKind {
    pub const ALL: [MutationKind; 6] = [
        MutationKind::Score,
        MutationKind::Text,
        MutationKind::Kids,
        MutationKind::Dead,
        MutationKind::Revive,
        MutationKind::Delete,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            MutationKind::Score => "score",
            MutationKind::Text => "text",
            MutationKind::Dead => "dead",
            MutationKind::Delete => "delete",
            MutationKind::Kids => "kids",
            MutationKind::Revive => "revive",
        }
    }
}

impl fmt::Display for MutationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of mutation `{0}`, expected `score`, `text`, `dead`, `delete`, `kids` or `revive`")]
pub struct UnknownMutation(String);

impl FromStr for MutationKind {
    type Err = UnknownMutation;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = MutationKind::ALL.into_iter().find(|kind| kind.as_str() == name);
        named.ok_or_else(|| UnknownMutation(name.to_owned()))
    }
}

/// Everything a choice depends on, besides the body.
pub(in crate::hn) struct Wish {
    pub(in crate::hn) kind: Option<MutationKind>,
    pub(in crate::hn) number: u64,
    pub(in crate::hn) hash: u64,
    /// Comments that may become kids of this item.
    pub(in crate::hn) kids: Vec<u64>,
}

impl Living {
    /// Always a change that makes a difference; `None` if there is none of the kind asked for.
    pub(in crate::hn) fn choose(&self, wish: &Wish) -> Option<Change> {
        match wish.kind {
            Some(kind) => self.possible(kind, wish),
            None => self
                .possible(self.likely(wish.hash), wish)
                .or_else(|| MutationKind::ALL.into_iter().find_map(|kind| self.possible(kind, wish))),
        }
    }

    /// Mostly votes and replies; a death now and then.
    fn likely(&self, hash: u64) -> MutationKind {
        let percent = SplitMix64::new(hash).below(100);
        let dead = self.is_flagged("dead") || self.is_flagged("deleted");
        match (dead, self.fields.contains_key("score"), percent) {
            (true, _, 0..50) => MutationKind::Revive,
            (true, _, 50..80) | (false, true, 0..50) => MutationKind::Score,
            (true, _, _) | (false, _, 95..) => MutationKind::Delete,
            (false, true, 50..70) | (false, false, 0..35) => MutationKind::Kids,
            (false, _, 0..85) => MutationKind::Text,
            (false, _, _) => MutationKind::Dead,
        }
    }

    fn possible(&self, kind: MutationKind, wish: &Wish) -> Option<Change> {
        let (dead, deleted) = (self.is_flagged("dead"), self.is_flagged("deleted"));
        let detail = mix(wish.hash);
        match kind {
            MutationKind::Score => {
                let has = !deleted && self.fields.get("score").is_some_and(|raw| raw.get().parse::<i64>().is_ok());
                has.then_some(Change::Score { by: 1 + (detail % 9) as i64 })
            }
            MutationKind::Text => {
                let has = self.fields.contains_key("text") || self.fields.contains_key("title");
                (has && !dead && !deleted).then_some(Change::Edit { number: wish.number })
            }
            MutationKind::Kids => self.new_kid(wish).map(|id| Change::Kid { id, rank: detail >> 32 }),
            MutationKind::Dead if dead || deleted => None,
            MutationKind::Dead => Some(if detail & 1 == 0 { Change::Dead } else { Change::Flagged }),
            MutationKind::Delete => (!deleted).then_some(Change::Deleted),
            MutationKind::Revive => (dead || deleted).then_some(Change::Revived),
        }
    }

    fn new_kid(&self, wish: &Wish) -> Option<u64> {
        let takes_replies = ["story", "comment", "poll"].iter().any(|kind| self.is_a(kind));
        let kids = self.kids();
        wish.kids.iter().copied().find(|id| takes_replies && !kids.contains(id))
    }
}

pub(in crate::hn) const fn choose_for_profile(number: u64, hash: u64) -> Change {
    if hash & 3 == 0 { Change::About { number } } else { Change::Karma { by: 1 + (hash >> 8 & 15) as i64 } }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, time::Duration};

    use bytes::Bytes;

    use super::*;
    use crate::hn::life::Publicity;

    #[test]
    fn every_mutation_makes_a_difference_and_all_kinds_come() {
        let bases: [&[u8]; 4] = [
            br#"{"by":"a","id":1,"score":3,"title":"T","type":"story"}"#,
            br#"{"by":"a","id":2,"parent":1,"text":"","type":"comment"}"#,
            br#"{"id":3,"type":"story"}"#,
            br#"{"dead":[],"deleted":[true],"id":4,"text":"x","type":"comment"}"#,
        ];
        let mut seen = HashSet::new();
        for base in bases {
            let mut living = Living::new(&Bytes::from_static(base)).unwrap();
            for number in 0..200 {
                let wish = Wish { kind: None, number, hash: mix(number + 1), kids: vec![number + 10] };
                let (change, before) = (living.choose(&wish).unwrap(), living.body());
                living.change(change, Duration::ZERO, Publicity::Published);
                assert_ne!(living.body(), before, "{change:?}");
                seen.insert(std::mem::discriminant(&change));
            }
        }
        assert_eq!(seen.len(), 7, "score, kid, edit, dead, flagged, deleted, revived");
    }

    #[test]
    fn a_kind_that_cannot_be_is_refused() {
        let living = Living::new(&Bytes::from_static(br#"{"id":2,"type":"comment"}"#)).unwrap();
        let wish = |kind| Wish { kind: Some(kind), number: 1, hash: 1, kids: Vec::new() };
        for kind in [MutationKind::Score, MutationKind::Text, MutationKind::Kids, MutationKind::Revive] {
            assert_eq!(living.choose(&wish(kind)), None, "{kind}");
        }
        assert_eq!(living.choose(&wish(MutationKind::Delete)), Some(Change::Deleted));
    }
}
