//! Whether requests are lost because too many are under way at once, as where a source takes only so many connections.
//! That is tried out, not assumed: a source that loses one in three of whatever it is asked is not helped by asking less.

use crate::Moment;
use std::time::Duration;

/// Outcomes that are looked at together.
const WINDOW: u32 = 40;
/// So many of them lost are worth a try.
const MANY: f64 = 0.25;
/// So few of them are left when a try has helped. Requests that are refused come back at once and are many: the share
/// hardly falls until all that are under way are taken.
const HELPED: f64 = 0.5;
/// How long the outcome of a try that did not help is believed.
const BELIEVED: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Losses {
    seen: u32,
    lost: u32,
    /// What began before says nothing about the number under way now.
    since: Moment,
    trial: Option<Trial>,
    quiet_until: Moment,
}

#[derive(Debug)]
struct Trial {
    /// The share that was lost before.
    share: f64,
    /// The limit before.
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Advice {
    None,
    /// Go down to a part of what is under way, or further down.
    Try,
    /// Fewer are lost now.
    Keep,
    /// As many are lost as before: go back to this limit.
    Restore(f64),
}

impl Losses {
    pub(super) fn new(now: Moment) -> Self {
        Losses { seen: 0, lost: 0, since: now, trial: None, quiet_until: now }
    }

    /// While a try goes on, the limit is for it alone to change.
    pub(super) fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// Everything was paused meanwhile: what is known of a try says nothing any more. The limit before it, if one went on.
    pub(super) fn forget(&mut self, now: Moment) -> Option<f64> {
        (self.seen, self.lost, self.since) = (0, 0, now);
        self.trial.take().map(|trial| trial.limit)
    }

    /// A request that began at `started` has come to its end, under a limit of `limit`, which may be as low as `least`.
    pub(super) fn record(&mut self, is_lost: bool, started: Moment, (limit, least): (f64, f64), now: Moment) -> Advice {
        if started < self.since {
            return Advice::None;
        }
        self.seen += 1;
        self.lost += u32::from(is_lost);
        if self.seen < WINDOW {
            return Advice::None;
        }
        let share = f64::from(self.lost) / f64::from(self.seen);
        (self.seen, self.lost) = (0, 0);
        match self.trial.take() {
            Some(before) => {
                self.since = now;
                self.judge(before, share, limit > least)
            }
            None if share < MANY || now < self.quiet_until => Advice::None,
            None => {
                (self.trial, self.since) = (Some(Trial { share, limit }), now);
                Advice::Try
            }
        }
    }

    fn judge(&mut self, before: Trial, share: f64, may_go_on: bool) -> Advice {
        if share <= before.share * HELPED {
            return Advice::Keep;
        }
        if may_go_on {
            self.trial = Some(before);
            return Advice::Try;
        }
        self.quiet_until = self.since + BELIEVED;
        Advice::Restore(before.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::after_start(Duration::from_secs(seconds))
    }

    /// A window of outcomes of which so many are lost.
    fn window(losses: &mut Losses, limit: f64, lost: u32, second: u64) -> Advice {
        let record = |index| losses.record(index < lost, at(second), (limit, 2.0), at(second));
        (0..WINDOW).map(record).last().unwrap()
    }

    #[test]
    fn a_few_losses_are_nobody_s_fault() {
        let mut losses = Losses::new(at(0));
        assert_eq!(window(&mut losses, 64.0, WINDOW / 5, 1), Advice::None);
    }

    #[test]
    fn where_only_so_many_are_taken_fewer_are_asked_for() {
        let mut losses = Losses::new(at(0));
        assert_eq!(window(&mut losses, 64.0, 34, 1), Advice::Try);
        assert_eq!(losses.record(true, at(0), (16.0, 2.0), at(2)), Advice::None, "it began before the try");
        assert_eq!(window(&mut losses, 16.0, 32, 2), Advice::Try, "there are still more than are taken");
        assert_eq!(window(&mut losses, 4.0, 0, 3), Advice::Keep);
        assert_eq!(window(&mut losses, 7.0, 30, 9), Advice::Try, "it has grown beyond what is taken");
    }

    #[test]
    fn losses_that_have_other_reasons_slow_nothing_down() {
        let mut losses = Losses::new(at(0));
        assert_eq!(window(&mut losses, 64.0, 20, 1), Advice::Try);
        assert_eq!(window(&mut losses, 16.0, 18, 2), Advice::Try);
        assert_eq!(window(&mut losses, 2.0, 22, 3), Advice::Restore(64.0));
        assert_eq!(window(&mut losses, 64.0, 20, 32), Advice::None);
        assert_eq!(window(&mut losses, 64.0, 20, 33), Advice::Try, "the world may have changed");
    }
}
