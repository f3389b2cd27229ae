//! Whether requests are lost because too many are under way at once, as where a source takes only so many connections.
//! That is tried out, not assumed: a source that loses one in three of whatever it is asked is not helped by asking less.

use crate::Moment;
use std::time::Duration;

/// Outcomes that are looked at together.
const WINDOW: u32 = 40;
/// So many of them lost are worth a try.
const MANY: f64 = 0.25;
/// What is left of the requests under way in a try.
pub(super) const TRIED: f64 = 0.25;
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
    /// Go down to a part of what is under way.
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

    /// A request that began at `started` under a limit of `limit` has come to its end.
    pub(super) fn record(&mut self, is_lost: bool, started: Moment, limit: f64, now: Moment) -> Advice {
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
            Some(before) => self.judge(&before, share, now),
            None if share < MANY || now < self.quiet_until => Advice::None,
            None => {
                (self.trial, self.since) = (Some(Trial { share, limit }), now);
                Advice::Try
            }
        }
    }

    /// Half way between no change at all and what is left if only so many are ever taken.
    fn judge(&mut self, before: &Trial, share: f64, now: Moment) -> Advice {
        self.since = now;
        let if_too_many = (1.0 - (1.0 - before.share) / TRIED).max(0.0);
        if share <= (before.share + if_too_many) / 2.0 {
            return Advice::Keep;
        }
        self.quiet_until = now + BELIEVED;
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
    fn window(losses: &mut Losses, lost: u32, second: u64) -> Advice {
        let record = |index| losses.record(index < lost, at(second), 64.0, at(second));
        (0..WINDOW).map(record).last().unwrap()
    }

    #[test]
    fn a_few_losses_are_nobody_s_fault() {
        let mut losses = Losses::new(at(0));
        assert_eq!(window(&mut losses, WINDOW / 5, 1), Advice::None);
    }

    #[test]
    fn where_only_so_many_are_taken_fewer_are_asked_for() {
        let mut losses = Losses::new(at(0));
        assert_eq!(window(&mut losses, 34, 1), Advice::Try);
        assert_eq!(losses.record(true, at(0), 16.0, at(2)), Advice::None, "it began before the try");
        assert_eq!(window(&mut losses, 16, 2), Advice::Keep);
        assert_eq!(window(&mut losses, 16, 3), Advice::Try, "they are still many");
        assert_eq!(window(&mut losses, 0, 4), Advice::Keep);
    }

    #[test]
    fn losses_that_have_other_reasons_slow_nothing_down() {
        let mut losses = Losses::new(at(0));
        assert_eq!(window(&mut losses, 20, 1), Advice::Try);
        assert_eq!(window(&mut losses, 18, 2), Advice::Restore(64.0));
        assert_eq!(window(&mut losses, 20, 31), Advice::None);
        assert_eq!(window(&mut losses, 20, 32), Advice::Try, "the world may have changed");
    }
}
