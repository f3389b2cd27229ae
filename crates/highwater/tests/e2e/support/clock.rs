//! The clock of the tests: conditions are polled until a deadline, so that nothing waits longer than it must or for ever.
#![expect(clippy::disallowed_methods, reason = "processes run on the time of the machine")]

use std::{
    thread,
    time::{Duration, Instant},
};

const POLL: Duration = Duration::from_millis(5);

pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn after(patience: Duration) -> Self {
        Deadline(Instant::now() + patience)
    }

    pub(crate) fn has_passed(&self) -> bool {
        Instant::now() >= self.0
    }
}

/// What `look` finds, sooner or later.
pub(crate) fn until<T>(what: &str, patience: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Deadline::after(patience);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(!deadline.has_passed(), "waited {patience:?} in vain for {what}");
        thread::sleep(POLL);
    }
}

pub(crate) fn pause(length: Duration) {
    thread::sleep(length);
}

pub(crate) fn unix_seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

pub(super) fn now() -> Instant {
    Instant::now()
}
