//! How far ahead of need segments are claimed. Who is alone takes plenty. Where others share the work, what is claimed
//! too early is kept from them: it takes one at a time, and more only when it was left without.

use highwater_store::Wanted;

use crate::context::{Engine, StreamContext};

/// Segments leased at a time: enough to spare round trips, few enough to give back quickly.
const LIMIT_MAX: u32 = 16;

pub(super) struct Ahead {
    is_shared: bool,
    limit: u32,
    jobs_fetching: usize,
    jobs_max: usize,
    jobs_a_segment: usize,
}

impl Ahead {
    pub(super) fn new(engine: &Engine, stream: &StreamContext) -> Self {
        let (settings, policy) = (&engine.settings, &stream.policy);
        let segment = usize::try_from(policy.segment_size).unwrap_or(usize::MAX);
        let is_shared = engine.store.is_shared();
        Ahead {
            is_shared,
            limit: if is_shared { 1 } else { LIMIT_MAX },
            jobs_fetching: stream.keys_fetching(settings).div_ceil(policy.job_size),
            jobs_max: stream.jobs_max(settings),
            jobs_a_segment: segment.div_ceil(policy.job_size),
        }
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    pub(super) fn wants(&self, ready: usize, open: usize) -> Option<Wanted> {
        let enough = if self.is_shared {
            self.jobs_fetching + (self.limit as usize - 1) * self.jobs_a_segment
        } else {
            self.jobs_max
        };
        (ready < enough && self.has_room(open)).then_some(Wanted::Anything)
    }

    pub(super) fn has_room(&self, open: usize) -> bool {
        open < 2 * LIMIT_MAX as usize + self.jobs_max
    }

    /// A claim was filled while so many jobs were still ready.
    pub(super) fn learn(&mut self, ready: usize) {
        if !self.is_shared {
            return;
        }
        self.limit = match ready {
            0 => (2 * self.limit).min(LIMIT_MAX),
            plenty if plenty > self.jobs_fetching + self.jobs_a_segment => (self.limit - 1).max(1),
            _ => self.limit,
        };
    }
}
