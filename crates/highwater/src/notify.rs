//! Tells people of alerts, by webhook and by mail. It works beside the service: whoever sends an alert never waits, and
//! one that cannot be delivered is logged and forgotten. Neither URLs nor passwords reach a log.

mod mail;
mod webhook;

use std::time::Duration;

use highwater_core::{AlertChange, AlertState, Condition, Severity, Timestamp};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};

use self::{mail::Mail, webhook::Webhook};
use crate::config::NotifyConfig;

/// Alerts that wait to be told; further ones are only logged.
const QUEUE_MAX: usize = 64;
/// Before the second try, and before the third.
const BACKOFF: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];
/// One try, from the name to the last answer.
const TRY_MAX: Duration = Duration::from_secs(20);
/// What waits may be told before the process ends.
const FINISH_MAX: Duration = Duration::from_secs(10);

pub(crate) struct Notifier {
    notes: mpsc::Sender<Note>,
    task: JoinHandle<()>,
}

/// An alert on its way.
#[derive(Clone, Debug)]
struct Note {
    condition: Condition,
    severity: Severity,
    /// `raised` or `resolved`.
    state: &'static str,
    message: String,
    source: String,
    at: Timestamp,
}

/// Why a try failed, in words that may be logged.
#[derive(Debug)]
struct Setback {
    reason: String,
    may_repeat: bool,
}

struct Ways {
    webhook: Option<Webhook>,
    mail: Option<Mail>,
}

impl Notifier {
    /// Everything that can be wrong with the configuration is found here.
    pub(crate) fn start(config: &NotifyConfig) -> anyhow::Result<Notifier> {
        let webhook = config.webhook.as_ref().map(Webhook::new).transpose()?;
        let mail = config.smtp.as_ref().map(Mail::new).transpose()?;
        let (notes, queue) = mpsc::channel(QUEUE_MAX);
        let task = tokio::spawn(Ways { webhook, mail }.run(queue));
        Ok(Notifier { notes, task })
    }

    pub(crate) fn send(&self, change: &AlertChange, source: &str, at: Timestamp) {
        if !change.send {
            return;
        }
        let note = Note::new(change, source, at);
        if self.notes.try_send(note).is_err() {
            tracing::error!(source, condition = %change.condition, "too many alerts wait to be told: this one is not");
        }
    }

    /// Tells what waits, for a while, and ends.
    pub(crate) async fn finish(self) {
        let Notifier { notes, mut task } = self;
        drop(notes);
        if timeout(FINISH_MAX, &mut task).await.is_err() {
            task.abort();
            tracing::error!("alerts that still waited to be told were dropped");
        }
    }
}

impl Note {
    fn new(change: &AlertChange, source: &str, at: Timestamp) -> Self {
        let state = match change.state {
            AlertState::Raised | AlertState::Lasting => AlertState::Raised,
            AlertState::Resolved => AlertState::Resolved,
        };
        Note {
            condition: change.condition,
            severity: change.severity,
            state: state.as_str(),
            message: change.message.clone(),
            source: source.into(),
            at,
        }
    }

    /// As RFC 3339; a time nobody can write is told as its number.
    fn at(&self) -> String {
        let millis = self.at.as_millis();
        jiff::Timestamp::from_millisecond(millis).map_or_else(|_| millis.to_string(), |at| at.to_string())
    }
}

impl Ways {
    async fn run(self, mut queue: mpsc::Receiver<Note>) {
        while let Some(note) = queue.recv().await {
            tokio::join!(self.by_webhook(&note), self.by_mail(&note));
        }
        if let Some(webhook) = &self.webhook {
            webhook.shutdown().await;
        }
    }

    async fn by_webhook(&self, note: &Note) {
        if let Some(webhook) = &self.webhook {
            persist("webhook", note, || webhook.deliver(note)).await;
        }
    }

    async fn by_mail(&self, note: &Note) {
        if let Some(mail) = &self.mail {
            persist("mail", note, || mail.deliver(note)).await;
        }
    }
}

async fn persist<F>(way: &'static str, note: &Note, deliver: impl Fn() -> F)
where
    F: Future<Output = Result<(), Setback>>,
{
    let mut waits = BACKOFF.iter();
    loop {
        let tried = timeout(TRY_MAX, deliver()).await;
        let Err(setback) = tried.unwrap_or_else(|_| Err(Setback::passing("no answer in time"))) else { return };
        let Some(wait) = waits.next().filter(|_| setback.may_repeat) else {
            let Note { condition, source, .. } = note;
            tracing::error!(way, source, %condition, reason = setback.reason, "an alert could not be told");
            return;
        };
        tracing::warn!(way, reason = setback.reason, "an alert could not be told yet; trying again");
        sleep(*wait).await;
    }
}

impl Setback {
    fn passing(reason: impl Into<String>) -> Self {
        Setback { reason: reason.into(), may_repeat: true }
    }

    fn lasting(reason: impl Into<String>) -> Self {
        Setback { reason: reason.into(), may_repeat: false }
    }
}

#[cfg(test)]
mod tests;
