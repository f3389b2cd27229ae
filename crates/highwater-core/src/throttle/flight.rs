//! One cut per flight: which refusals are news, and which only repeat what the last cut already answered.

use crate::Moment;
use std::time::Duration;

const CUT_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Flight {
    began: Option<Moment>,
}

impl Flight {
    pub(super) fn begin(&mut self, now: Moment) {
        self.began = Some(now);
    }

    /// A request that left before the last cut was sent at the old rate and tells nothing about the new one.
    pub(super) fn is_news(&self, started: Moment, now: Moment) -> bool {
        self.began.is_none_or(|began| started >= began && now.since(began) >= CUT_EVERY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_is_answered_once() {
        let at = |millis| Moment::after_start(Duration::from_millis(millis));
        let mut flight = Flight::default();
        assert!(flight.is_news(at(0), at(10)));
        flight.begin(at(1_000));
        assert!(!flight.is_news(at(999), at(9_000)), "left before the cut");
        assert!(!flight.is_news(at(1_000), at(1_999)), "too soon after the cut");
        assert!(flight.is_news(at(1_000), at(2_000)));
    }
}
