//! What a mirror of mail asks of its store besides rows: the mailboxes, their state and their sealed credentials.

use std::{fmt, time::Duration};

use aws_lc_rs::digest::{SHA256, digest};
use futures_util::future::BoxFuture;
use highwater_core::{SourceName, Timestamp, hex};

use crate::{MoveProgress, Result};

/// The part of a store that keeps mailboxes. Every method that writes is one short transaction, all or nothing, and may
/// be called again with the same arguments without harm; on a mailbox that is not there it is `Refused`.
pub trait MailboxStore: Send + Sync {
    /// The row of a mailbox, made if it is not there yet. The source is the one that opened it last.
    fn open_mailbox<'a>(
        &'a self,
        id: &'a MailboxId,
        source: &'a SourceName,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<MailboxRow>>;
    /// All mailboxes, in order of organisation and address.
    fn mailboxes(&self) -> BoxFuture<'_, Result<Vec<MailboxRow>>>;
    /// Replaces what opens a mailbox; the store sees it sealed only.
    fn set_credentials<'a>(
        &'a self,
        id: &'a MailboxId,
        sealed: Option<String>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<()>>;
    fn note_mailbox<'a>(&'a self, id: &'a MailboxId, note: &'a MailboxNote) -> BoxFuture<'a, Result<()>>;
    /// Whether the caller is now the one who refreshes the credentials, for at most `ttl`. By the database's clock where
    /// processes share the store.
    fn lease_refresh<'a>(&'a self, id: &'a MailboxId, now: Timestamp, ttl: Duration) -> BoxFuture<'a, Result<bool>>;
    fn end_refresh<'a>(&'a self, id: &'a MailboxId) -> BoxFuture<'a, Result<()>>;
    /// Moves mail to where the settings of this store say that it lies. May be broken off at any moment and begun again;
    /// nothing is unreadable meanwhile.
    fn arrange<'a>(&'a self, progress: &'a MoveProgress) -> BoxFuture<'a, Result<()>>;
    /// Removes what a crash left beside the store and no message names; how much.
    fn sweep(&self) -> BoxFuture<'_, Result<u64>>;
}

/// A mailbox of an organisation, by its address.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MailboxId {
    org: String,
    email: String,
}

impl MailboxId {
    /// Providers tell no upper case from lower case in addresses, so neither do we.
    pub fn new(org: &str, email: &str) -> Self {
        MailboxId { org: org.to_owned(), email: email.trim().to_lowercase() }
    }

    pub fn org(&self) -> &str {
        &self.org
    }

    pub fn email(&self) -> &str {
        &self.email
    }

    /// The id of its row: 16 hexadecimal digits that tell nobody the address.
    pub fn key(&self) -> String {
        let hash = digest(&SHA256, &[self.org.as_bytes(), b"\0", self.email.as_bytes()].concat());
        hex(&hash.as_ref()[..8])
    }
}

/// Without the address, which belongs into no log.
impl fmt::Debug for MailboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MailboxId({})", self.key())
    }
}

highwater_core::word! {
    pub enum MailboxStatus {
        Connected = "connected",
        Syncing = "syncing",
        Error = "error",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxRow {
    pub id: MailboxId,
    pub source: SourceName,
    pub status: MailboxStatus,
    pub last_history_id: Option<u64>,
    pub last_synced_at: Option<Timestamp>,
    pub error: Option<String>,
    /// Sealed.
    pub credentials: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// How a mailbox fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxNote {
    pub status: MailboxStatus,
    /// Why, if the status is `error`; names no address.
    pub error: Option<String>,
    /// `None` leaves the time as it is.
    pub synced_at: Option<Timestamp>,
    pub now: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_same_in_any_case_and_does_not_show_the_address() {
        let id = MailboxId::new("default", "Ann@Example.com");
        assert_eq!((&id, id.email()), (&MailboxId::new("default", "ann@example.com"), "ann@example.com"));
        // printf 'default\0ann@example.com' | sha256sum
        assert_eq!(
            (id.key().as_str(), format!("{id:?}").as_str()),
            ("e985ca47a38d9189", "MailboxId(e985ca47a38d9189)")
        );
        assert_ne!(id.key(), MailboxId::new("other", "ann@example.com").key());
    }
}
