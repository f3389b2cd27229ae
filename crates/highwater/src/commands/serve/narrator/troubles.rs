//! A trouble that many meet at once, and again at every try, is told once until it is over; one that comes and goes, once a
//! minute.

use std::time::Duration;

use highwater_core::{Event, Moment};

const PERIOD: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Troubles {
    store: Trouble,
    source: Trouble,
}

#[derive(Debug, Default)]
struct Trouble {
    is_told: bool,
    told_at: Option<Moment>,
}

impl Troubles {
    /// Whether the event is worth a line.
    pub(super) fn admit(&mut self, event: &Event, now: Moment) -> bool {
        match event {
            Event::StoreTrouble { .. } => self.store.begins(now),
            Event::StoreHealed => self.store.ends(),
            Event::OutageConfirmed { .. } => self.source.begins(now),
            Event::OutageOver => self.source.ends(),
            _ => true,
        }
    }
}

impl Trouble {
    fn begins(&mut self, now: Moment) -> bool {
        if self.is_told || self.told_at.is_some_and(|at| now.since(at) < PERIOD) {
            return false;
        }
        (self.is_told, self.told_at) = (true, Some(now));
        true
    }

    /// What nobody heard of needs no end.
    fn ends(&mut self) -> bool {
        std::mem::take(&mut self.is_told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(events: impl IntoIterator<Item = (u64, Event)>) -> Vec<u64> {
        let mut troubles = Troubles::default();
        let told = events.into_iter().filter(|(at, event)| {
            let now = Moment::START + Duration::from_millis(*at);
            troubles.admit(event, now)
        });
        told.map(|(at, _)| at).collect()
    }

    fn trouble() -> Event {
        Event::StoreTrouble { error: "no room".into() }
    }

    #[test]
    fn a_trouble_is_told_once_until_it_is_over() {
        let long = (0..1_000).map(|try_| (try_ * 200, trouble()));
        let healed = [(200_000, Event::StoreHealed), (200_001, Event::StoreHealed), (300_000, trouble())];
        assert_eq!(log(long.chain(healed)), [0, 200_000, 300_000]);
    }

    #[test]
    fn a_trouble_that_comes_and_goes_is_told_once_a_minute() {
        let flapping =
            (0..150).flat_map(|second| [(second * 1_000, trouble()), (second * 1_000 + 1, Event::StoreHealed)]);
        assert_eq!(log(flapping), [0, 1, 60_000, 60_001, 120_000, 120_001]);
    }

    #[test]
    fn the_store_and_the_source_have_troubles_of_their_own() {
        let out = Event::OutageConfirmed { kind: None, probe_at: Moment::START };
        let events = [(0, trouble()), (1, out.clone()), (2, out), (3, Event::OutageOver), (4, Event::StoreHealed)];
        assert_eq!(log(events), [0, 1, 3, 4]);
    }
}
