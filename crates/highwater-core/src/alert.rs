//! Rules that turn counts into alerts. An alert is raised once and stays quiet for an hour.

use std::{collections::VecDeque, fmt, time::Duration};

use crate::{Timestamp, word};

/// Items after which a rate of bad ones means something.
const RATE_WINDOW: u64 = 10_000;
const WARN_SHARE: f64 = 0.002;
const CRITICAL_SHARE: f64 = 0.01;
const HOURLY_BAD_MAX: u64 = 200;
const QUIET: Duration = Duration::from_secs(3600);

word! {
    pub enum Severity {
        Warning = "warning",
        Critical = "critical",
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alert {
    /// The share of dead letters among the last items.
    BadShare { severity: Severity, bad: u64, items: u64 },
    /// Dead letters within the last hour.
    BadPerHour { bad: u64 },
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alert::BadShare { severity, bad, items } => {
                write!(f, "{severity}: {bad} of the last {items} items became dead letters")
            }
            Alert::BadPerHour { bad } => write!(f, "critical: {bad} dead letters within an hour"),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct AlertRules {
    window_items: u64,
    window_bad: u64,
    /// Dead letters of the last hour, as counted batches.
    hour: VecDeque<(Timestamp, u64)>,
    hour_bad: u64,
    quiet_until: [Option<Timestamp>; 3],
}

impl AlertRules {
    pub fn observe(&mut self, items: u64, bad: u64, now: Timestamp) -> Vec<Alert> {
        let mut raised = Vec::new();
        raised.extend(self.observe_share(items, bad, now));
        raised.extend(self.observe_hour(bad, now));
        raised
    }

    fn observe_share(&mut self, items: u64, bad: u64, now: Timestamp) -> Option<Alert> {
        self.window_items += items;
        self.window_bad += bad;
        if self.window_items < RATE_WINDOW {
            return None;
        }
        let (items, bad) = (std::mem::take(&mut self.window_items), std::mem::take(&mut self.window_bad));
        let share = bad as f64 / items as f64;
        let severity = if share >= CRITICAL_SHARE {
            Severity::Critical
        } else if share >= WARN_SHARE {
            Severity::Warning
        } else {
            return None;
        };
        self.speaks(severity as usize, now).then_some(Alert::BadShare { severity, bad, items })
    }

    fn observe_hour(&mut self, bad: u64, now: Timestamp) -> Option<Alert> {
        if bad > 0 {
            self.hour.push_back((now, bad));
            self.hour_bad += bad;
        }
        while let Some(&(at, count)) = self.hour.front()
            && now.since(at) >= QUIET
        {
            self.hour_bad -= count;
            self.hour.pop_front();
        }
        (self.hour_bad > HOURLY_BAD_MAX && self.speaks(2, now)).then_some(Alert::BadPerHour { bad: self.hour_bad })
    }

    fn speaks(&mut self, condition: usize, now: Timestamp) -> bool {
        let quiet = self.quiet_until[condition].is_some_and(|until| now < until);
        if !quiet {
            self.quiet_until[condition] = Some(now + QUIET);
        }
        !quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn a_share_is_judged_over_ten_thousand_items_and_told_once_an_hour() {
        let mut rules = AlertRules::default();
        assert_eq!(rules.observe(9_999, 150, at(0)), []);
        let critical = Alert::BadShare { severity: Severity::Critical, bad: 150, items: 10_000 };
        assert_eq!(rules.observe(1, 0, at(1)), [critical]);
        assert_eq!(rules.observe(10_000, 20, at(2)).len(), 1, "a warning is another condition");
        assert_eq!(rules.observe(10_000, 20, at(3)), []);
        assert_eq!(rules.observe(10_000, 20, at(3700)).len(), 1);
    }

    #[test]
    fn the_hour_forgets() {
        let mut rules = AlertRules::default();
        assert_eq!(rules.observe(1, 200, at(0)), []);
        assert_eq!(rules.observe(1, 1, at(10)), [Alert::BadPerHour { bad: 201 }]);
        let mut patient = AlertRules::default();
        patient.observe(1, 200, at(0));
        assert_eq!(patient.observe(1, 1, at(3600)), []);
    }
}
