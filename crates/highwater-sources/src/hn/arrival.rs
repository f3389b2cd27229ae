//! Answers between their arrival and their reading.

use highwater_core::{Key, Timestamp};

use super::{expect_ok, streams::Kind, tags::Marks};
use crate::{Answer, Fetched, Response};

/// What became of a request.
pub(super) enum Came {
    /// To be read with the others of its job.
    Small(Arrival),
    /// What it says is known.
    Read(Answer),
}

impl Came {
    /// How much there is to read.
    pub(super) fn unread(&self) -> usize {
        match self {
            Came::Small(arrival) => arrival.len(),
            Came::Read(_) => 0,
        }
    }

    pub(super) fn read(self, kind: Kind, now: Timestamp) -> Answer {
        match self {
            Came::Small(arrival) => arrival.read(kind, now),
            Came::Read(answer) => answer,
        }
    }
}

/// An answer as it came.
pub(super) struct Arrival {
    key: Key,
    marks: Marks,
    /// The mark it came with.
    tag: Option<String>,
    /// Without its headers: several small allocations, which are cheaper to free on the thread that made them.
    response: Response,
}

impl Arrival {
    pub(super) fn new(key: &Key, marks: Marks, mut response: Response) -> Self {
        let headers = std::mem::take(&mut response.headers);
        Arrival { key: key.clone(), marks, tag: marks.tag(&headers), response }
    }

    pub(super) fn len(&self) -> usize {
        self.response.body.len()
    }

    pub(super) fn read(self, kind: Kind, now: Timestamp) -> Answer {
        let Arrival { key, marks, tag, response } = self;
        if marks.is_unchanged(&response) {
            return Answer::new(key, Fetched::Unchanged);
        }
        let read = expect_ok(&response).and_then(|body| kind.read(&key, body, now));
        let mut fetched = read.unwrap_or_else(Fetched::Failed);
        // A body that is held back keeps no mark: it is to be looked at again, not recognised.
        if let Fetched::Found(record) = &mut fetched {
            record.tag = tag;
        }
        Answer::new(key, fetched)
    }
}
