//! How a mailbox fares, as its row tells: connected, being synced, or in need of somebody.

use std::sync::Arc;

use highwater_core::{SourceName, Timestamp};
use highwater_engine::{Ending, EngineError, Left, SyncReport};
use highwater_sources::Clock;
use highwater_store::{MailboxId, MailboxNote, MailboxStatus, Result, Store};

use crate::{config::SourceConfig, out};

/// The mailbox of a source that is one.
#[derive(Clone, Debug)]
pub(crate) struct MailboxOf {
    id: MailboxId,
    source: SourceName,
}

pub(crate) struct Mailbox {
    id: MailboxId,
    store: Arc<dyn Store>,
    clock: Clock,
}

impl MailboxOf {
    pub(crate) fn source(source: &SourceConfig) -> Option<MailboxOf> {
        let gmail = source.gmail.as_ref()?;
        Some(MailboxOf { id: MailboxId::new(&gmail.org, &gmail.account), source: source.name.clone() })
    }

    pub(crate) async fn opened(&self, store: Arc<dyn Store>) -> Result<Mailbox> {
        let clock = Clock::system();
        store.open_mailbox(&self.id, &self.source, clock.now()).await?;
        Ok(Mailbox { id: self.id.clone(), store, clock })
    }
}

impl Mailbox {
    pub(crate) async fn begin(&self) -> Result<()> {
        self.note(MailboxStatus::Syncing, None, false).await
    }

    pub(crate) async fn synced(&self) -> Result<()> {
        self.note(MailboxStatus::Connected, None, true).await
    }

    /// Nobody works on it any more.
    pub(crate) async fn rest(&self) -> Result<()> {
        self.note(MailboxStatus::Connected, None, false).await
    }

    pub(crate) async fn end(&self, reports: &std::result::Result<Vec<SyncReport>, EngineError>) -> Result<()> {
        match reports {
            Err(error) => self.failed(error).await,
            Ok(reports) if reports.iter().any(|report| report.ending == Ending::Stopped) => self.rest().await,
            Ok(reports) => match reports.iter().find_map(spent_until) {
                Some(until) => self.pause(until).await,
                None => self.synced().await,
            },
        }
    }

    /// Nothing is wrong; but what is to be fetched is not, until then.
    pub(crate) async fn pause(&self, until: Timestamp) -> Result<()> {
        let why = format!("max_bytes_day is used up; messages are fetched again from {} on", out::time(until));
        self.note(MailboxStatus::Connected, Some(why), false).await
    }

    pub(crate) async fn failed(&self, error: &EngineError) -> Result<()> {
        self.note(MailboxStatus::Error, Some(highwater_engine::describe(error)), false).await
    }

    async fn note(&self, status: MailboxStatus, error: Option<String>, is_synced: bool) -> Result<()> {
        let now = self.clock.now();
        let note = MailboxNote { status, error, synced_at: is_synced.then_some(now), now };
        self.store.note_mailbox(&self.id, &note).await
    }
}

fn spent_until(report: &SyncReport) -> Option<Timestamp> {
    match report.ending {
        Ending::Incomplete(Left::Spent { until, .. }) => until,
        _ => None,
    }
}
