//! How a mirror that stays current is doing, for whoever shows it. Written in passing, read at any time.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
};

use highwater_core::{Ages, Moment, Position, Timestamp};

/// Shared between the service and whoever watches it; the mutex is held for a few instructions.
#[derive(Debug, Default)]
pub struct Pulse(Mutex<PulseView>);

#[derive(Clone, Debug, Default)]
pub struct PulseView {
    /// This process listens, or stands by for one that does.
    pub is_listener: bool,
    /// The feeds that stand, of how many.
    pub feeds_up: Vec<&'static str>,
    pub feeds: usize,
    pub last_event: Option<Moment>,
    /// Times that each feed stood again after it was lost.
    reconnects: BTreeMap<&'static str, u64>,
    pub workers_alive: usize,
    pub worker_falls: u64,
    pub queue_depth: usize,
    /// Objects the workers have stored.
    pub updated: u64,
    /// How old the changed ones were.
    pub ages: Ages,
    pub head: Option<Position>,
    /// When the store last took something, or was last found with nothing to do.
    pub last_sound: Option<Moment>,
    /// Why the last look at a record of changes saw nothing.
    pub unheard: Option<Unheard>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unheard {
    /// With the error on one line.
    Failing { why: String },
    /// The remote asks for it.
    LeftAlone { until: Timestamp },
}

impl PulseView {
    /// Whether every feed stands.
    pub fn is_connected(&self) -> bool {
        self.feeds > 0 && self.feeds_up.len() == self.feeds
    }

    /// Times that the remote was heard again after it was lost: what cuts one feed mostly cuts all, and is one event.
    pub fn reconnects(&self) -> u64 {
        self.reconnects.values().copied().max().unwrap_or(0)
    }

    /// A record of changes was followed to its end.
    pub(super) fn heard_record(&mut self, name: &'static str, now: Moment) {
        self.feeds_up = vec![name];
        (self.last_event, self.last_sound, self.unheard) = (Some(now), Some(now), None);
    }

    pub(super) fn lose_record(&mut self, why: Option<Unheard>) {
        (self.feeds_up, self.unheard) = (Vec::new(), why);
    }

    pub(super) fn reconnected(&mut self, feed: &'static str) {
        *self.reconnects.entry(feed).or_default() += 1;
    }
}

impl Pulse {
    pub fn view(&self) -> PulseView {
        self.lock().clone()
    }

    pub(crate) fn note(&self, change: impl FnOnce(&mut PulseView)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, PulseView> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_that_are_lost_together_are_connected_anew_once() {
        let mut pulse = PulseView::default();
        for feed in ["updates", "head", "updates", "head", "updates"] {
            pulse.reconnected(feed);
        }
        assert_eq!(pulse.reconnects(), 3);
    }
}
