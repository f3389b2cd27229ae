//! What a mirror that stays current keeps account of: windows in which nobody listened, passes that look again, and how
//! old things are when they change.

use std::{fmt, time::Duration};

use crate::{Position, Span, Timestamp, word};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowId(pub i64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RescanId(pub i64);

impl fmt::Display for WindowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for RescanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

word! {
    /// Why things are looked at again.
    pub enum RescanReason {
        /// It was time.
        Scheduled = "scheduled",
        /// Nobody listened for a while.
        Blind = "blind",
        /// A part of the slow pass over everything.
        History = "history",
        /// A key the feed named could not be fetched then.
        Key = "key",
    }
}

/// An interval in which changes may have gone unheard. Closed when everything that may have changed in it has been
/// looked at again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlindWindow {
    pub id: WindowId,
    pub opened_at: Timestamp,
    pub reason: String,
    /// When the feed was back; none while it is not.
    pub ended_at: Option<Timestamp>,
    /// Where the head was then.
    pub head: Option<Position>,
    /// The pass that covers it, and where that goes.
    pub rescan: Option<RescanId>,
    pub span: Option<Span>,
    /// When the profiles that may have changed in it had been looked at again.
    pub names_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
}

impl BlindWindow {
    /// Whether what was new at its end is accounted for: by the pass, which looks at whatever it covers, or by the
    /// catch-up.
    pub fn has_reached_head(&self, frontier: Position) -> bool {
        let seen = self.span.map_or(frontier, |span| span.end().max(frontier));
        self.head.is_some_and(|head| seen >= head)
    }

    pub fn lasted(&self) -> Option<Duration> {
        self.ended_at.map(|ended_at| ended_at.since(self.opened_at))
    }
}

/// A pass over what is stored already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescan {
    pub id: RescanId,
    pub reason: RescanReason,
    pub span: Span,
    pub began_at: Timestamp,
    pub sealed_at: Option<Timestamp>,
    /// Objects looked at, and how many of them differed.
    pub items: u64,
    pub changed: u64,
}

/// How old objects were when they were found changed, counted in classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgeCounts(pub [u64; AGE_CLASSES]);

/// Upper bounds of the classes in seconds; the last class has none.
pub const AGE_BOUNDS: [u64; AGE_CLASSES - 1] = [
    60,
    300,
    900,
    3_600,
    2 * 3_600,
    6 * 3_600,
    12 * 3_600,
    86_400,
    2 * 86_400,
    3 * 86_400,
    5 * 86_400,
    7 * 86_400,
    14 * 86_400,
    30 * 86_400,
];
pub const AGE_CLASSES: usize = 15;

impl AgeCounts {
    pub fn add(&mut self, age: Duration) {
        let class = AGE_BOUNDS.partition_point(|bound| *bound < age.as_secs());
        self.0[class] += 1;
    }

    pub fn merge(&mut self, other: &AgeCounts) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The smallest class bound below which `share` of all changes lie; none without enough of them, or if the oldest
    /// class is needed.
    pub fn covering(&self, share: f64, least: u64) -> Option<Duration> {
        let total = self.total();
        if total < least {
            return None;
        }
        let mut below = 0;
        let covering = AGE_BOUNDS.iter().zip(self.0).find(|(_, count)| {
            below += count;
            below as f64 >= share * total as f64
        });
        covering.map(|(bound, _)| Duration::from_secs(*bound))
    }
}

/// As counted, and all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ages {
    pub counts: AgeCounts,
    pub sum: Duration,
}

impl Ages {
    pub fn add(&mut self, age: Duration) {
        self.counts.add(age);
        self.sum = self.sum.saturating_add(age);
    }

    pub fn merge(&mut self, other: &Ages) {
        self.counts.merge(&other.counts);
        self.sum = self.sum.saturating_add(other.sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_fall_into_the_first_class_that_holds_them() {
        let mut ages = AgeCounts::default();
        for seconds in [0, 60, 61, 14 * 86_400, 400 * 86_400] {
            ages.add(Duration::from_secs(seconds));
        }
        assert_eq!((ages.0[0], ages.0[1], ages.0[12], ages.0[14]), (2, 1, 1, 1));
        assert_eq!(ages.total(), 5);
    }

    #[test]
    fn a_window_is_recommended_only_from_enough_changes() {
        let mut ages = AgeCounts::default();
        ages.0[3] = 990;
        ages.0[8] = 10;
        assert_eq!(ages.covering(0.99, 1_000), Some(Duration::from_secs(3_600)));
        assert_eq!(ages.covering(0.999, 1_000), Some(Duration::from_secs(2 * 86_400)));
        assert_eq!(ages.covering(0.5, 1_001), None);
        ages.0[14] = 1_000;
        assert_eq!(ages.covering(0.9, 1), None);
    }
}
