//! Who waits: one first-in, first-out queue per lane, served in the order of the lanes. Whoever gives up leaves a gap
//! that is closed later, so that giving up never walks the queue.

use crate::Lane;
use std::{collections::VecDeque, num::NonZeroU32};

/// Names a waiter. Tickets of one throttle are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    number: u64,
    lane: Lane,
}

/// The waiter whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) ticket: Ticket,
    pub(super) cost: f64,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    lanes: [Line; Lane::ALL.len()],
    issued: u64,
}

#[derive(Debug, Default)]
struct Line {
    /// Ordered by number. The first one never is a gap.
    waiters: VecDeque<Waiter>,
    gaps: usize,
    /// Permits that all of them together wait for.
    wanted: usize,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    cost: f64,
    /// Permits it waits for. None once it gave up.
    wants: Option<NonZeroU32>,
}

impl Queue {
    /// For so many permits, each at this cost.
    pub(super) fn join(&mut self, lane: Lane, cost: f64, permits: NonZeroU32) -> Ticket {
        let number = self.issued;
        self.issued += 1;
        let line = &mut self.lanes[lane.index()];
        line.waiters.push_back(Waiter { number, cost, wants: Some(permits) });
        line.wanted += permits.get() as usize;
        Ticket { number, lane }
    }

    pub(super) fn head(&self) -> Option<Head> {
        Lane::ALL.into_iter().find_map(|lane| {
            let waiter = self.lanes[lane.index()].waiters.front()?;
            Some(Head { ticket: Ticket { number: waiter.number, lane }, cost: waiter.cost })
        })
    }

    /// Serves the waiter that `head` named, who leaves with its last permit.
    pub(super) fn serve(&mut self, head: &Head) {
        self.lanes[head.ticket.lane.index()].serve_first();
    }

    /// Does nothing for a ticket that was served or given up before.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.lanes[ticket.lane.index()].leave(ticket.number);
    }

    pub(super) fn waiting(&self, lane: Lane) -> usize {
        self.lanes[lane.index()].wanted
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.iter().all(|line| line.waiters.is_empty())
    }
}

impl Line {
    fn serve_first(&mut self) {
        let Some(first) = self.waiters.front_mut() else { return };
        self.wanted -= 1;
        first.wants = first.wants.and_then(|wants| NonZeroU32::new(wants.get() - 1));
        if first.wants.is_none() {
            self.waiters.pop_front();
            self.drop_leading_gaps();
        }
    }

    fn leave(&mut self, number: u64) {
        let Ok(index) = self.waiters.binary_search_by_key(&number, |waiter| waiter.number) else {
            return;
        };
        if let Some(wants) = self.waiters[index].wants.take() {
            self.wanted -= wants.get() as usize;
            self.gaps += 1;
            self.drop_leading_gaps();
            self.close_gaps();
        }
    }

    fn drop_leading_gaps(&mut self) {
        while self.waiters.front().is_some_and(|waiter| waiter.wants.is_none()) {
            self.waiters.pop_front();
            self.gaps -= 1;
        }
    }

    /// Half of the line must have left before it is walked: the walk is paid by those who did.
    fn close_gaps(&mut self) {
        if self.gaps * 2 > self.waiters.len() {
            self.waiters.retain(|waiter| waiter.wants.is_some());
            self.gaps = 0;
        }
    }
}

impl Ticket {
    pub fn lane(self) -> Lane {
        self.lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_served_by_priority_and_each_in_order() {
        let mut queue = Queue::default();
        let joined = [Lane::Backfill, Lane::Live, Lane::Backfill, Lane::Retry, Lane::Live];
        let tickets = joined.map(|lane| queue.join(lane, 1.0, NonZeroU32::MIN));
        let mut served = Vec::new();
        while let Some(head) = queue.head() {
            queue.serve(&head);
            served.push(head.ticket);
        }
        assert_eq!(served, [1, 4, 3, 0, 2].map(|index| tickets[index]));
    }

    #[test]
    fn who_wants_several_keeps_the_place_until_the_last_of_them() {
        let mut queue = Queue::default();
        let [first, second] = [3, 2].map(|permits| queue.join(Lane::Backfill, 1.0, NonZeroU32::new(permits).unwrap()));
        let third = queue.join(Lane::Backfill, 1.0, NonZeroU32::MIN);
        let mut served = Vec::new();
        while let Some(head) = queue.head() {
            queue.serve(&head);
            served.push((head.ticket, queue.waiting(Lane::Backfill)));
            if served.len() == 4 {
                queue.leave(second);
            }
        }
        assert_eq!(served, [(first, 5), (first, 4), (first, 3), (second, 2), (third, 0)]);
    }

    #[test]
    fn giving_up_keeps_the_others_in_order_and_the_memory_small() {
        let mut queue = Queue::default();
        let tickets: Vec<_> = (0..10_000).map(|_| queue.join(Lane::Backfill, 1.0, NonZeroU32::MIN)).collect();
        for (index, &ticket) in tickets.iter().enumerate() {
            if index % 1_000 != 500 {
                queue.leave(ticket);
                queue.leave(ticket);
            }
        }
        assert_eq!(queue.waiting(Lane::Backfill), 10);
        assert!(queue.lanes[Lane::Backfill.index()].waiters.len() <= 20);
        for index in (500..10_000).step_by(1_000) {
            let head = queue.head().unwrap();
            assert_eq!(head.ticket, tickets[index]);
            queue.serve(&head);
        }
        assert!(queue.is_empty());
    }
}
