//! Bytes that came within a day, and when there is room for more. They are counted by the hour, and an hour is forgotten
//! a day after its last moment: never more than a budget comes within any 24 hours, wherever a remote's own day begins.

use std::{collections::BTreeMap, time::Duration};

use crate::Timestamp;

const HOUR: Duration = Duration::from_secs(3_600);
const COUNTED: Duration = Duration::from_secs(25 * 3_600);

/// Bytes by the hour in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Downloads(BTreeMap<Timestamp, u64>);

impl Downloads {
    pub fn add(&mut self, at: Timestamp, bytes: u64) {
        let hour = self.0.entry(hour_of(at)).or_default();
        *hour = hour.saturating_add(bytes);
    }

    /// Each hour by its first moment.
    pub fn hours(&self) -> impl Iterator<Item = (Timestamp, u64)> {
        self.0.iter().map(|(hour, bytes)| (*hour, *bytes))
    }

    /// The first hour that counts now.
    pub fn counted_since(now: Timestamp) -> Timestamp {
        hour_of(now.minus(COUNTED)) + HOUR
    }

    /// What counts now.
    pub fn total(&self, now: Timestamp) -> u64 {
        self.counted(now).map(|(_, bytes)| bytes).fold(0, u64::saturating_add)
    }

    /// When no more than `most` counts, if nothing else comes.
    pub fn falls_to(&self, most: u64, now: Timestamp) -> Timestamp {
        let mut left = self.total(now);
        let mut hours = self.counted(now);
        let mut at = now;
        while left > most
            && let Some((hour, bytes)) = hours.next()
        {
            left = left.saturating_sub(bytes);
            at = hour + COUNTED;
        }
        at
    }

    /// Lets go of what counts no longer.
    pub fn forget(&mut self, now: Timestamp) {
        self.0 = self.0.split_off(&Self::counted_since(now));
    }

    pub fn joined(&self, others: &Downloads) -> Downloads {
        self.hours().chain(others.hours()).collect()
    }

    fn counted(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, u64)> {
        self.0.range(Self::counted_since(now)..).map(|(hour, bytes)| (*hour, *bytes))
    }
}

impl FromIterator<(Timestamp, u64)> for Downloads {
    fn from_iter<I: IntoIterator<Item = (Timestamp, u64)>>(hours: I) -> Self {
        let mut downloads = Downloads::default();
        hours.into_iter().for_each(|(at, bytes)| downloads.add(at, bytes));
        downloads
    }
}

fn hour_of(at: Timestamp) -> Timestamp {
    let hour = HOUR.as_millis() as i64;
    Timestamp::from_millis(at.as_millis().div_euclid(hour).saturating_mul(hour))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3_600);

    fn minutes(minutes: u64) -> Timestamp {
        Timestamp::EPOCH + Duration::from_secs(minutes * 60)
    }

    #[test]
    fn an_hour_counts_until_its_last_moment_is_a_day_old() {
        let downloads: Downloads = [(minutes(59), 5), (minutes(61), 7)].into_iter().collect();
        let hours: Vec<_> = downloads.hours().collect();
        assert_eq!(hours, [(minutes(0), 5), (minutes(60), 7)]);
        assert_eq!(downloads.total(minutes(25 * 60 - 1)), 12);
        assert_eq!(downloads.total(minutes(25 * 60)), 7);
        assert_eq!(downloads.total(minutes(26 * 60)), 0);
    }

    #[test]
    fn room_comes_back_hour_by_hour() {
        let downloads: Downloads = [(minutes(10), 5), (minutes(70), 7)].into_iter().collect();
        let now = minutes(80);
        assert_eq!(downloads.falls_to(12, now), now);
        assert_eq!(downloads.falls_to(11, now), minutes(25 * 60));
        assert_eq!(downloads.falls_to(6, now), minutes(26 * 60));
        assert_eq!(downloads.falls_to(0, now), minutes(26 * 60));
    }

    proptest! {
        #[test]
        fn nothing_of_the_last_day_is_forgotten(
            came in prop::collection::vec((0_u64..6_000, 1_u64..100), 0..40),
            now in 0_u64..9_000,
            most in 0_u64..500,
        ) {
            let now = minutes(now);
            let came: Vec<_> = came.into_iter().map(|(at, bytes)| (minutes(at), bytes)).collect();
            let mut downloads: Downloads = came.iter().copied().collect();
            downloads.forget(now);
            let of_day: u64 = came.iter().filter(|(at, _)| *at + DAY > now).map(|(_, bytes)| bytes).sum();
            prop_assert!(downloads.total(now) >= of_day);
            let opens = downloads.falls_to(most, now);
            prop_assert!(opens >= now && downloads.total(opens) <= most);
            let before = opens.minus(Duration::from_millis(1));
            prop_assert!(opens == now || downloads.total(before) > most, "not too late either");
        }
    }
}
