//! What a remote tells by itself: which objects changed, and where its newest is.

use futures_util::future::BoxFuture;
use highwater_core::{Failure, Key, Position, StreamName};

/// A source with feeds.
pub trait Live: Send + Sync {
    fn feeds(&self) -> &'static [Feed];
    /// Begins to listen. The remote then tells its present state once, and what is written to it from then on.
    fn listen(&self, feed: Feed) -> BoxFuture<'_, Result<Box<dyn Listening>, Failure>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feed {
    pub name: &'static str,
    /// Whether changes told by it are told nowhere else: without it the mirror is blind.
    pub tells_changes: bool,
}

/// An open feed. Dropping it ends it.
pub trait Listening: Send {
    /// The next thing told; may be dropped before it is ready without loss. An error is the end of the feed.
    fn next(&mut self) -> BoxFuture<'_, Result<Told, Failure>>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The feed stands, nothing happened.
    Alive,
    /// The exclusive end of a stream's axis.
    Head { stream: StreamName, head: Position },
    /// Objects that were written, each as often as the remote names it.
    Changed(Vec<(StreamName, Key)>),
}
