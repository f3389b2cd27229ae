//! Why a run could not go on. A key that fails is no error: it is an exception row.

use highwater_core::Failure;
use highwater_store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the store failed")]
    Store(#[from] StoreError),
    #[error("the source cannot be reached")]
    Remote(#[source] Failure),
    #[error("the workers keep dying: {panics} panics in a row without a commit")]
    WorkersDie { panics: u32 },
    #[error("a task of the engine died: {0}")]
    TaskDied(String),
}

pub(crate) type Result<T, E = EngineError> = std::result::Result<T, E>;
