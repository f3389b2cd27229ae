//! The wish to end, and the one deadline that everything after it shares.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use highwater_core::Moment;
use highwater_sources::Clock;
use tokio_util::sync::CancellationToken;

/// To write down how a run has ended, once the work in hand has had its time.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Whether a run should stop in order, and since when that is known. Clones share both.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: CancellationToken,
    seen_at: Arc<OnceLock<Moment>>,
}

impl From<CancellationToken> for Stop {
    fn from(asked: CancellationToken) -> Self {
        Stop { asked, seen_at: Arc::default() }
    }
}

impl Stop {
    pub async fn asked(&self) {
        self.asked.cancelled().await;
    }

    /// Until when work in hand may go on, if it is to stop. The first look starts the clock.
    pub(crate) fn work_ends(&self, clock: &Clock, patience: Duration) -> Option<Moment> {
        self.asked.is_cancelled().then(|| *self.seen_at.get_or_init(|| clock.moment()) + patience)
    }

    /// When everything is over. A store that is away is waited for until then, and no longer: it may be back, and then
    /// nothing that is in hand is fetched again.
    pub(crate) fn deadline(&self, clock: &Clock, patience: Duration) -> Option<Moment> {
        self.work_ends(clock, patience).map(|moment| moment + LAST_WORDS)
    }

    /// Returns at the deadline.
    pub(crate) async fn over(&self, clock: &Clock, patience: Duration) {
        self.asked().await;
        if let Some(deadline) = self.deadline(clock, patience) {
            clock.sleep_until(deadline).await;
        }
    }
}
