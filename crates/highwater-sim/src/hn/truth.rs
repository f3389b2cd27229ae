//! What a correct mirror ends up with, id by id, whatever went wrong on the way.

use std::time::Duration;

use bytes::Bytes;

use super::{HnSim, json::digits};
use crate::{
    answer::{JSON_LINES, Message},
    fault::Fault,
};

/// Lines in one answer of the truth page: about 5 MB.
pub const TRUTH_LINES_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    Body(Bytes),
    /// `null` for ever.
    Missing,
    /// Never to be had: a dead letter is right. The fault is what every late request meets.
    Unreachable(Fault),
}

impl Expected {
    pub const fn as_str(&self) -> &'static str {
        match self {
            Expected::Body(_) => "body",
            Expected::Missing => "missing",
            Expected::Unreachable(_) => "unreachable",
        }
    }

    /// One JSON line: `{"id":1,"state":"body","body":{...}}`, or with `"reason":"404"` for an unreachable id.
    fn write(&self, id: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"id\":");
        digits(out, id);
        self.write_rest(out);
    }

    fn write_rest(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"state\":\"");
        out.extend_from_slice(self.as_str().as_bytes());
        out.push(b'"');
        match self {
            Expected::Body(body) => {
                out.extend_from_slice(b",\"body\":");
                out.extend_from_slice(body);
            }
            Expected::Unreachable(fault) => {
                out.extend_from_slice(b",\"reason\":\"");
                out.extend_from_slice(fault.as_str().as_bytes());
                out.push(b'"');
            }
            Expected::Missing => {}
        }
        out.extend_from_slice(b"}\n");
    }
}

impl HnSim {
    /// The truth about one id once everything transient has healed and the head has stopped growing. In a world with
    /// mutations: as of the last time anybody looked.
    pub fn expected(&self, id: u64) -> Expected {
        let Some(body) = self.item_body(id) else { return Expected::Missing };
        match self.dice.lasting(self.item_key(id)) {
            None => Expected::Body(body),
            Some(Fault::Null) => Expected::Missing,
            Some(fault) => Expected::Unreachable(fault),
        }
    }

    /// The truth about one id, with the mutations until `now`.
    pub fn expected_at(&self, id: u64, now: Duration) -> Expected {
        drop(self.live(now));
        self.expected(id)
    }

    /// The profile of a user, with the mutations until `now`.
    pub fn expected_user(&self, name: &str, now: Duration) -> Option<Bytes> {
        self.user_in(&self.live(now), name)
    }

    /// At most [`TRUTH_LINES_MAX`] lines; the next page starts after the last id of this one.
    pub(super) fn truth_page(&self, from: u64, to: u64, now: Duration) -> Message {
        drop(self.live(now));
        let ids = self.world.ids();
        let mut out = Vec::new();
        for id in (from.max(*ids.start())..=to.min(*ids.end())).take(TRUTH_LINES_MAX) {
            self.expected(id).write(id, &mut out);
        }
        Message::new(http::StatusCode::OK, JSON_LINES, out.into())
    }

    /// One line a name: `{"name":"a","state":"body","body":{...}}`, or with `"state":"missing"`.
    pub(super) fn user_truth_page(&self, names: Option<&str>, now: Duration) -> Message {
        let names = match names {
            Some(names) => names.split(',').map(str::to_owned).collect(),
            None => self.profiles_changed(now),
        };
        let mut out = Vec::new();
        for name in names.iter().take(TRUTH_LINES_MAX) {
            let state = self.expected_user(name, now).map_or(Expected::Missing, Expected::Body);
            out.extend_from_slice(b"{\"name\":");
            out.extend_from_slice(serde_json::json!(name).to_string().as_bytes());
            state.write_rest(&mut out);
        }
        Message::new(http::StatusCode::OK, JSON_LINES, out.into())
    }
}
