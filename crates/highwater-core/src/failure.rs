//! Why an answer could not be used: a small kind to decide on, and a text for people.

use std::time::Duration;

use crate::word;

word! {
    pub enum FailureKind {
        /// No connection: name resolution, refused, TLS.
        Connect = "connect",
        /// A deadline passed before the answer was complete.
        Timeout = "timeout",
        /// The connection broke, or the body ended early.
        Broken = "broken",
        /// 5xx without a wish to be left alone for a while.
        Server = "server",
        /// 401 or 403.
        Denied = "denied",
        /// The account may not see it. Asking again does not help, and whether it exists is not known.
        Forbidden = "forbidden",
        /// No longer listed, and nothing else of its kind answers: gone, or hidden.
        Vanished = "vanished",
        /// 404 or 410.
        NotFound = "not_found",
        /// Any other status nobody expects here.
        Status = "status",
        /// A redirect that may not be followed.
        Redirect = "redirect",
        /// The body is not what the API promises: HTML, half a document.
        Malformed = "malformed",
        /// A sound body about another object, or about none.
        WrongIdentity = "wrong_identity",
        /// The body passes the bound.
        TooLarge = "too_large",
        /// The account is asked to slow down. Never a strike against a key.
        Throttled = "throttled",
        /// The account cannot be used: its credentials are missing, expired or refused, and nobody but a person can mend
        /// that. Never a strike against a key.
        Credentials = "credentials",
        /// The operator's allowance of calls or bytes is used up. Never a strike against a key.
        Spent = "spent",
        /// Our own work on the key broke: a panic, a row the store refuses.
        Internal = "internal",
    }
}

impl FailureKind {
    /// Whether this can befall every key at once, through no fault of theirs: an outage rather than a bad item.
    pub fn is_systemic(self) -> bool {
        use FailureKind as K;
        match self {
            K::Connect | K::Timeout | K::Broken | K::Server | K::Denied | K::NotFound => true,
            K::Status | K::Redirect | K::Malformed | K::WrongIdentity | K::TooLarge | K::Credentials => true,
            K::Throttled | K::Internal | K::Forbidden | K::Vanished | K::Spent => false,
        }
    }

    /// Whether this is about the account as a whole, so that no key may be blamed for it.
    pub fn is_about_account(self) -> bool {
        matches!(self, FailureKind::Throttled | FailureKind::Credentials | FailureKind::Spent)
    }

    /// Whether asking again is of no use.
    pub fn is_final(self) -> bool {
        matches!(self, FailureKind::Forbidden | FailureKind::Vanished)
    }
}

/// A failed try. The message names no body, address or token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
    /// How long the remote asked to be left alone, or until the operator allows more.
    pub retry_after: Option<Duration>,
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Failure { kind, message: message.into(), retry_after: None }
    }
}
