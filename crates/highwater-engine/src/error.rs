//! Why a run could not go on. A key that fails is no error: it is an exception row.

use highwater_core::{Failure, FailureKind};
use highwater_store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the store failed")]
    Store(#[from] StoreError),
    #[error("the source cannot be reached")]
    Remote(#[source] Failure),
    /// Nobody but a person can mend it.
    #[error("the account cannot be used")]
    Account(#[source] Failure),
    /// The operator has bounded what is asked for.
    #[error("no more may be asked for now")]
    Spent(#[source] Failure),
    #[error("the workers keep dying: {panics} panics in a row without a commit")]
    WorkersDie { panics: u32 },
    #[error("a task of the engine died: {0}")]
    TaskDied(String),
}

impl From<Failure> for EngineError {
    fn from(failure: Failure) -> Self {
        match failure.kind {
            FailureKind::Credentials => EngineError::Account(failure),
            FailureKind::Spent => EngineError::Spent(failure),
            _ => EngineError::Remote(failure),
        }
    }
}

pub(crate) type Result<T, E = EngineError> = std::result::Result<T, E>;
