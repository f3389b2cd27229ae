//! The append-only record of what was done: one hash chain per source.

use aws_lc_rs::digest::{Context, SHA256};
use highwater_core::{SourceName, Timestamp, hex};
use serde_json::{Map, Value as Json, json};

/// What the first line of a chain names as the hash before it.
pub const FIRST_PREV_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Something that happened, before it has a place in the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerEntry {
    pub at: Timestamp,
    pub event_type: &'static str,
    pub source: SourceName,
    pub entity_type: &'static str,
    pub entity_id: String,
    pub payload: Json,
    pub actor: String,
}

/// A line as it stands in the table.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerLine {
    pub seq: i64,
    pub at: Timestamp,
    pub event_type: String,
    pub source: SourceName,
    pub entity_type: String,
    pub entity_id: String,
    pub payload: Json,
    pub actor: String,
    pub prev_hash: String,
    pub hash: String,
}

impl LedgerEntry {
    /// The line this entry becomes behind `last`, the sequence number and hash of the chain's end.
    pub fn chained(&self, last: Option<(i64, &str)>) -> LedgerLine {
        let (seq, prev_hash) = last.map_or((1, FIRST_PREV_HASH), |(seq, hash)| (seq + 1, hash));
        let mut line = LedgerLine {
            seq,
            at: self.at,
            event_type: self.event_type.into(),
            source: self.source.clone(),
            entity_type: self.entity_type.into(),
            entity_id: self.entity_id.clone(),
            payload: canonical(&self.payload),
            actor: self.actor.clone(),
            prev_hash: prev_hash.into(),
            hash: String::new(),
        };
        line.hash = line.expected_hash();
        line
    }
}

impl LedgerLine {
    pub fn expected_hash(&self) -> String {
        let payload = payload_text(&self.payload);
        let before = json!([
            self.seq,
            self.at.as_millis(),
            self.event_type,
            self.source.as_str(),
            self.entity_type,
            self.entity_id
        ]);
        let before = before.to_string();
        let actor = json!(self.actor).to_string();
        let mut sha = Context::new(&SHA256);
        sha.update(self.prev_hash.as_bytes());
        // The payload keeps the order its store gives it, which `json!` would not.
        sha.update(&before.as_bytes()[..before.len() - 1]);
        sha.update(format!(",{payload},{actor}]").as_bytes());
        hex(sha.finish().as_ref())
    }
}

/// The spelling of a payload in its column and under its hash: compact, keys by length and then by letters, which is
/// the order in which PostgreSQL's JSONB gives them back.
pub fn payload_text(payload: &Json) -> String {
    match payload {
        Json::Object(object) => {
            let mut fields: Vec<_> = object.iter().collect();
            fields.sort_by_key(|(name, _)| (name.len(), *name));
            let fields: Vec<_> =
                fields.into_iter().map(|(name, value)| format!("{}:{}", json!(name), payload_text(value))).collect();
            format!("{{{}}}", fields.join(","))
        }
        Json::Array(list) => format!("[{}]", list.iter().map(payload_text).collect::<Vec<_>>().join(",")),
        scalar => scalar.to_string(),
    }
}

/// A payload is an object, whatever the caller brings.
fn canonical(payload: &Json) -> Json {
    if payload.is_object() { payload.clone() } else { Json::Object(Map::new()) }
}

/// Where a chain breaks first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("line {seq} does not match its hash")]
    Altered { seq: i64 },
    #[error("line {seq} does not follow line {after}")]
    Gap { seq: i64, after: i64 },
}

/// Checks a chain line by line, in order of `seq`.
#[derive(Debug, Default)]
pub struct ChainCheck {
    last: Option<(i64, String)>,
}

impl ChainCheck {
    pub fn add(&mut self, line: &LedgerLine) -> Result<(), Broken> {
        let (after, prev) = self.last.as_ref().map_or((0, FIRST_PREV_HASH), |(seq, hash)| (*seq, hash.as_str()));
        if line.seq != after + 1 || line.prev_hash != prev {
            return Err(Broken::Gap { seq: line.seq, after });
        }
        if line.hash != line.expected_hash() {
            return Err(Broken::Altered { seq: line.seq });
        }
        self.last = Some((line.seq, line.hash.clone()));
        Ok(())
    }

    pub fn lines(&self) -> i64 {
        self.last.as_ref().map_or(0, |(seq, _)| *seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(payload: Json) -> LedgerEntry {
        LedgerEntry {
            at: Timestamp::from_millis(1_700_000_000_000),
            event_type: "SEGMENT_SEALED",
            source: "hn".parse().unwrap(),
            entity_type: "segment",
            entity_id: "1".into(),
            payload,
            actor: "highwater".into(),
        }
    }

    #[test]
    fn a_hash_is_the_documented_one() {
        let line = entry(json!({"start": 1, "end": 1001})).chained(None);
        let text = format!(
            r#"{FIRST_PREV_HASH}[1,1700000000000,"SEGMENT_SEALED","hn","segment","1",{{"end":1001,"start":1}},"highwater"]"#
        );
        let expected = aws_lc_rs::digest::digest(&SHA256, text.as_bytes());
        assert_eq!(line.hash, hex(expected.as_ref()));
    }

    #[test]
    fn any_change_breaks_the_chain() {
        let first = entry(json!({})).chained(None);
        let second = entry(json!({"n": 2})).chained(Some((first.seq, &first.hash)));
        let mut sound = ChainCheck::default();
        sound.add(&first).unwrap();
        sound.add(&second).unwrap();

        let mut altered = second.clone();
        altered.payload = json!({"n": 3});
        let mut check = ChainCheck::default();
        check.add(&first).unwrap();
        assert_eq!(check.add(&altered), Err(Broken::Altered { seq: 2 }));
        assert_eq!(ChainCheck::default().add(&second), Err(Broken::Gap { seq: 2, after: 0 }));
    }
}
