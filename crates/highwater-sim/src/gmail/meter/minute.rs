//! Units in any minute: the window slides.

use std::{collections::VecDeque, time::Duration};

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Minute {
    max: Option<u32>,
    /// What was used in the last minute, oldest first.
    used: VecDeque<(Duration, u32)>,
    units: u32,
}

impl Minute {
    /// Without a maximum there is always room.
    pub(super) const fn new(max: Option<u32>) -> Self {
        Minute { max, used: VecDeque::new(), units: 0 }
    }

    pub(super) fn has_room(&mut self, cost: u32, now: Duration) -> bool {
        while let Some((_, cost)) = self.used.front().copied().filter(|(at, _)| *at + MINUTE <= now) {
            self.units -= cost;
            self.used.pop_front();
        }
        self.max.is_none_or(|max| self.units + cost <= max)
    }

    pub(super) fn spend(&mut self, cost: u32, now: Duration) {
        if self.max.is_some() {
            self.used.push_back((now, cost));
            self.units += cost;
        }
    }

    /// When there is room for `cost` again.
    pub(super) fn room_at(&self, cost: u32) -> Duration {
        let max = self.max.unwrap_or(u32::MAX);
        let mut left = self.units;
        let enough = self.used.iter().find(|(_, used)| {
            left -= used;
            left + cost <= max
        });
        enough.or(self.used.back()).map_or(MINUTE, |(at, _)| *at + MINUTE)
    }
}
