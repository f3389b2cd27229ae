//! A draft as JSON, keys in alphabetical order as the real API has them.

use super::{Draft, Flags, Lists, Shape, Text, Title, Url};
use crate::{
    hn::{
        json::Json,
        tree::{Kind, Tree},
        words,
    },
    rng::{Purpose, SplitMix64},
};

impl Draft {
    pub(super) fn to_json(&self, tree: Tree) -> Vec<u8> {
        if self.shape == Shape::Bare {
            return self.bare();
        }
        let mut rng = SplitMix64::new(tree.seed.hash(Purpose::Words, self.id));
        // Most bodies fit; the rest grow once or twice.
        let mut json = Json::with_capacity(768);
        self.write_first_half(&mut json, tree);
        if let Some(score) = self.numbers.score {
            json.number("score", score);
        }
        self.text.write(&mut json, &mut rng);
        if let Some(time) = self.numbers.time {
            json.number("time", time);
        }
        self.title.write(&mut json, &mut rng);
        json.text("type", self.kind.as_str().as_bytes());
        self.url.write(&mut json, &mut rng);
        if self.shape == Shape::Extra {
            json.number("zz_rank", 17);
        }
        json.finish()
    }

    fn write_first_half(&self, json: &mut Json, tree: Tree) {
        if self.shape == Shape::NestedExtra {
            json.raw("annotations", br#"{"labels":["a",{"b":null}],"weight":0.5}"#);
        }
        if let Some(by) = self.by {
            json.text("by", &by.name());
        }
        self.flags.write(json);
        if let Some(descendants) = self.numbers.descendants {
            json.number("descendants", descendants);
        }
        json.number("id", self.id as i64);
        if let Some(replies) = self.replies.as_ref().filter(|replies| !replies.is_empty()) {
            self.lists.write(json, "kids", replies.kids());
        }
        self.write_relations(json, tree);
    }

    fn write_relations(&self, json: &mut Json, tree: Tree) {
        match self.kind {
            Kind::Comment => {
                if let Some(parent) = tree.parent(self.id) {
                    json.number("parent", parent as i64);
                }
            }
            Kind::Poll => self.lists.write(json, "parts", tree.parts(self.id)),
            Kind::PollOption => json.number("poll", Tree::poll(self.id) as i64),
            Kind::Story | Kind::Job => {}
        }
    }

    fn bare(&self) -> Vec<u8> {
        let mut json = Json::with_capacity(48);
        json.number("id", self.id as i64);
        json.text("type", self.kind.as_str().as_bytes());
        json.finish()
    }
}

impl Flags {
    fn write(self, json: &mut Json) {
        let (dead, deleted): (&[u8], &[u8]) = match self {
            Flags::Live => return,
            Flags::Dead => (b"true", b""),
            Flags::Deleted => (b"", b"true"),
            Flags::Both => (b"true", b"true"),
            Flags::Lists => (b"[]", b"[true]"),
        };
        for (key, value) in [("dead", dead), ("deleted", deleted)] {
            if !value.is_empty() {
                json.raw(key, value);
            }
        }
    }
}

impl Lists {
    fn write(self, json: &mut Json, key: &str, ids: impl Iterator<Item = u64>) {
        match self {
            Lists::Array => json.list(key, ids),
            Lists::Object => json.list_as_object(key, ids),
        }
    }
}

impl Text {
    fn write(self, json: &mut Json, rng: &mut SplitMix64) {
        let start: &[u8] = match self {
            Text::Absent => return,
            Text::Empty => return json.text("text", b""),
            Text::Dead => return json.text("text", b"[dead]"),
            Text::Flagged => return json.text("text", b"[flagged]"),
            Text::Words => b"",
            Text::Nul => br"before\u0000after ",
            Text::Surrogate => br"half \ud83d ",
        };
        json.text_with("text", |out| {
            out.extend_from_slice(start);
            words::text(out, rng);
        });
    }
}

impl Title {
    fn write(self, json: &mut Json, rng: &mut SplitMix64) {
        let start: &[u8] = match self {
            Title::Absent => return,
            Title::Words => b"",
            Title::Ask => b"Ask HN: ",
            Title::Show => b"Show HN: ",
        };
        json.text_with("title", |out| {
            out.extend_from_slice(start);
            words::title(out, rng);
        });
    }
}

impl Url {
    fn write(self, json: &mut Json, rng: &mut SplitMix64) {
        match self {
            Url::Absent => {}
            Url::Empty => json.text("url", b""),
            Url::Usual => json.text_with("url", |out| words::url(out, rng)),
            Url::Long => json.text_with("url", |out| words::long_url(out, rng)),
        }
    }
}
