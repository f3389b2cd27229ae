//! A place in the line, and what waits there for whoever holds it.

use std::{
    collections::VecDeque,
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use highwater_core::throttle::{Permit, Ticket};

use super::{Limiter, Pass, Stopped};

/// Permits that have come and nobody has taken yet.
#[derive(Default)]
pub(super) struct Waiter {
    permits: VecDeque<Permit>,
    /// Whom to tell of the next.
    waker: Option<Waker>,
}

impl Waiter {
    pub(super) fn give(&mut self, permit: Permit) {
        self.permits.push_back(permit);
        self.wake();
    }

    /// No more will come; these were not taken.
    pub(super) fn end(mut self) -> VecDeque<Permit> {
        self.wake();
        self.permits
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn tell(&mut self, cx: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.waker = Some(cx.waker().clone()),
        }
    }
}

/// A place in the line, for as many requests as it was taken for. Dropped, it is given up, and permits that arrived
/// meanwhile go to the next.
#[must_use]
pub struct Line<'a> {
    limiter: &'a Limiter,
    ticket: Ticket,
    /// Taken out together, used one by one.
    taken: VecDeque<Permit>,
}

impl<'a> Line<'a> {
    pub(super) fn new(limiter: &'a Limiter, ticket: Ticket) -> Self {
        Line { limiter, ticket, taken: VecDeque::new() }
    }

    /// The next permit, to be asked for as often as the place was taken for. May be dropped before it is ready without
    /// loss. Of those that came together the rest is given out also after a stop or a pause, as if used at once.
    pub async fn next(&mut self) -> Result<Pass<'a>, Stopped> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &Context<'_>) -> Poll<Result<Pass<'a>, Stopped>> {
        if self.taken.is_empty() {
            let mut state = self.limiter.state();
            let Some(waiter) = state.waiters.get_mut(&self.ticket) else { return Poll::Ready(Err(Stopped)) };
            std::mem::swap(&mut self.taken, &mut waiter.permits);
            if self.taken.is_empty() {
                waiter.tell(cx);
            }
        }
        match self.taken.pop_front() {
            Some(permit) => Poll::Ready(Ok(Pass { limiter: self.limiter, permit: Some(permit) })),
            None => Poll::Pending,
        }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let now = self.limiter.clock.moment();
        self.limiter.change(now, |state| {
            let left = state.waiters.remove(&self.ticket).map_or_else(VecDeque::new, Waiter::end);
            state.leave(self.ticket, self.taken.drain(..).chain(left), now);
        });
    }
}
