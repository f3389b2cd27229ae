//! How much a total has grown of late. Growth is kept in a bounded number of pieces, so it may be forgotten a sixtieth of
//! the window early.

use std::{collections::VecDeque, time::Duration};

use crate::Timestamp;

const PIECES: u32 = 60;

#[derive(Clone, Debug)]
pub(super) struct Recent {
    window: Duration,
    total: u64,
    pieces: VecDeque<(Timestamp, u64)>,
    sum: u64,
}

impl Recent {
    pub(super) fn over(window: Duration) -> Self {
        Recent { window, total: 0, pieces: VecDeque::new(), sum: 0 }
    }

    /// A total below the last one has begun anew.
    pub(super) fn observe(&mut self, total: u64, now: Timestamp) {
        let growth = total.checked_sub(self.total).unwrap_or(total);
        self.total = total;
        if growth > 0 {
            self.add(growth, now);
        }
        while let Some(&(at, growth)) = self.pieces.front()
            && now.since(at) >= self.window
        {
            self.sum -= growth;
            self.pieces.pop_front();
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn growth(&self) -> u64 {
        self.sum
    }

    fn add(&mut self, growth: u64, now: Timestamp) {
        self.sum += growth;
        match self.pieces.back_mut() {
            Some((at, piece)) if now.since(*at) < self.window / PIECES => *piece += growth,
            _ => self.pieces.push_back((now, growth)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn growth_is_forgotten_after_the_window_and_kept_in_few_pieces() {
        let mut recent = Recent::over(Duration::from_secs(3600));
        for second in 0..7200 {
            recent.observe(second + 1, at(second as i64));
            assert!(recent.pieces.len() <= PIECES as usize + 1);
        }
        assert!((3540..=3600).contains(&recent.growth()), "{}", recent.growth());
        recent.observe(7200, at(3 * 3600));
        assert_eq!(recent.growth(), 0);
    }

    #[test]
    fn a_total_that_begins_anew_has_grown_by_what_it_is() {
        let mut recent = Recent::over(Duration::from_secs(60));
        recent.observe(10, at(0));
        recent.observe(3, at(1));
        assert_eq!(recent.growth(), 13);
    }
}
