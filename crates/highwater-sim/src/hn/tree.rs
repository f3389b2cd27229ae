//! Who replies to whom in the generated world. Ids come in blocks; all replies stay within their block, so that
//! parent, kids and the number of descendants agree with each other and cost one pass over at most 64 hashes.

use crate::rng::{Purpose, Seed, scale};

/// Large enough for threads as long as an ordinary day has (31 kids at most in 5,679 real items).
pub(super) const BLOCK: u64 = 64;

/// One block in 16 opens with a poll: far more than the real one item in 20,000, so that small worlds have some.
const POLL_BLOCKS: u64 = 16;
const POLL_OPTIONS: u64 = 3;
/// One item in 512 is a job (in reality one in 2,600), for the same reason.
const JOBS: u64 = 512;
/// One in 9, plus the first of every block: 12.5 %, as in the real corpus.
const STORIES: u64 = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Story,
    Comment,
    Job,
    Poll,
    PollOption,
}

impl Kind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Story => "story",
            Kind::Comment => "comment",
            Kind::Job => "job",
            Kind::Poll => "poll",
            Kind::PollOption => "pollopt",
        }
    }

    const fn takes_replies(self) -> bool {
        !matches!(self, Kind::Job | Kind::PollOption)
    }
}

/// The generated ids from 1 to `last`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    pub(super) seed: Seed,
    pub(super) last: u64,
}

impl Tree {
    pub(super) const fn kind(self, id: u64) -> Kind {
        let (block, place) = locate(id);
        self.node(block, place).kind
    }

    /// The item a comment replies to.
    pub(super) const fn parent(self, id: u64) -> Option<u64> {
        let (block, place) = locate(id);
        match self.node(block, place).wish {
            Some(wish) => Some(first_of(block) + self.parent_place(block, wish)),
            None => None,
        }
    }

    /// The poll of a poll option.
    pub(super) const fn poll(id: u64) -> u64 {
        first_of(locate(id).0)
    }

    /// The options of a poll.
    pub(super) fn parts(self, poll: u64) -> impl Iterator<Item = u64> {
        (poll + 1..=poll + POLL_OPTIONS).take_while(move |id| *id <= self.last)
    }

    /// Whoever is in a thread takes replies, so that a wish for one of them is granted without another look.
    pub(super) fn replies(self, id: u64) -> Replies {
        let (block, place) = locate(id);
        let mut replies = Replies { block, kids: [0; BLOCK as usize], kids_len: 0, descendants: 0 };
        if !self.node(block, place).kind.takes_replies() {
            return replies;
        }
        // A bit for each place.
        let mut thread = 1u64 << place;
        let end = BLOCK.min(self.last + 1 - first_of(block));
        for later in place + 1..end {
            let Some(wish) = self.node(block, later).wish else { continue };
            let parent = if thread >> wish & 1 == 1 {
                wish
            } else if place == 0 && self.parent_place(block, wish) == 0 {
                0
            } else {
                continue;
            };
            thread |= 1 << later;
            if parent == place {
                replies.push(later as u8);
            }
        }
        replies.descendants = u64::from(thread.count_ones()) - 1;
        replies.shuffle(self.seed);
        replies
    }

    const fn node(self, block: u64, place: u64) -> Node {
        if place <= POLL_OPTIONS && self.is_poll_block(block) {
            let kind = if place == 0 { Kind::Poll } else { Kind::PollOption };
            return Node { kind, wish: None };
        }
        let hash = self.seed.hash(Purpose::Kind, first_of(block) + place);
        let kind = kind_of(hash, place);
        let wish = if matches!(kind, Kind::Comment) { Some(wish_of(hash, place)) } else { None };
        Node { kind, wish }
    }

    /// Who wishes to reply where nobody may replies to the first of the block.
    const fn parent_place(self, block: u64, wish: u64) -> u64 {
        if self.node(block, wish).kind.takes_replies() { wish } else { 0 }
    }

    const fn is_poll_block(self, block: u64) -> bool {
        scale(self.seed.hash(Purpose::Poll, block), POLL_BLOCKS) == 0
    }
}

struct Node {
    kind: Kind,
    /// The place a comment would reply to.
    wish: Option<u64>,
}

/// The lower of two draws: early items collect more replies.
const fn wish_of(hash: u64, place: u64) -> u64 {
    let (one, two) = ((((hash >> 32) & 0xFFFF) * place) >> 16, ((hash >> 48) * place) >> 16);
    if one < two { one } else { two }
}

/// Of an item that is no poll and no poll option.
const fn kind_of(hash: u64, place: u64) -> Kind {
    if place == 0 {
        Kind::Story
    } else if hash & (JOBS - 1) == 0 {
        Kind::Job
    } else if (((hash >> 9) & 0xFFFF) * STORIES) >> 16 == 0 {
        Kind::Story
    } else {
        Kind::Comment
    }
}

const fn locate(id: u64) -> (u64, u64) {
    ((id - 1) / BLOCK, (id - 1) % BLOCK)
}

const fn first_of(block: u64) -> u64 {
    block * BLOCK + 1
}

/// The replies to one item.
pub(super) struct Replies {
    block: u64,
    kids: [u8; BLOCK as usize],
    kids_len: usize,
    pub(super) descendants: u64,
}

impl Replies {
    pub(super) fn kids(&self) -> impl Iterator<Item = u64> {
        self.kids[..self.kids_len].iter().map(|place| first_of(self.block) + u64::from(*place))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.kids_len == 0
    }

    fn push(&mut self, place: u8) {
        self.kids[self.kids_len] = place;
        self.kids_len += 1;
    }

    /// Kids are listed by rank, not by id.
    fn shuffle(&mut self, seed: Seed) {
        let first = first_of(self.block);
        if self.kids_len > 1 {
            self.kids[..self.kids_len]
                .sort_unstable_by_key(|place| seed.hash(Purpose::List, first + u64::from(*place)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const TREE: Tree = Tree { seed: Seed(3), last: 20_011 };

    #[test]
    fn kids_and_parents_agree() {
        let mut kids_seen = 0;
        for id in 1..=TREE.last {
            for kid in TREE.replies(id).kids() {
                assert_eq!(TREE.parent(kid), Some(id));
                assert!(kid > id && kid <= TREE.last && TREE.kind(id).takes_replies());
                kids_seen += 1;
            }
        }
        let comments = (1..=TREE.last).filter(|id| TREE.kind(*id) == Kind::Comment).count();
        assert_eq!(kids_seen, comments);
    }

    #[test]
    fn descendants_count_the_whole_thread() {
        let mut counted: HashMap<u64, u64> = HashMap::new();
        for id in 1..=TREE.last {
            let mut above = TREE.parent(id);
            while let Some(parent) = above {
                *counted.entry(parent).or_default() += 1;
                above = TREE.parent(parent);
            }
        }
        for id in 1..=TREE.last {
            assert_eq!(TREE.replies(id).descendants, counted.get(&id).copied().unwrap_or(0), "{id}");
        }
    }

    #[test]
    fn polls_have_their_options() {
        let polls: Vec<u64> = (1..=TREE.last).filter(|id| TREE.kind(*id) == Kind::Poll).collect();
        assert!(!polls.is_empty());
        for poll in polls {
            assert!(TREE.parts(poll).all(|id| TREE.kind(id) == Kind::PollOption && Tree::poll(id) == poll));
        }
    }
}
