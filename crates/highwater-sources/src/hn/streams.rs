//! What is mirrored of Hacker News, and by which rules.

use std::time::Duration;

use highwater_core::{
    AbsenceRule, DeadLetterPolicy, Failure, FailureKind, Key, Pending, Position, StreamName, Timestamp,
};

use super::{
    item,
    schema::{ITEMS, USERS},
    user,
};
use crate::{Density, Fetched, Following, NamedIn, Request, StreamPolicy, StreamSpec};

pub(super) const ITEMS_NAME: &str = "items";
pub(super) const AXIS: &str = "id";
const USERS_NAME: &str = "users";
const ABSENCE: AbsenceRule =
    AbsenceRule { confirmations: 3, over: Duration::from_secs(5), reason: Pending::Null.as_str() };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Items,
    Users,
}

impl Kind {
    pub(super) fn of(stream: &StreamName) -> Result<Kind, Failure> {
        match stream.as_str() {
            ITEMS_NAME => Ok(Kind::Items),
            USERS_NAME => Ok(Kind::Users),
            _ => Err(Failure::new(FailureKind::Internal, "there is no such stream")),
        }
    }

    /// For what only items have: a line of positions at the remote.
    pub(super) fn expect_items(stream: &StreamName) -> Result<(), Failure> {
        match Kind::of(stream)? {
            Kind::Items => Ok(()),
            Kind::Users => Err(Failure::new(FailureKind::Internal, "the remote has no list of users")),
        }
    }

    /// What becomes of a key that cannot be asked for.
    pub(super) fn objection(self, key: &Key) -> Option<Fetched> {
        match (self, key) {
            (Kind::Items, Key::Number(_)) => None,
            (Kind::Items, Key::Text(_)) => {
                Some(Fetched::Failed(Failure::new(FailureKind::Internal, "the key is not an item id")))
            }
            (Kind::Users, name) if user::is_name(&user::name(name)) => None,
            (Kind::Users, _) => Some(Fetched::Excluded { reason: "nobody can have this name" }),
        }
    }

    /// How to ask for a key to which there is no objection.
    pub(super) fn request(self, key: &Key) -> Request {
        match (self, key) {
            (Kind::Items, Key::Number(id)) => item::request(*id),
            (Kind::Items, Key::Text(_)) => unreachable!("only numbers are asked for"),
            (Kind::Users, name) => user::request(name),
        }
    }

    pub(super) fn read(self, key: &Key, body: &[u8], now: Timestamp) -> Result<Fetched, Failure> {
        match (self, key) {
            (Kind::Items, Key::Number(id)) => item::read(*id, body, now),
            (Kind::Items, Key::Text(_)) => unreachable!("only numbers are asked for"),
            (Kind::Users, name) => user::read(name, body),
        }
    }
}

pub(super) fn items() -> StreamSpec {
    StreamSpec {
        name: name(ITEMS_NAME),
        axis: AXIS,
        origin: Position(1),
        table: &ITEMS,
        density: Density::Dense,
        follows: Following::Sync,
        sides: &[],
        vanished: None,
        policy: StreamPolicy {
            segment_size: 1_000,
            job_size: 100,
            dead_letters: DeadLetterPolicy::Hold,
            absence: ABSENCE,
            settled_behind: 50,
        },
    }
}

/// A profile lists all its user ever wrote, hundreds of kilobytes for some: hence smaller jobs.
pub(super) fn users() -> StreamSpec {
    StreamSpec {
        name: name(USERS_NAME),
        axis: "name",
        origin: Position(1),
        table: &USERS,
        density: Density::Named(NamedIn { stream: ITEMS_NAME, table: &ITEMS, column: "by" }),
        follows: Following::Serve,
        sides: &[],
        vanished: None,
        policy: StreamPolicy {
            segment_size: 1_000,
            job_size: 50,
            dead_letters: DeadLetterPolicy::Pass,
            absence: ABSENCE,
            settled_behind: 0,
        },
    }
}

fn name(text: &str) -> StreamName {
    text.parse().expect("a plain word is a name")
}
