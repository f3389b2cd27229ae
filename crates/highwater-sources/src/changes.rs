//! A remote that keeps a record of its own changes.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::BoxFuture;
use highwater_core::{Edit, Failure, Key, Position, Tiding, Timestamp, Value};

use crate::Call;

/// A source with such a record. Places in it are texts that only the remote understands.
pub trait Changes: Send + Sync {
    /// Where the record ends now.
    fn mark<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Mark, Failure>>;
    /// What changed since, as of `now`.
    fn since<'a>(&'a self, mark: &'a str, now: Timestamp, call: &'a Call) -> BoxFuture<'a, Result<Since, Failure>>;
    /// Everything there is from a position on.
    fn census<'a>(&'a self, from: Position, call: &'a Call) -> BoxFuture<'a, Result<Census, Failure>>;
    /// The columns of a stored row that a census is compared with.
    fn compared(&self) -> &'static [&'static str];
    /// How a stored row with these values differs from the census; none if the row is not what a census from there tells
    /// of.
    fn compare(&self, census: &Census, key: &Key, values: &[Value], now: Timestamp) -> Vec<Edit>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub place: String,
    /// How many objects the remote has, if it says so.
    pub objects: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Since {
    Told {
        tidings: Vec<Tiding>,
        /// Where to go on the next time.
        upto: String,
    },
    /// The record does not go back so far.
    Expired,
}

/// What a remote has, by a full listing.
#[derive(Clone, Debug)]
pub struct Census {
    pub from: Position,
    pub keys: BTreeSet<Key>,
    /// Left out by policy, and why.
    pub excluded: BTreeMap<Key, &'static str>,
    /// Who has each label. A label that is not here cannot be listed.
    pub labels: BTreeMap<String, BTreeSet<Key>>,
}
