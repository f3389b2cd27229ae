//! What an object store's failure means to a run.

use std::{error::Error as _, io};

use object_store::Error;

use crate::{ErrorKind, StoreError};

pub(super) fn failed(doing: &str, error: Error) -> StoreError {
    StoreError::new(kind(&error), doing).caused_by(error)
}

fn kind(error: &Error) -> ErrorKind {
    match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => ErrorKind::Unauthorized,
        other => io_kind(other).map_or(ErrorKind::Unavailable, of_io),
    }
}

fn of_io(kind: io::ErrorKind) -> ErrorKind {
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Full,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::CannotOpen,
        _ => ErrorKind::Unavailable,
    }
}

fn io_kind(error: &Error) -> Option<io::ErrorKind> {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: io::ErrorKind, expected: ErrorKind) {
        let error = Error::Generic { store: "test", source: Box::new(io::Error::from(kind)) };
        assert_eq!(failed("testing", error).kind, expected, "{kind}");
    }

    #[test]
    fn a_full_disk_may_heal_and_a_closed_door_does_not() {
        check(io::ErrorKind::StorageFull, ErrorKind::Full);
        check(io::ErrorKind::PermissionDenied, ErrorKind::CannotOpen);
        check(io::ErrorKind::ConnectionReset, ErrorKind::Unavailable);
        let denied = Error::PermissionDenied { path: "a".into(), source: "no".into() };
        assert_eq!(failed("testing", denied).kind, ErrorKind::Unauthorized);
    }
}
