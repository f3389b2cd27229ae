//! The heartbeat of all leases at once. It runs beside the work, so that a store that does not answer is noticed: who
//! cannot renew its leases has lost them, and stops.

use highwater_core::{Event, Lease};
use highwater_store::StoreError;

use super::Dispatcher;
use crate::error::Result;

/// After so many beats without an answer others may have our segments soon.
const BEATS_MISSED_MAX: u32 = 2;

impl Dispatcher {
    /// Renews the leases, and cancels jobs without a sign of life.
    pub(super) fn start_beat(&mut self) {
        self.cancel_stalled();
        if self.beating.is_some() {
            self.miss_beat();
            return;
        }
        let leases: Vec<_> = self.open.values().map(|work| work.lease.clone()).collect();
        if !leases.is_empty() {
            let engine = self.worker.engine.clone();
            self.beating = Some(tokio::spawn(async move {
                let lost = engine.store.heartbeat(&leases, engine.now()).await?;
                Ok(leases.into_iter().filter(|lease| lost.contains(&lease.segment)).collect())
            }));
        }
    }

    /// Drops what was taken from us. What was given back since, and claimed again, is another lease.
    pub(super) fn handle_beat(&mut self, beaten: Result<Vec<Lease>, StoreError>) -> Result<()> {
        let lost = match beaten {
            Ok(lost) => lost,
            Err(error) if error.kind.may_heal() => {
                self.miss_beat();
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.beats_failed = 0;
        for lease in lost {
            let segment = lease.segment;
            if let Some(work) = self.open.get(&segment).filter(|work| work.lease == lease) {
                work.mark_lost();
                self.open.remove(&segment);
                self.worker.engine.emit(Event::LeaseLost { segment });
            }
        }
        self.ready.drop_lost();
        Ok(())
    }

    /// Where nobody else can take a segment, a beat that is late does no harm.
    fn miss_beat(&mut self) {
        self.beats_failed += 1;
        if self.beats_failed < BEATS_MISSED_MAX || !self.worker.engine.store.is_shared() {
            return;
        }
        self.beats_failed = 0;
        for (segment, work) in std::mem::take(&mut self.open) {
            work.mark_lost();
            self.worker.engine.emit(Event::LeaseLost { segment });
        }
        self.ready.clear();
        self.running.values().for_each(super::jobs::Running::cancel);
    }
}
