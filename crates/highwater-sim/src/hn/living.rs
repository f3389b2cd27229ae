//! A body that changes: the body the world gives, with its changes applied in order. Fields stay raw JSON, because a
//! text need not be valid Unicode.

mod choice;

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use serde_json::value::RawValue;

pub use self::choice::{MutationKind, UnknownMutation};
pub(super) use self::choice::{Wish, choose_for_profile};
use super::life::{Publicity, Version};

/// What death and deletion take from a body, and revival gives back.
const CONTENT: [&str; 4] = ["descendants", "text", "title", "url"];

type Fields = BTreeMap<String, Box<RawValue>>;

/// One change, complete in itself: applying it draws nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Score { by: i64 },
    Kid { id: u64, rank: u64 },
    Edit { number: u64 },
    Dead,
    Flagged,
    Deleted,
    Revived,
    Karma { by: i64 },
    About { number: u64 },
}

#[derive(Clone, Copy, Debug)]
struct Changed {
    at: Duration,
    change: Change,
    publicity: Publicity,
}

#[derive(Debug)]
pub(super) struct Living {
    fields: Fields,
    /// What it had before it died.
    withheld: Fields,
    body: Bytes,
    changes: Vec<Changed>,
}

impl Living {
    /// `None` for what is no JSON object.
    pub(super) fn new(base: &Bytes) -> Option<Self> {
        let fields = serde_json::from_slice(base).ok()?;
        Some(Living { fields, withheld: Fields::new(), body: base.clone(), changes: Vec::new() })
    }

    pub(super) fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// The body at `time`, worked out anew from the first one.
    pub(super) fn body_at(&self, base: &Bytes, time: Duration) -> Option<Bytes> {
        let mut replayed = Living::new(base)?;
        for Changed { at, change, publicity } in self.changes.iter().take_while(|changed| changed.at <= time) {
            replayed.change(*change, *at, *publicity);
        }
        Some(replayed.body)
    }

    /// Every body it had after the first one, in order.
    pub(super) fn versions(&self, base: &Bytes) -> Vec<Version> {
        let Some(mut replayed) = Living::new(base) else { return Vec::new() };
        let replay = |Changed { at, change, publicity }: &Changed| {
            replayed.change(*change, *at, *publicity);
            Version { at: *at, publicity: *publicity, body: replayed.body() }
        };
        self.changes.iter().map(replay).collect()
    }

    pub(super) fn change(&mut self, change: Change, at: Duration, publicity: Publicity) {
        self.apply(change);
        self.changes.push(Changed { at, change, publicity });
        self.body = serde_json::to_vec(&self.fields).expect("raw JSON is written as it is").into();
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Score { by } => self.add("score", by),
            Change::Kid { id, rank } => self.add_kid(id, rank),
            Change::Edit { number } => self.edit(number),
            Change::Dead => self.kill("\"[dead]\""),
            Change::Flagged => self.kill("\"[flagged]\""),
            Change::Deleted => self.delete(),
            Change::Revived => self.revive(),
            Change::Karma { by } => self.add("karma", by),
            Change::About { number } => self.set("about", format!("\"Rewritten, number {number}.\"")),
        }
    }

    fn add(&mut self, key: &str, by: i64) {
        for fields in [&mut self.fields, &mut self.withheld] {
            if let Some(value) = fields.get(key).and_then(|raw| raw.get().parse::<i64>().ok()) {
                fields.insert(key.to_owned(), raw((value + by).to_string()));
            }
        }
    }

    fn add_kid(&mut self, id: u64, rank: u64) {
        let mut kids = self.kids();
        kids.insert((rank as usize) % (kids.len() + 1), id);
        self.set("kids", serde_json::json!(kids).to_string());
        self.add("descendants", 1);
    }

    /// Lists with holes come as objects; a list that is written anew has none.
    fn kids(&self) -> Vec<u64> {
        let Some(raw) = self.fields.get("kids") else { return Vec::new() };
        let as_object =
            || serde_json::from_str::<BTreeMap<u64, u64>>(raw.get()).map(|kids| kids.into_values().collect());
        serde_json::from_str(raw.get()).or_else(|_| as_object()).unwrap_or_default()
    }

    fn edit(&mut self, number: u64) {
        let key = if self.fields.contains_key("text") { "text" } else { "title" };
        let Some(old) = self.fields.get(key).and_then(|raw| raw.get().strip_suffix('"')) else { return };
        self.set(key, format!("{old} [edit {number}]\""));
    }

    fn kill(&mut self, mark: &str) {
        self.set("dead", "true".to_owned());
        if self.is_a("comment") {
            self.withhold("text");
            self.set("text", mark.to_owned());
        } else {
            CONTENT.iter().for_each(|key| self.withhold(key));
        }
    }

    fn delete(&mut self) {
        self.set("deleted", "true".to_owned());
        CONTENT.iter().chain(&["by", "score"]).for_each(|key| self.withhold(key));
    }

    /// What was dead from the beginning never showed its content, so it is given one.
    fn revive(&mut self) {
        self.fields.remove("dead");
        self.fields.remove("deleted");
        self.fields.append(&mut self.withheld);
        let content = if self.is_a("comment") || self.is_a("pollopt") { "text" } else { "title" };
        let hidden = |raw: &RawValue| matches!(raw.get(), "\"[dead]\"" | "\"[flagged]\"");
        if self.fields.get(content).is_none_or(|raw| hidden(raw)) {
            self.set(content, "\"Back again\"".to_owned());
        }
    }

    /// A comment that is dead and then deleted keeps what it had first.
    fn withhold(&mut self, key: &str) {
        if let Some(value) = self.fields.remove(key) {
            self.withheld.entry(key.to_owned()).or_insert(value);
        }
    }

    fn set(&mut self, key: &str, json: String) {
        self.fields.insert(key.to_owned(), raw(json));
    }

    fn is_a(&self, kind: &str) -> bool {
        self.fields.get("type").is_some_and(|raw| raw.get().trim_matches('"') == kind)
    }

    /// Flags have been seen as lists.
    fn is_flagged(&self, key: &str) -> bool {
        self.fields.get(key).is_some_and(|raw| !matches!(raw.get(), "[]" | "false" | "null"))
    }
}

fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).expect("what is written here is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Duration = Duration::ZERO;
    const STORY: &[u8] =
        br#"{"by":"a","descendants":1,"id":1,"kids":[5],"score":3,"text":"\ud83d","title":"T","type":"story","url":"u"}"#;
    const COMMENT: &[u8] = br#"{"by":"a","id":2,"kids":{"0":4},"parent":1,"text":"words","type":"comment"}"#;

    fn after(base: &'static [u8], changes: &[Change]) -> String {
        let mut living = Living::new(&Bytes::from_static(base)).unwrap();
        changes.iter().for_each(|change| living.change(*change, AT, Publicity::Published));
        String::from_utf8(living.body().to_vec()).unwrap()
    }

    #[test]
    fn scores_kids_and_edits_change_only_their_fields() {
        let changes = [Change::Score { by: 4 }, Change::Kid { id: 9, rank: 0 }, Change::Edit { number: 7 }];
        let expected = r#"{"by":"a","descendants":2,"id":1,"kids":[9,5],"score":7,"text":"\ud83d [edit 7]","title":"T","type":"story","url":"u"}"#;
        assert_eq!(after(STORY, &changes), expected);
        let comment = after(COMMENT, &[Change::Kid { id: 9, rank: 1 }]);
        assert!(comment.contains(r#""kids":[4,9]"#), "{comment}");
    }

    #[test]
    fn death_and_deletion_take_what_the_real_api_takes() {
        let dead = r#"{"by":"a","dead":true,"id":1,"kids":[5],"score":3,"type":"story"}"#;
        assert_eq!(after(STORY, &[Change::Dead]), dead);
        let flagged = after(COMMENT, &[Change::Flagged]);
        assert!(flagged.contains(r#""dead":true"#) && flagged.contains(r#""text":"[flagged]""#), "{flagged}");
        let deleted = r#"{"deleted":true,"id":2,"kids":{"0":4},"parent":1,"type":"comment"}"#;
        assert_eq!(after(COMMENT, &[Change::Deleted]), deleted);
    }

    #[test]
    fn revival_gives_everything_back_with_what_happened_meanwhile() {
        for base in [STORY, COMMENT] {
            let back = after(base, &[Change::Flagged, Change::Deleted, Change::Revived]);
            assert_eq!(back.as_bytes(), base);
        }
        let story = after(STORY, &[Change::Dead, Change::Kid { id: 9, rank: 0 }, Change::Revived]);
        assert!(story.contains(r#""descendants":2"#), "{story}");
        let born_dead = after(br#"{"dead":true,"id":2,"text":"[dead]","type":"comment"}"#, &[Change::Revived]);
        assert_eq!(born_dead, r#"{"id":2,"text":"Back again","type":"comment"}"#);
    }
}
