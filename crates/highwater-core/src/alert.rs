//! When to tell people that something is wrong, and when that it is over. The book remembers what was told; it reads no
//! clock and sends nothing.

mod condition;
mod recent;
mod signals;
mod watch;

use std::{fmt, time::Duration};

use crate::{Timestamp, word};
pub use condition::Condition;
pub use signals::{CatchupSignals, ControlSignals, ItemSignals, LiveSignals, Signals};
use watch::Watch;

/// At most one message about a condition in this time, however often it comes and goes.
const QUIET: Duration = Duration::from_secs(3600);
/// A condition is over when it has not held for so long.
const SETTLED: Duration = Duration::from_secs(60);

word! {
    pub enum Severity {
        Warning = "warning",
        Critical = "critical",
    }
}

word! {
    pub enum AlertState {
        Raised = "raised",
        /// It was raised before, and it is time to tell it again.
        Lasting = "lasting",
        Resolved = "resolved",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertChange {
    pub condition: Condition,
    pub severity: Severity,
    pub state: AlertState,
    /// One sentence with the figures; of what is resolved, the last that held.
    pub message: String,
    /// Whether people should hear of it. What comes back within the hour is written down, but not told anew.
    pub send: bool,
}

impl fmt::Display for AlertChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state {
            AlertState::Resolved => write!(f, "resolved: {}", self.message),
            AlertState::Raised | AlertState::Lasting => write!(f, "{}: {}", self.severity, self.message),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenAlert {
    pub condition: Condition,
    pub severity: Severity,
    pub message: String,
    pub raised_at: Timestamp,
}

/// The alerts of one source.
#[derive(Clone, Debug, Default)]
pub struct AlertBook {
    watch: Watch,
    /// By `Condition as usize`.
    entries: [Entry; Condition::ALL.len()],
}

#[derive(Clone, Debug, Default)]
struct Entry {
    open: Option<Open>,
    told_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
struct Open {
    message: String,
    raised_at: Timestamp,
    told: bool,
    /// Since when it has not held.
    clear_since: Option<Timestamp>,
}

impl AlertBook {
    pub fn observe(&mut self, signals: &Signals, now: Timestamp) -> Vec<AlertChange> {
        self.watch.observe(signals, now);
        let watch = &self.watch;
        let change = |(condition, entry): (&Condition, &mut Entry)| {
            let trouble = watch.trouble(*condition, signals);
            let is_covered = condition.covered_by().is_some_and(|greater| watch.trouble(greater, signals).is_some());
            let (state, message, send) = match trouble {
                Some(message) => entry.hold(message, is_covered, now),
                None if watch.is_undecided(*condition, signals, now) => None,
                None => entry.clear(now),
            }?;
            Some(AlertChange { condition: *condition, severity: condition.severity(), state, message, send })
        };
        Condition::ALL.iter().zip(&mut self.entries).filter_map(change).collect()
    }

    /// Takes up an alert that an earlier process left open.
    pub fn recall(&mut self, alert: OpenAlert) {
        let OpenAlert { condition, message, raised_at, .. } = alert;
        self.entries[condition as usize].open = Some(Open { message, raised_at, told: false, clear_since: None });
    }

    /// Takes up when people last heard of a condition, whoever told them; after the alerts that are open.
    pub fn recall_told(&mut self, condition: Condition, at: Timestamp) {
        let entry = &mut self.entries[condition as usize];
        entry.told_at = Some(at);
        if let Some(open) = &mut entry.open {
            open.told = at >= open.raised_at;
        }
    }

    /// Others keep the book from here on. What was counted stays counted.
    pub fn hand_over(&mut self) {
        self.entries = Default::default();
        self.watch.look_away();
    }

    pub fn open(&self) -> Vec<OpenAlert> {
        let open = |(condition, entry): (&Condition, &Entry)| {
            let Open { message, raised_at, .. } = entry.open.clone()?;
            Some(OpenAlert { condition: *condition, severity: condition.severity(), message, raised_at })
        };
        Condition::ALL.iter().zip(&self.entries).filter_map(open).collect()
    }
}

type Change = (AlertState, String, bool);

impl Entry {
    fn hold(&mut self, message: String, is_covered: bool, now: Timestamp) -> Option<Change> {
        let is_new = self.open.is_none();
        let open = self.open.get_or_insert_with(|| Open {
            message: String::new(),
            raised_at: now,
            told: false,
            clear_since: None,
        });
        open.message.clone_from(&message);
        open.clear_since = None;
        let send = !is_covered && self.told_at.is_none_or(|told_at| now.since(told_at) >= QUIET);
        if send {
            open.told = true;
            self.told_at = Some(now);
        }
        match (is_new, send) {
            (true, _) => Some((AlertState::Raised, message, send)),
            (false, true) => Some((AlertState::Lasting, message, send)),
            (false, false) => None,
        }
    }

    fn clear(&mut self, now: Timestamp) -> Option<Change> {
        let open = self.open.as_mut()?;
        let since = *open.clear_since.get_or_insert(now);
        if now.since(since) < SETTLED {
            return None;
        }
        let Open { message, told, .. } = self.open.take()?;
        Some((AlertState::Resolved, message, told))
    }
}

#[cfg(test)]
mod tests;
