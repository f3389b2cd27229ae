//! The mailboxes of a store, for layers: what there is to pass on, in one place.

/// Hands every method to a macro that says what a layer does with it.
macro_rules! mailbox_methods {
    ($pass_on:ident) => {
        $pass_on! {
            fn open_mailbox<'a>(
                &'a self,
                id: &'a highwater_store::MailboxId,
                source: &'a SourceName,
                now: Timestamp
            ) -> highwater_store::MailboxRow;
            fn mailboxes<'a>(&'a self) -> Vec<highwater_store::MailboxRow>;
            fn set_credentials<'a>(
                &'a self,
                id: &'a highwater_store::MailboxId,
                sealed: Option<String>,
                now: Timestamp
            ) -> ();
            fn note_mailbox<'a>(
                &'a self,
                id: &'a highwater_store::MailboxId,
                note: &'a highwater_store::MailboxNote
            ) -> ();
            fn lease_refresh<'a>(
                &'a self,
                id: &'a highwater_store::MailboxId,
                now: Timestamp,
                ttl: std::time::Duration
            ) -> bool;
            fn end_refresh<'a>(&'a self, id: &'a highwater_store::MailboxId) -> ();
            fn arrange<'a>(&'a self, progress: &'a highwater_store::MoveProgress) -> ();
            fn sweep<'a>(&'a self) -> u64;
        }
    };
}

pub(crate) use mailbox_methods;
