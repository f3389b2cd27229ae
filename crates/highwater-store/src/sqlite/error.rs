//! What SQLite's result codes mean for whoever called: one function maps them to kinds.

use rusqlite::{ErrorCode, ffi};

use crate::{ErrorKind, StoreError};

/// A failure inside a transaction: SQLite's own, or a decision not to write.
#[derive(Debug)]
pub(super) enum Fault {
    Sql(rusqlite::Error),
    Decided(StoreError),
}

pub(super) type Sql<T> = Result<T, Fault>;

impl Fault {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Fault::Sql(error) => kind_of(error),
            Fault::Decided(error) => error.kind,
        }
    }

    pub(super) fn while_doing(self, doing: &str) -> StoreError {
        match self {
            Fault::Sql(error) => StoreError::new(kind_of(&error), doing).caused_by(error),
            Fault::Decided(error) => error,
        }
    }

    /// What is stored makes no sense to us.
    pub(super) fn nonsense(error: impl std::error::Error + Send + Sync + 'static) -> Fault {
        Fault::Decided(StoreError::new(ErrorKind::Corrupt, "reading the database").caused_by(error))
    }

    pub(super) fn refused(why: impl Into<String>) -> Fault {
        Fault::Decided(StoreError::new(ErrorKind::Refused, why))
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Sql(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault::Decided(error)
    }
}

impl From<highwater_core::Fenced> for Fault {
    fn from(fenced: highwater_core::Fenced) -> Self {
        Fault::Decided(fenced.into())
    }
}

impl From<highwater_core::UnknownWord> for Fault {
    fn from(error: highwater_core::UnknownWord) -> Self {
        Fault::nonsense(error)
    }
}

fn kind_of(error: &rusqlite::Error) -> ErrorKind {
    let rusqlite::Error::SqliteFailure(ffi::Error { code, extended_code }, _) = error else {
        return ErrorKind::Corrupt;
    };
    match code {
        ErrorCode::DiskFull => ErrorKind::Full,
        // SQLite calls only ENOSPC "full". A quota (EDQUOT) and a limit of the file's size (EFBIG) fail the write.
        ErrorCode::SystemIoFailure if NO_ROOM.contains(extended_code) => ErrorKind::Full,
        ErrorCode::SystemIoFailure | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => ErrorKind::Unavailable,
        ErrorCode::OperationInterrupted | ErrorCode::OutOfMemory | ErrorCode::SchemaChanged => ErrorKind::Unavailable,
        ErrorCode::FileLockingProtocolFailed | ErrorCode::OperationAborted => ErrorKind::Unavailable,
        ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied => ErrorKind::CannotOpen,
        ErrorCode::TooBig | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch => ErrorKind::Refused,
        _ => ErrorKind::Corrupt,
    }
}

const NO_ROOM: [i32; 2] = [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_SHMSIZE];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_says_what_to_do_about_it() {
        let kind = |code| kind_of(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        assert_eq!(kind(ffi::SQLITE_FULL), ErrorKind::Full);
        assert_eq!(kind(ffi::SQLITE_IOERR_WRITE), ErrorKind::Full);
        assert_eq!(kind(ffi::SQLITE_IOERR_FSYNC), ErrorKind::Unavailable);
        assert_eq!(kind(ffi::SQLITE_BUSY), ErrorKind::Unavailable);
        assert_eq!(kind(ffi::SQLITE_NOTADB), ErrorKind::Corrupt);
        assert_eq!(kind(ffi::SQLITE_CANTOPEN), ErrorKind::CannotOpen);
        assert_eq!(kind(ffi::SQLITE_CONSTRAINT_DATATYPE), ErrorKind::Refused);
        assert_eq!(kind(ffi::SQLITE_TOOBIG), ErrorKind::Refused);
    }
}
