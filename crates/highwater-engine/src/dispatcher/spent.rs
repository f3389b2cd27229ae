//! When the operator's allowance is used up: a run ends, a service waits until there is more.

use std::{sync::Arc, time::Duration};

use highwater_core::{Event, Failure, Moment};

use super::{Dispatcher, DrainEnd, Scope};
use crate::work::{Job, SegmentWork};

/// Where it is not known when there is more.
const LOOK_AGAIN: Duration = Duration::from_secs(3_600);

pub(super) struct Spent {
    failure: Failure,
    until: Moment,
}

impl Dispatcher {
    /// The rest of a job waits with all others.
    pub(super) fn handle_spent(&mut self, work: &Arc<SegmentWork>, rest: Job, failure: Failure) {
        self.ready.push(work.clone(), rest);
        if self.spent.is_some() {
            return;
        }
        let engine = &self.worker.engine;
        let wait = failure.retry_after.unwrap_or(LOOK_AGAIN);
        engine.emit(Event::Spent { until: engine.now() + wait });
        self.spent = Some(Spent { failure, until: engine.world.clock.moment() + wait });
    }

    /// Why a run ends. A service goes on when it is time.
    pub(super) fn allowance_over(&mut self, scope: Scope) -> Option<DrainEnd> {
        let spent = self.spent.as_ref()?;
        let engine = &self.worker.engine;
        if scope != Scope::Endless {
            return Some(DrainEnd::spent(spent.failure.clone(), engine.now()));
        }
        if engine.world.clock.moment() >= spent.until {
            engine.emit(Event::SpentOver);
            self.spent = None;
        }
        None
    }

    pub(super) fn allowance_at(&self) -> Option<Moment> {
        self.spent.as_ref().map(|spent| spent.until)
    }
}
