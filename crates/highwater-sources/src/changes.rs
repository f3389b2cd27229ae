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
    /// Everything there is, also what is not to be mirrored.
    fn census<'a>(&'a self, known: &'a Known, call: &'a Call) -> BoxFuture<'a, Result<Census, Failure>>;
    /// Whether what was left out for this reason still is.
    fn leaves_out(&self, reason: &str) -> bool;
    /// The event by which the ledger tells that an object was stored.
    fn storing(&self) -> &'static str;
    /// The columns of a stored row that a census is compared with.
    fn compared(&self) -> &'static [&'static str];
    /// The labels of a stored row with these values.
    fn labels_of(&self, values: &[Value]) -> Vec<String>;
    /// How a stored row with these values differs from the census.
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

/// What is to be known before everything is listed.
#[derive(Clone, Debug)]
pub struct Known {
    /// Where that begins which is to be mirrored.
    pub from: Position,
    /// The labels of stored rows, each with some that have it: the remote may list others.
    pub labels: BTreeMap<String, Vec<Key>>,
}

/// What a remote has, by a full listing.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// All, wherever they lie.
    pub keys: BTreeSet<Key>,
    /// Those of them that lie before what is to be mirrored.
    pub older: BTreeSet<Key>,
    /// Left out by policy, and why.
    pub excluded: BTreeMap<Key, &'static str>,
    /// Who has each label. A label that is not here cannot be listed.
    pub labels: BTreeMap<String, BTreeSet<Key>>,
}

impl Census {
    /// What is to be mirrored, or to be counted as left out.
    pub fn wanted(&self) -> impl Iterator<Item = &Key> {
        self.keys.difference(&self.older)
    }
}
