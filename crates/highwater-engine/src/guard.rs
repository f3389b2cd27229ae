//! Keeps an outage from burying keys: watches all answers of a run, and says whether a failure counts.

use std::sync::{Mutex, MutexGuard};

use highwater_core::{FailureKind, Health, Key, Moment, OutageWatch, Strike, Timestamp};
use highwater_sources::{Answer, Fetched};

/// Shared by the workers; the mutex is held for a few instructions per batch and never over an await.
#[derive(Default)]
pub(crate) struct Guard(Mutex<GuardState>);

#[derive(Default)]
struct GuardState {
    watch: OutageWatch,
    /// A key the remote has answered for: the canary.
    last_good: Option<Key>,
}

impl Guard {
    /// Takes in the answers of a batch, and says whether its failures count against its keys.
    pub(crate) fn observe(&self, answers: &[Answer], now: Moment, at: Timestamp) -> Strike {
        let mut state = self.lock();
        for answer in answers {
            match &answer.fetched {
                Fetched::Found(_) | Fetched::Delayed { .. } => {
                    state.watch.saw_success(at);
                    state.last_good = Some(answer.key.clone());
                }
                Fetched::Absent | Fetched::Unchanged | Fetched::Excluded { .. } => state.watch.saw_success(at),
                Fetched::Failed(failure) => state.watch.saw_failure(failure.kind, now),
                Fetched::Skipped => {}
            }
        }
        match state.watch.health() {
            Health::Healthy => Strike::Counts,
            Health::Suspect | Health::Out { .. } => Strike::Outage,
        }
    }

    /// Whether a key must not be given up before a canary has been asked.
    pub(crate) fn doubts_a_death(&self, kind: FailureKind, tried_before: Option<Timestamp>) -> bool {
        self.lock().watch.doubts_a_death(kind, tried_before)
    }

    pub(crate) fn health(&self) -> Health {
        self.lock().watch.health()
    }

    pub(crate) fn kind(&self) -> Option<FailureKind> {
        self.lock().watch.kind()
    }

    pub(crate) fn canary(&self) -> Option<Key> {
        self.lock().last_good.clone()
    }

    pub(crate) fn probe_succeeded(&self, now: Moment, at: Timestamp) {
        self.lock().watch.probe_succeeded(now, at);
    }

    pub(crate) fn probe_failed(&self, now: Moment) -> Moment {
        self.lock().watch.probe_failed(now)
    }

    fn lock(&self) -> MutexGuard<'_, GuardState> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}
