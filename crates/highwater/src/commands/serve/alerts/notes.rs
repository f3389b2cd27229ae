//! What the books do not say of the alerts yet: written in order, and tried again until the store has taken it.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use highwater_core::{AlertChange, AlertState, Condition, OpenAlert, SourceName, Timestamp};
use highwater_store::AlertNote;

/// Days of a store that is away; the oldest gives way.
const WAITING_MAX: usize = 256;
/// The sentence of an alert changes as often as its figures do; each time is a transaction.
const TEXT_EVERY: Duration = Duration::from_secs(15);

#[derive(Default)]
pub(super) struct Notes {
    waiting: VecDeque<AlertNote>,
    /// What the books say of what is open, or will when all is written, and since when.
    texts: BTreeMap<Condition, (String, Timestamp)>,
    is_told: bool,
}

impl Notes {
    /// What the books say already.
    pub(super) fn recall(&mut self, alert: &OpenAlert) {
        self.texts.insert(alert.condition, (alert.message.clone(), alert.raised_at));
    }

    pub(super) fn add(&mut self, source: &SourceName, change: &AlertChange, now: Timestamp) {
        match change.state {
            AlertState::Raised | AlertState::Lasting => {
                self.texts.insert(change.condition, (change.message.clone(), now));
            }
            AlertState::Resolved => {
                self.texts.remove(&change.condition);
            }
        }
        let is_told = change.send && change.state != AlertState::Resolved;
        self.push(AlertNote {
            source: source.clone(),
            condition: change.condition.to_string(),
            severity: change.severity.to_string(),
            message: change.message.clone(),
            at: now,
            state: change.state,
            told_at: is_told.then_some(now),
        });
    }

    /// Has the sentences that hold now written, where the books have older ones.
    pub(super) fn compare(&mut self, source: &SourceName, open: &[OpenAlert], now: Timestamp) {
        if !self.waiting.is_empty() {
            return;
        }
        for alert in open {
            let known = self.texts.get(&alert.condition);
            if known.is_some_and(|(text, at)| *text == alert.message || now.since(*at) < TEXT_EVERY) {
                continue;
            }
            self.texts.insert(alert.condition, (alert.message.clone(), now));
            self.push(AlertNote {
                source: source.clone(),
                condition: alert.condition.to_string(),
                severity: alert.severity.to_string(),
                message: alert.message.clone(),
                at: now,
                state: AlertState::Lasting,
                told_at: None,
            });
        }
    }

    /// Writes until something cannot be written; that and what follows is for the next time.
    pub(super) async fn write(&mut self, mut put: impl AsyncFnMut(&AlertNote) -> highwater_store::Result<()>) {
        while let Some(note) = self.waiting.front() {
            if let Err(error) = put(note).await {
                if !std::mem::replace(&mut self.is_told, true) {
                    let error = highwater_engine::describe(&error);
                    tracing::warn!(%error, "an alert is not in the books yet");
                }
                return;
            }
            self.waiting.pop_front();
            self.is_told = false;
        }
    }

    fn push(&mut self, note: AlertNote) {
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(note);
    }
}

#[cfg(test)]
mod tests {
    use highwater_core::Severity;
    use highwater_store::{ErrorKind, StoreError};

    use super::*;

    const CONDITION: Condition = Condition::DeadLetters;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn change(state: AlertState, message: &str) -> AlertChange {
        let message = message.to_owned();
        AlertChange { condition: CONDITION, severity: Severity::Warning, state, message, send: true }
    }

    fn open(message: &str) -> [OpenAlert; 1] {
        let (message, raised_at) = (message.to_owned(), at(0));
        [OpenAlert { condition: CONDITION, severity: Severity::Warning, message, raised_at }]
    }

    /// What a store takes that is away for the first so many calls.
    async fn written(notes: &mut Notes, mut away: usize) -> Vec<String> {
        let mut taken = Vec::new();
        let put = async |note: &AlertNote| {
            if away > 0 {
                away -= 1;
                return Err(StoreError::new(ErrorKind::Unavailable, "noting an alert"));
            }
            taken.push(format!("{} {} {}", note.state, note.message, note.told_at.is_some()));
            Ok(())
        };
        notes.write(put).await;
        taken
    }

    #[tokio::test]
    async fn what_a_store_that_is_away_does_not_take_is_written_when_it_is_back() {
        let (source, mut notes) = ("hn".parse().unwrap(), Notes::default());
        notes.add(&source, &change(AlertState::Raised, "1 waits"), at(0));
        assert_eq!(written(&mut notes, 1).await, [""; 0]);
        notes.add(&source, &change(AlertState::Resolved, "1 waits"), at(90));
        assert_eq!(written(&mut notes, 1).await, [""; 0]);
        assert_eq!(written(&mut notes, 0).await, ["raised 1 waits true", "resolved 1 waits false"]);
        assert_eq!(written(&mut notes, 0).await, [""; 0]);
    }

    #[tokio::test]
    async fn the_books_say_what_holds_now_but_not_at_every_look() {
        let (source, mut notes) = ("hn".parse().unwrap(), Notes::default());
        notes.add(&source, &change(AlertState::Raised, "2 wait"), at(0));
        assert_eq!(written(&mut notes, 0).await, ["raised 2 wait true"]);
        let mut log = Vec::new();
        for second in (5..=40).step_by(5) {
            notes.compare(&source, &open(&format!("{} wait", 2 + second / 10)), at(second));
            log.extend(written(&mut notes, 0).await);
        }
        assert_eq!(log, ["lasting 3 wait false", "lasting 5 wait false"]);
    }
}
