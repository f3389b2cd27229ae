//! What is said of a mailbox that nobody opened.

use crate::{ErrorKind, StoreError};

pub(crate) fn no_mailbox() -> StoreError {
    StoreError::new(ErrorKind::Refused, "there is no such mailbox")
}
