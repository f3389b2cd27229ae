//! Watches the figures of every source, and tells when something is wrong and when it is over: on stderr, in the ledger,
//! and to whom the configuration names.

mod notes;

use std::{sync::Arc, time::Duration};

use highwater_core::{
    AlertBook, CatchupSignals, Condition, ControlSignals, ItemSignals, LiveSignals, Moment, OpenAlert, Severity,
    Signals, throttle::PauseReason,
};
use highwater_web::{AlertView, SourceView};

use self::notes::Notes;
use super::watch::{Service, Watched};
use crate::{notify::Notifier, out};

const LOOK: Duration = Duration::from_secs(5);

pub(super) struct Alerts {
    service: Arc<Service>,
    notifier: Notifier,
    control_budget: Option<u64>,
    books: Vec<Book>,
}

/// The alerts of one source, and what they need to remember.
#[derive(Default)]
struct Book {
    book: AlertBook,
    notes: Notes,
    down_since: Option<Moment>,
    unheard_since: Option<Moment>,
    caught_up_once: bool,
    recalled: bool,
}

impl Alerts {
    pub(super) fn new(service: Arc<Service>, notifier: Notifier, control_budget: Option<u64>) -> Self {
        let books = service.watched.iter().map(|_| Book::default()).collect();
        Alerts { service, notifier, control_budget, books }
    }

    pub(super) async fn keep(&mut self) {
        loop {
            for index in 0..self.books.len() {
                self.look(index).await;
            }
            self.show();
            tokio::time::sleep(LOOK).await;
        }
    }

    pub(super) async fn finish(self) {
        self.notifier.finish().await;
    }

    /// Of several processes on one store the one that listens tells.
    async fn look(&mut self, index: usize) {
        let watched = self.service.watched[index].clone();
        if !watched.pulse().is_listener {
            self.books[index].hand_over();
            return;
        }
        let view = watched.view().await;
        // The role may have gone while the figures were read, and the workers with it.
        if !watched.pulse().is_listener {
            return;
        }
        let book = &mut self.books[index];
        if let Err(error) = book.recall(&watched).await {
            tracing::debug!(error = %highwater_engine::describe(&error), "alerts cannot be read");
            return;
        }
        let signals = book.signals(&watched, &view, self.control_budget);
        let now = watched.engine.world.clock.now();
        for change in book.book.observe(&signals, now) {
            out::complain(&format!("{}: {change}", view.name));
            book.notes.add(&watched.engine.name, &change, now);
            self.notifier.send(&change, &view.name, now);
        }
        book.notes.compare(&watched.engine.name, &book.book.open(), now);
        let store = &watched.engine.store;
        book.notes.write(async |note| store.note_alert(note).await).await;
    }

    fn show(&self) {
        let mut all = Vec::new();
        for (watched, book) in self.service.watched.iter().zip(&self.books) {
            let now = watched.engine.world.clock.now();
            all.extend(book.book.open().into_iter().map(|alert| AlertView {
                source: watched.engine.name.to_string(),
                condition: alert.condition,
                severity: alert.severity,
                message: alert.message,
                age: now.since(alert.raised_at),
            }));
        }
        *self.service.alerts.lock().expect("no code panics while it holds this lock") = all;
    }
}

impl Book {
    /// Takes up what an earlier process left open, and when it told people what.
    async fn recall(&mut self, watched: &Watched) -> highwater_store::Result<()> {
        if self.recalled {
            return Ok(());
        }
        let (store, name) = (&watched.engine.store, &watched.engine.name);
        let (open, told) = (store.open_alerts(name).await?, store.told_alerts(name).await?);
        for row in open {
            let known = row.condition.parse::<Condition>().ok().zip(row.severity.parse::<Severity>().ok());
            if let Some((condition, severity)) = known {
                // There is no such alert before the first time.
                self.caught_up_once |= condition == Condition::Lag;
                let (message, raised_at) = (row.message, row.raised_at);
                let alert = OpenAlert { condition, severity, message, raised_at };
                self.notes.recall(&alert);
                self.book.recall(alert);
            }
        }
        for (condition, at) in told {
            if let Ok(condition) = condition.parse() {
                self.book.recall_told(condition, at);
            }
        }
        self.recalled = true;
        Ok(())
    }

    /// Another process tells from here on, of what is open as well.
    fn hand_over(&mut self) {
        self.book.hand_over();
        (self.notes, self.recalled) = (Notes::default(), false);
        (self.down_since, self.unheard_since) = (None, None);
    }

    fn signals(&mut self, watched: &Watched, view: &SourceView, budget: Option<u64>) -> Signals {
        let (counts, pulse) = (watched.counts(), watched.pulse());
        let moment = watched.engine.world.clock.moment();
        self.down_since = if pulse.is_connected() { None } else { self.down_since.or(Some(moment)) };
        self.unheard_since = if view.unheard { self.unheard_since.or(Some(moment)) } else { None };
        let lag = view.catchup.first().map_or(0, |stream| stream.lag);
        self.caught_up_once |= view.catchup.first().is_some_and(|stream| stream.target > stream.origin && lag == 0);
        let batch = counts.batch;
        Signals {
            items: ItemSignals {
                settled: batch.stored() + batch.missing + batch.excluded + batch.dead,
                bad: batch.dead,
            },
            catchup: CatchupSignals { dead_letters: view.dead_letters(), lag, caught_up_once: self.caught_up_once },
            live: view.live.as_ref().map(|live| LiveSignals {
                down_for: self.down_since.map(|since| moment.since(since)),
                last_event_age: live.last_event_age,
                oldest_window_age: live.oldest_window_age,
                workers_alive: live.workers_alive,
                queue_depth: live.queue_depth,
                reconnects: live.reconnects,
            }),
            unheard_for: self.unheard_since.map(|since| moment.since(since)),
            control: ControlSignals { bytes: view.store.control_bytes.unwrap_or(0), budget },
            throttled: asked_to_slow_down(view),
            rescan_age: view.rescan.as_ref().and_then(|rescan| rescan.last_run_age),
            rescan_every: watched.rescan_every(),
        }
    }
}

/// An outage is another trouble, with conditions of its own.
fn asked_to_slow_down(view: &SourceView) -> Duration {
    let asked = view.traffic.throttled.iter().filter(|throttled| throttled.reason != PauseReason::Outage.as_str());
    asked.map(|throttled| throttled.time).sum()
}
