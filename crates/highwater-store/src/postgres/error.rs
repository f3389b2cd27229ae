//! What PostgreSQL's error codes mean for whoever called: one function maps them to kinds.

use tokio_postgres::error::SqlState;

use crate::{ErrorKind, StoreError};

/// A failure inside a transaction: the database's own, or a decision not to write.
#[derive(Debug)]
pub(super) enum Fault {
    Sql(tokio_postgres::Error),
    Decided(StoreError),
    /// Somebody else changed at the same moment what this was based on. Nothing was written; again, from the start.
    Raced,
}

pub(super) type Sql<T> = Result<T, Fault>;

impl Fault {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            Fault::Sql(error) => kind_of(error),
            Fault::Decided(error) => error.kind,
            Fault::Raced => ErrorKind::Unavailable,
        }
    }

    pub(super) fn while_doing(self, doing: &str) -> StoreError {
        match self {
            Fault::Sql(error) => StoreError::new(kind_of(&error), doing).caused_by(said(&error)),
            Fault::Decided(error) => error,
            Fault::Raced => StoreError::new(ErrorKind::Unavailable, doing).caused_by("another process was quicker"),
        }
    }

    /// The same for each of several who share it.
    pub(super) fn shared(&self, doing: &str) -> StoreError {
        let cause = match self {
            Fault::Sql(error) => said(error),
            Fault::Decided(error) => told(error),
            Fault::Raced => "another process was quicker".into(),
        };
        StoreError::new(self.kind(), doing).caused_by(cause)
    }

    /// Whether the same again, at once, may well succeed.
    pub(super) fn is_collision(&self) -> bool {
        match self {
            Fault::Raced => true,
            Fault::Sql(error) => {
                matches!(error.code(), Some(code) if COLLISIONS.contains(code))
            }
            Fault::Decided(_) => false,
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

const COLLISIONS: [SqlState; 2] = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
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

pub(super) fn kind_of(error: &tokio_postgres::Error) -> ErrorKind {
    let Some(code) = error.code() else {
        // Not the server's word: the connection is gone, or we could not read the answer.
        return if is_unreadable(error) { ErrorKind::Corrupt } else { ErrorKind::Unavailable };
    };
    kind_of_code(code.code())
}

fn is_unreadable(error: &tokio_postgres::Error) -> bool {
    let text = error.to_string();
    text.starts_with("error deserializing column") || text.starts_with("error serializing parameter")
}

fn kind_of_code(code: &str) -> ErrorKind {
    match code {
        "53100" | "53400" => ErrorKind::Full,
        "28000" | "28P01" => ErrorKind::Unauthorized,
        "3D000" | "42501" | "3F000" | "25006" => ErrorKind::CannotOpen,
        "42P01" | "42703" | "XX001" | "XX002" => ErrorKind::Corrupt,
        "42804" | "42846" | "42P18" => ErrorKind::Refused,
        _ => match &code[..code.len().min(2)] {
            "22" | "23" | "54" => ErrorKind::Refused,
            "08" | "25" | "40" | "53" | "55" | "57" | "58" => ErrorKind::Unavailable,
            _ => ErrorKind::Corrupt,
        },
    }
}

/// The server's message with its code, without the details: those may quote what is being stored.
fn said(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

/// With its causes.
fn told(error: &StoreError) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_several_share_has_its_cause_for_each() {
        let away = StoreError::new(ErrorKind::Unavailable, "connecting").caused_by("connection refused");
        let shared = Fault::Decided(away).shared("committing a job");
        assert_eq!(shared.source.unwrap().to_string(), "connecting: connection refused");
    }

    #[test]
    fn a_code_says_what_to_do_about_it() {
        let expected = [
            ("57P01", ErrorKind::Unavailable),
            ("57P03", ErrorKind::Unavailable),
            ("57014", ErrorKind::Unavailable),
            ("53300", ErrorKind::Unavailable),
            ("55P03", ErrorKind::Unavailable),
            ("40P01", ErrorKind::Unavailable),
            ("25P03", ErrorKind::Unavailable),
            ("53100", ErrorKind::Full),
            ("53400", ErrorKind::Full),
            ("28P01", ErrorKind::Unauthorized),
            ("3D000", ErrorKind::CannotOpen),
            ("42501", ErrorKind::CannotOpen),
            ("22P05", ErrorKind::Refused),
            ("23514", ErrorKind::Refused),
            ("42P01", ErrorKind::Corrupt),
        ];
        for (code, kind) in expected {
            assert_eq!(kind_of_code(code), kind, "{code}");
        }
    }
}
