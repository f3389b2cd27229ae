//! Jobs that wait for their turn: retries first, then what is new and what is looked at again by turns, so that neither
//! waits for the end of the other.

use std::{collections::VecDeque, sync::Arc};

use highwater_core::{Lane, Purpose};

use crate::{
    turns::{Turn, Turns},
    work::{Job, SegmentWork},
};

type Waiting = (Arc<SegmentWork>, Job);

pub(super) struct Ready {
    retries: VecDeque<Waiting>,
    new: VecDeque<Waiting>,
    again: VecDeque<Waiting>,
    /// Whose turn it is, if both have work.
    next: Purpose,
}

impl Ready {
    /// What is looked at again goes first: somebody may be blind until then.
    pub(super) fn new() -> Self {
        Ready { retries: VecDeque::new(), new: VecDeque::new(), again: VecDeque::new(), next: Purpose::Rescan }
    }

    pub(super) fn push(&mut self, work: Arc<SegmentWork>, job: Job) {
        let queue = match (job.lane, work.purpose) {
            (Lane::Live | Lane::Retry, _) => &mut self.retries,
            (Lane::Backfill, Purpose::Catchup) => &mut self.new,
            (Lane::Backfill, Purpose::Rescan) => &mut self.again,
        };
        queue.push_back((work, job));
    }

    /// The next job that may fetch now.
    pub(super) fn take(&mut self, turns: &Turns) -> Option<(Waiting, Turn)> {
        let purpose = self.whose_turn();
        let queue = match purpose {
            None => &mut self.retries,
            Some(Purpose::Catchup) => &mut self.new,
            Some(Purpose::Rescan) => &mut self.again,
        };
        let turn = turns.take(&queue.front()?.1)?;
        let taken = queue.pop_front()?;
        self.next = match purpose {
            None => self.next,
            Some(Purpose::Catchup) => Purpose::Rescan,
            Some(Purpose::Rescan) => Purpose::Catchup,
        };
        Some((taken, turn))
    }

    /// None if it is that of the retries.
    fn whose_turn(&self) -> Option<Purpose> {
        match (self.retries.is_empty(), self.new.is_empty(), self.again.is_empty()) {
            (false, ..) => None,
            (true, false, false) => Some(self.next),
            (true, true, _) => Some(Purpose::Rescan),
            (true, false, true) => Some(Purpose::Catchup),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.retries.len() + self.new.len() + self.again.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Everything at hand is looked at again.
    pub(super) fn has_nothing_new(&self) -> bool {
        self.new.is_empty() && self.retries.is_empty()
    }

    /// There is enough to do, and none of it is urgent.
    pub(super) fn has_only_backfill(&self) -> bool {
        self.retries.is_empty() && !self.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Ready::new();
    }

    pub(super) fn drop_lost(&mut self) {
        for queue in [&mut self.retries, &mut self.new, &mut self.again] {
            queue.retain(|(work, _)| !work.is_lost());
        }
    }
}
