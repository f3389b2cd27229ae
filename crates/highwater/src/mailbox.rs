//! How a mailbox fares, as its row tells: connected, being synced, or in need of somebody.

use std::sync::Arc;

use highwater_core::{FailureKind, SourceName, Timestamp};
use highwater_engine::{Ending, EngineError, Left, SyncReport, Unheard};
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
    source: SourceName,
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
        Ok(Mailbox { id: self.id.clone(), source: self.source.clone(), store, clock })
    }
}

impl Mailbox {
    pub(crate) async fn begin(&self) -> Result<()> {
        self.note(MailboxStatus::Syncing, None, None).await
    }

    /// Nobody works on it any more.
    pub(crate) async fn rest(&self) -> Result<()> {
        self.note(MailboxStatus::Connected, None, None).await
    }

    pub(crate) async fn end(&self, reports: &std::result::Result<Vec<SyncReport>, EngineError>) -> Result<()> {
        let reports = match reports {
            Ok(reports) => reports,
            Err(error) => return self.failed(error).await,
        };
        match reports.iter().map(|report| &report.ending).find(|ending| !is_followed(ending)) {
            None => self.note(MailboxStatus::Connected, None, Some(self.clock.now())).await,
            Some(Ending::Incomplete(left)) => {
                let (status, why) = hindrance(left);
                self.note(status, Some(why), None).await
            }
            Some(_) => self.rest().await,
        }
    }

    pub(crate) async fn failed(&self, error: &EngineError) -> Result<()> {
        self.note(MailboxStatus::Error, Some(self.trouble(error)), None).await
    }

    /// What is wrong, and where only a person can help, what to do.
    fn trouble(&self, error: &EngineError) -> String {
        let (why, remedy) = (highwater_engine::describe(error), remedy(&self.source));
        match error {
            EngineError::Account(_) if !why.contains(&remedy) => format!("{why}; {remedy}"),
            _ => why,
        }
    }

    /// As they are kept.
    pub(crate) async fn credentials(&self) -> Result<Option<String>> {
        let rows = self.store.mailboxes().await?;
        Ok(rows.into_iter().find(|row| row.id == self.id).and_then(|row| row.credentials))
    }

    /// As a service sees it, which may just have followed it.
    pub(crate) async fn seen(&self, sight: &Sight, synced_at: Option<Timestamp>) -> Result<()> {
        let (status, why) = match (&sight.unheard, sight.outage, sight.spent_until) {
            (Some(Unheard::Failing { why }), _, _) => (MailboxStatus::Error, Some(why.clone())),
            (_, Some(how), _) => (MailboxStatus::Error, Some(silent(how))),
            (Some(Unheard::LeftAlone { until }), _, _) => (MailboxStatus::Connected, Some(left_alone(*until))),
            (None, None, Some(until)) => (MailboxStatus::Connected, Some(spent(until))),
            (None, None, None) => (MailboxStatus::Connected, None),
        };
        self.note(status, why, synced_at).await
    }

    async fn note(&self, status: MailboxStatus, error: Option<String>, synced_at: Option<Timestamp>) -> Result<()> {
        let note = MailboxNote { status, error, synced_at, now: self.clock.now() };
        self.store.note_mailbox(&self.id, &note).await
    }
}

/// What hinders a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(crate) unheard: Option<Unheard>,
    pub(crate) outage: Option<&'static str>,
    pub(crate) spent_until: Option<Timestamp>,
}

/// Whether the record of changes was followed to its end.
fn is_followed(ending: &Ending) -> bool {
    match ending {
        Ending::Complete | Ending::NothingToDo { .. } | Ending::Incomplete(Left::Exceptions { .. }) => true,
        Ending::Incomplete(_) | Ending::Stopped => false,
    }
}

/// What a run was stopped by. Of what ends by itself at a known time it is only told when.
fn hindrance(left: &Left) -> (MailboxStatus, String) {
    match left {
        Left::Spent { until: Some(until), .. } => (MailboxStatus::Connected, spent(*until)),
        Left::Spent { why, until: None } => (MailboxStatus::Connected, why.clone()),
        Left::GateClosed { until } => (MailboxStatus::Connected, left_alone(*until)),
        Left::Outage { kind } => (MailboxStatus::Error, silent(how(*kind))),
        Left::Exceptions { .. } => unreachable!("messages that cannot be had hinder nothing"),
    }
}

/// What to do when the credentials are the trouble.
pub(crate) fn remedy(source: &SourceName) -> String {
    format!("run 'highwater auth {source}'")
}

fn spent(until: Timestamp) -> String {
    format!("max_bytes_day is used up; messages are fetched again from {} on", out::time(until))
}

pub(crate) fn left_alone(until: Timestamp) -> String {
    format!("the source asks to be left alone until {}", out::time(until))
}

pub(crate) fn silent(how: &str) -> String {
    format!("the source does not answer ({how})")
}

pub(crate) fn how(kind: Option<FailureKind>) -> &'static str {
    kind.map_or("no reason known", |kind| kind.as_str())
}
