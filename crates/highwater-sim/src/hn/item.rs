//! One generated item: drafted from hashes, bent into its state and perhaps an odd shape. A pure function of the tree
//! (seed and last id), the look of all items and the id.

mod times;
mod write;

use bytes::Bytes;

pub(super) use self::times::{EPOCH, Times};

use super::{
    tree::{Kind, Replies, Tree},
    users::{User, Users},
};
use crate::rng::{Purpose, Share};

const TEN_YEARS: i64 = 315_360_000;

pub(super) fn body(tree: Tree, users: Users, look: Look, id: u64) -> Bytes {
    let mut draft = Draft::new(tree, users, look.times, id);
    let hash = tree.seed.hash(Purpose::Odd, id);
    if look.odd.hit(hash) && draft.flags == Flags::Live {
        draft.make_odd(hash.rotate_left(40));
    }
    Bytes::from(draft.to_json(tree))
}

/// What the plan says about all items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) odd: Share,
    pub(super) times: Times,
}

struct Draft {
    id: u64,
    kind: Kind,
    by: Option<User>,
    flags: Flags,
    replies: Option<Replies>,
    lists: Lists,
    numbers: Numbers,
    text: Text,
    title: Title,
    url: Url,
    shape: Shape,
}

struct Numbers {
    descendants: Option<i64>,
    score: Option<i64>,
    time: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flags {
    Live,
    Dead,
    Deleted,
    Both,
    /// `"dead":[]`, `"deleted":[true]`
    Lists,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lists {
    Array,
    Object,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    Absent,
    Empty,
    Words,
    Dead,
    Flagged,
    /// Words after a NUL character.
    Nul,
    /// Words after half of an emoji.
    Surrogate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Title {
    Absent,
    Words,
    Ask,
    Show,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Url {
    Absent,
    Empty,
    Usual,
    Long,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Usual,
    /// Nothing but `id` and `type`.
    Bare,
    /// A field nobody has documented.
    Extra,
    /// The same, with structure.
    NestedExtra,
}

/// The shape a story has by its title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    Link,
    Ask,
    Show,
}

/// About one live story in eight is without a url, and has a text.
pub(super) fn flavour(tree: Tree, id: u64) -> Flavour {
    match tree.seed.hash(Purpose::State, id) >> 60 {
        0 | 1 => Flavour::Ask,
        2 => Flavour::Show,
        _ => Flavour::Link,
    }
}

/// Deaths and deletions as often as in 5,679 real items.
pub(super) fn state(tree: Tree, kind: Kind, id: u64) -> Flags {
    let per_mille = ((tree.seed.hash(Purpose::State, id) & 0xFFFF) * 1_000) >> 16;
    match (kind, per_mille) {
        (Kind::Story, 0..190) | (Kind::Comment, 0..20) => Flags::Dead,
        (Kind::Story, 190..215) | (Kind::Comment, 20..90) => Flags::Deleted,
        (Kind::Story, 215..220) | (Kind::Comment, 90..93) => Flags::Both,
        _ => Flags::Live,
    }
}

impl Draft {
    fn new(tree: Tree, users: Users, times: Times, id: u64) -> Self {
        let kind = tree.kind(id);
        let hash = tree.seed.hash(Purpose::State, id);
        let mut draft = Draft {
            id,
            kind,
            by: Some(users.author(id)),
            flags: state(tree, kind, id),
            replies: matches!(kind, Kind::Story | Kind::Comment | Kind::Poll).then(|| tree.replies(id)),
            lists: Lists::Array,
            numbers: Numbers::new(kind, hash, times.of(id, hash >> 32)),
            text: Text::Absent,
            title: Title::Absent,
            url: Url::Absent,
            shape: Shape::Usual,
        };
        draft.fill(flavour(tree, id));
        draft.apply_state(hash);
        draft
    }

    fn fill(&mut self, flavour: Flavour) {
        if matches!(self.kind, Kind::Story | Kind::Poll) {
            self.numbers.descendants = self.replies.as_ref().map(|replies| replies.descendants as i64);
        }
        (self.title, self.text, self.url) = match (self.kind, flavour) {
            (Kind::Comment | Kind::PollOption, _) => (Title::Absent, Text::Words, Url::Absent),
            (Kind::Poll, _) => (Title::Words, Text::Words, Url::Absent),
            (Kind::Job, _) | (Kind::Story, Flavour::Link) => (Title::Words, Text::Absent, Url::Usual),
            (Kind::Story, Flavour::Ask) => (Title::Ask, Text::Words, Url::Absent),
            (Kind::Story, Flavour::Show) => (Title::Show, Text::Absent, Url::Usual),
        };
    }

    /// A killed story loses its content, a killed comment its words, and a deleted item its author too.
    fn apply_state(&mut self, hash: u64) {
        if self.flags == Flags::Live {
            return;
        }
        self.numbers.descendants = None;
        (self.title, self.url) = (Title::Absent, Url::Absent);
        self.text = match (self.flags, self.kind) {
            (Flags::Dead, Kind::Comment) if hash & 1 << 20 == 0 => Text::Dead,
            (Flags::Dead, Kind::Comment) => Text::Flagged,
            _ => Text::Absent,
        };
        if self.flags != Flags::Dead {
            self.by = None;
            self.numbers.score = None;
        }
    }

    fn make_odd(&mut self, hash: u64) {
        match self.kind {
            Kind::Comment => self.make_odd_comment(hash % 10),
            Kind::PollOption => self.text = Text::Empty,
            _ => self.make_odd_story(hash % 5),
        }
    }

    fn make_odd_comment(&mut self, choice: u64) {
        match choice {
            0 => self.shape = Shape::Bare,
            1 => self.numbers.time = None,
            2 => self.numbers.time = self.numbers.time.map(|time| time + TEN_YEARS),
            3 => self.lists = Lists::Object,
            4 => self.shape = Shape::Extra,
            5 => self.shape = Shape::NestedExtra,
            6 => self.flags = Flags::Lists,
            7 => self.text = Text::Nul,
            8 => self.text = Text::Surrogate,
            _ => self.text = Text::Empty,
        }
    }

    fn make_odd_story(&mut self, choice: u64) {
        match choice {
            0 => self.shape = Shape::Bare,
            1 => self.numbers.descendants = Some(-1),
            2 => self.url = Url::Empty,
            3 => self.text = Text::Empty,
            _ => self.url = Url::Long,
        }
    }
}

impl Numbers {
    fn new(kind: Kind, hash: u64, time: i64) -> Self {
        let score = 1 + ((hash >> 24 & 0xFF).pow(2) >> 8) as i64;
        Numbers { descendants: None, score: (kind != Kind::Comment).then_some(score), time: Some(time) }
    }
}
