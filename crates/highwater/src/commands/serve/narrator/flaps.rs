//! A feed that comes and goes many times a minute is told of once a minute.

use std::{collections::BTreeMap, time::Duration};

use highwater_core::{Event, Moment, RescanReason};

const PERIOD: Duration = Duration::from_secs(60);

/// How often each feed was lost since the first loss of the present minute.
#[derive(Debug, Default)]
pub(super) struct Flaps {
    began: Option<Moment>,
    lost: BTreeMap<&'static str, u32>,
}

impl Flaps {
    /// Whether the event is worth a line: the first loss of a minute is, with all that follows from it.
    pub(super) fn admit(&mut self, event: &Event, now: Moment) -> bool {
        match event {
            Event::FeedLost { feed, .. } => {
                self.began.get_or_insert(now);
                let lost = self.lost.entry(feed).or_default();
                *lost += 1;
                *lost == 1
            }
            Event::FeedConnected { feed } => self.lost.get(feed).is_none_or(|lost| *lost <= 1),
            Event::BlindSince { .. } | Event::BlindWindowClosed { .. } => !self.are_many(),
            Event::RescanBegan { reason: RescanReason::Blind, .. } => !self.are_many(),
            Event::RescanSealed { rescan } if rescan.reason == RescanReason::Blind => !self.are_many(),
            _ => true,
        }
    }

    /// What was left untold, when its minute is over.
    pub(super) fn summary(&mut self, now: Moment) -> Vec<String> {
        if self.began.is_none_or(|began| now.since(began) < PERIOD) {
            return Vec::new();
        }
        self.began = None;
        let lost = std::mem::take(&mut self.lost);
        let many = lost.into_iter().filter(|(_, lost)| *lost > 1);
        many.map(|(feed, lost)| format!("{feed} was lost {lost} times within a minute")).collect()
    }

    fn are_many(&self) -> bool {
        self.lost.values().any(|lost| *lost > 1)
    }
}

#[cfg(test)]
mod tests {
    use highwater_core::{Failure, FailureKind, Timestamp};

    use super::*;

    fn cycle() -> [Event; 3] {
        let failure = Failure::new(FailureKind::Broken, "the connection broke");
        [
            Event::FeedLost { feed: "updates", failure, retry_in: Duration::from_millis(500) },
            Event::BlindSince { at: Timestamp::EPOCH },
            Event::FeedConnected { feed: "updates" },
        ]
    }

    #[test]
    fn a_feed_that_comes_and_goes_is_told_of_once_a_minute() {
        let mut flaps = Flaps::default();
        let mut told = Vec::new();
        for second in 0..150 {
            let now = Moment::START + Duration::from_secs(second);
            told.extend(flaps.summary(now).into_iter().map(|text| (second, text)));
            let lines = cycle().iter().filter(|event| flaps.admit(event, now)).count();
            if lines > 0 {
                told.push((second, lines.to_string()));
            }
        }
        let summary = |second| (second, "updates was lost 60 times within a minute".to_owned());
        let first = |second| (second, "3".to_owned());
        assert_eq!(told, [first(0), summary(60), first(60), summary(120), first(120)]);
    }

    #[test]
    fn a_loss_now_and_then_is_told_whole() {
        let mut flaps = Flaps::default();
        for minute in 0..5 {
            let now = Moment::START + minute * PERIOD;
            assert_eq!(flaps.summary(now), [""; 0]);
            assert!(cycle().iter().all(|event| flaps.admit(event, now)));
        }
    }
}
