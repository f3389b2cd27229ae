//! What a correct mirror ends up with, id by id, whatever went wrong on the way.

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
    /// The truth about one id once everything transient has healed and the head has stopped growing.
    pub fn expected(&self, id: u64) -> Expected {
        let Some(body) = self.world.item(id) else { return Expected::Missing };
        match self.dice.lasting(self.item_key(id)) {
            None => Expected::Body(body),
            Some(Fault::Null) => Expected::Missing,
            Some(fault) => Expected::Unreachable(fault),
        }
    }

    /// At most [`TRUTH_LINES_MAX`] lines; the next page starts after the last id of this one.
    pub(super) fn truth_page(&self, from: u64, to: u64) -> Message {
        let ids = self.world.ids();
        let mut out = Vec::new();
        for id in (from.max(*ids.start())..=to.min(*ids.end())).take(TRUTH_LINES_MAX) {
            self.expected(id).write(id, &mut out);
        }
        Message::new(http::StatusCode::OK, JSON_LINES, out.into())
    }
}
