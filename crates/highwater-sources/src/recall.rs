//! A source that finds some objects only by others that name them.

use highwater_core::{Key, StreamName};

/// Such a source knows no store: what a process before this one has read is told it again.
pub trait Recall: Send + Sync {
    /// The streams whose objects name those of `stream`, as far as they are mirrored; none if it is listed by itself.
    fn named_by(&self, stream: &StreamName) -> Vec<StreamName>;
    /// The column that has an object as it was served.
    fn body(&self) -> &'static str;
    /// Whether an object was neither read nor recalled since the source was made.
    fn is_unread(&self, stream: &StreamName, key: &Key) -> bool;
    /// What is stored of an object.
    fn recall(&self, stream: &StreamName, stored: Stored<'_>);
}

#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    pub key: &'a Key,
    pub body: &'a str,
    /// Marked as deleted.
    pub is_gone: bool,
}
