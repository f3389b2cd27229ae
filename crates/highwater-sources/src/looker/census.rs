//! What a list has shown: which objects there are, in which order, and where the body of each is best asked for.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
};

use highwater_core::{Failure, Key};

use super::{group::Group, listing::Listed, walking::Walked};
use crate::{Roll, Unlisted};

/// Everything of one type, as one look at it found it.
#[derive(Default)]
pub(super) struct Census {
    /// In the order in which they are best asked for.
    order: Vec<Key>,
    spots: HashMap<Key, Spot>,
    pub(super) sections: Vec<Arc<Section>>,
    /// Of lists that have them; taken out when they are asked for.
    bodies: Mutex<HashMap<Key, String>>,
    /// What was listed is listed again: who is still in it was there all the time.
    pub(super) is_second: bool,
    strays: BTreeSet<Key>,
    pub(super) unlisted: Vec<Unlisted>,
    /// Some of it could not be listed, or was not looked for: what is not listed need not be gone.
    pub(super) has_gaps: bool,
}

/// Where the body of an object is.
#[derive(Clone)]
pub(super) enum Spot {
    /// In an answer that has others as well, in an order that is known.
    Page { section: usize, place: usize },
    /// In an answer that has others as well, all of them.
    Group(Arc<Group>),
    /// By itself.
    Alone,
}

/// Objects that come in pages.
pub(super) struct Section {
    /// Path and query of its pages, to which more can be added.
    pub(super) path: String,
    /// In the order of the server.
    pub(super) ids: Vec<Key>,
    /// By how much rows have moved towards the beginning since they were listed.
    drift: AtomicI64,
}

impl Section {
    pub(super) fn new(path: String, ids: Vec<Key>) -> Self {
        Section { path, ids, drift: AtomicI64::new(0) }
    }

    /// Where the row of a place is now.
    pub(super) fn offset_of(&self, place: usize) -> usize {
        let moved = place as i64 - self.drift.load(Ordering::Relaxed);
        usize::try_from(moved).unwrap_or(0)
    }

    /// A page that was asked for at `offset` began with the row of another place than was thought.
    pub(super) fn learn(&self, offset: usize, place: usize) {
        self.drift.store(place as i64 - offset as i64, Ordering::Relaxed);
    }
}

impl Census {
    pub(super) fn add_section(&mut self, section: Section) {
        let number = self.sections.len();
        for (place, key) in section.ids.iter().enumerate() {
            self.add(key.clone(), Spot::Page { section: number, place });
        }
        self.sections.push(Arc::new(section));
    }

    /// The first place counts, if an object is listed twice.
    pub(super) fn add(&mut self, key: Key, spot: Spot) {
        if !self.spots.contains_key(&key) {
            self.order.push(key.clone());
            self.spots.insert(key, spot);
        }
    }

    pub(super) fn add_body(&mut self, key: Key, body: String) {
        self.add(key.clone(), Spot::Alone);
        self.bodies.get_mut().expect("nobody else has it yet").insert(key, body);
    }

    /// What a page has shown that the list has not. It is asked for, and not missed if it cannot be had.
    pub(super) fn add_stray(&mut self, key: Key) {
        if !self.spots.contains_key(&key) {
            self.strays.insert(key);
        }
    }

    pub(super) fn leave_out(&mut self, part: &str, failure: Failure) {
        self.unlisted.push(Unlisted { part: part.to_owned(), failure });
        self.has_gaps = true;
    }

    pub(super) fn leave_out_nameless(&mut self) {
        self.unlisted.push(Unlisted::nameless());
        self.has_gaps = true;
    }

    pub(super) fn add_walked(&mut self, path: String, walked: Walked<Listed>) {
        self.has_gaps |= !walked.unlisted.is_empty();
        self.unlisted.extend(walked.unlisted);
        self.add_section(Section::new(path, walked.rows.into_iter().map(|one| one.key).collect()));
        walked.earlier.into_iter().for_each(|one| self.add_stray(one.key));
    }

    /// Those that are in the trash now and were not before, or the other way round.
    fn moved_since(&self, before: &Census) -> Vec<Key> {
        let has_moved = |key: &&Key| before.lists(key) && before.is_trash(key) != self.is_trash(key);
        self.order.iter().filter(has_moved).cloned().collect()
    }

    fn is_trash(&self, key: &Key) -> bool {
        match self.spots.get(key) {
            Some(Spot::Page { section, .. }) => self.sections[*section].path.contains("deleted=true"),
            _ => false,
        }
    }

    pub(super) fn roll(&self, before: Option<&Census>) -> Roll {
        Roll {
            keys: self.order.iter().chain(&self.strays).cloned().collect(),
            moved: before.map(|before| self.moved_since(before)).unwrap_or_default(),
            unlisted: self.unlisted.clone(),
        }
    }

    pub(super) fn keys(&self) -> &[Key] {
        &self.order
    }

    pub(super) fn lists(&self, key: &Key) -> bool {
        self.spots.contains_key(key)
    }

    pub(super) fn spot(&self, key: &Key) -> Spot {
        self.spots.get(key).cloned().unwrap_or(Spot::Alone)
    }

    pub(super) fn place(&self, section: usize, key: &Key) -> Option<usize> {
        match self.spots.get(key)? {
            Spot::Page { section: found, place } if *found == section => Some(*place),
            _ => None,
        }
    }

    /// A body is good once: who asks again wants a newer one.
    pub(super) fn take_body(&self, key: &Key) -> Option<String> {
        self.bodies.lock().expect("no code panics while it holds this lock").remove(key)
    }

    pub(super) fn has_body(&self, key: &Key) -> bool {
        self.bodies.lock().expect("no code panics while it holds this lock").contains_key(key)
    }
}

/// How the server orders ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Number,
    Text,
}

/// Ids in either order; those that are no numbers come after those that are.
pub(super) fn sorted(ids: &[Key], order: Order) -> Vec<Key> {
    let mut ids = ids.to_vec();
    match order {
        Order::Number => ids.sort(),
        Order::Text => ids.sort_by_cached_key(Key::to_string),
    }
    ids
}

/// The first place at which the two orders differ.
pub(super) fn parting(ids: &[Key]) -> Option<usize> {
    let (numbers, texts) = (sorted(ids, Order::Number), sorted(ids, Order::Text));
    numbers.iter().zip(&texts).position(|(a, b)| a != b)
}

/// Which order the rows found from `place` on are in; none if neither.
pub(super) fn order_of(ids: &[Key], place: usize, found: &[Key]) -> Option<Order> {
    let fits = |order| sorted(ids, order)[place..].iter().zip(found).filter(|(a, b)| a == b).count();
    let (numbers, texts) = (fits(Order::Number), fits(Order::Text));
    match numbers.cmp(&texts) {
        std::cmp::Ordering::Greater => Some(Order::Number),
        std::cmp::Ordering::Less => Some(Order::Text),
        std::cmp::Ordering::Equal => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(ids: &[&str]) -> Vec<Key> {
        ids.iter().map(|id| Key::from(*id)).collect()
    }

    #[test]
    fn the_order_of_the_server_is_told_by_one_look() {
        let ids: Vec<_> = (1..=12).map(Key::Number).collect();
        let place = parting(&ids).unwrap();
        assert_eq!(place, 1);
        assert_eq!(order_of(&ids, place, &keys(&["2", "3", "4"])), Some(Order::Number));
        assert_eq!(order_of(&ids, place, &keys(&["10", "11", "12"])), Some(Order::Text));
        assert_eq!(order_of(&ids, place, &keys(&["7", "5", "1"])), None);
        assert_eq!(parting(&keys(&["10", "11", "99"])), None);
    }

    #[test]
    fn rows_that_move_are_followed() {
        let section = Section::new("x".into(), (1..=500).map(Key::Number).collect());
        assert_eq!(section.offset_of(99), 99);
        section.learn(99, 101);
        assert_eq!((section.offset_of(199), section.offset_of(1)), (197, 0));
    }

    #[test]
    fn a_body_is_good_once() {
        let mut census = Census::default();
        census.add_body(Key::from("1"), "{}".into());
        assert!(census.lists(&Key::from("1")) && census.has_body(&Key::from("1")));
        assert_eq!((census.take_body(&Key::from("1")), census.take_body(&Key::from("1"))), (Some("{}".into()), None));
    }
}
