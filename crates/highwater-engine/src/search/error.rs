//! Whose fault it is: a damaged index is made again, a damaged mirror never is.

use highwater_store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error(transparent)]
    Store(StoreError),
    #[error(transparent)]
    Index(StoreError),
}

pub(super) fn in_store(error: StoreError) -> SearchError {
    SearchError::Store(error)
}

pub(super) fn in_index(error: StoreError) -> SearchError {
    SearchError::Index(error)
}
