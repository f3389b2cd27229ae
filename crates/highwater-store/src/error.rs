//! What can go wrong with a store: a kind to decide on, what was being done, and the cause.

use highwater_core::Fenced;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The configuration names something that cannot be opened or reached.
    CannotOpen,
    /// The server does not answer, or lets nobody in yet: it may be away, or the configuration may be wrong.
    Unreachable,
    /// The database does not let this user in: wrong password, or none where one is needed.
    Unauthorized,
    /// Another process works on this store.
    Locked,
    /// The database was made by a later version.
    TooNew,
    /// The lease was taken over; nothing was written.
    Fenced,
    /// A segment was to be sealed although keys of it are unaccounted for; nothing was written.
    Unaccounted,
    /// The store refuses this very data. The same batch without the offending row would be taken.
    Refused,
    /// The disk is full or a quota is reached. May heal.
    Full,
    /// The database is busy, restarting or unreachable. May heal.
    Unavailable,
    /// What is stored contradicts itself.
    Corrupt,
}

impl ErrorKind {
    /// Whether waiting and trying again can help.
    pub fn may_heal(self) -> bool {
        matches!(self, ErrorKind::Full | ErrorKind::Unavailable)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
pub struct StoreError {
    pub kind: ErrorKind,
    pub doing: String,
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    pub fn new(kind: ErrorKind, doing: impl Into<String>) -> Self {
        StoreError { kind, doing: doing.into(), source: None }
    }

    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl From<Fenced> for StoreError {
    fn from(fenced: Fenced) -> Self {
        StoreError::new(ErrorKind::Fenced, "writing for a segment").caused_by(fenced)
    }
}

pub type Result<T, E = StoreError> = std::result::Result<T, E>;
