//! Lists that come page by page, each with the last row of the one before, which tells whether rows have moved: then the
//! list is walked again. What fails is made smaller, down to the row that cannot be listed.

use std::{collections::HashMap, ops::Range, time::Duration};

use highwater_core::{Failure, FailureKind, Key};
use serde_json::value::RawValue;

use super::{Looker, QUICK_RETRIES, listing::rows, reply::is_passing};
use crate::{Call, Unlisted};

/// Nobody says how much a server gives at once.
pub(super) const PAGE: usize = 500;
/// A list that changes at every look is not going to be found in one state.
const WALKS_MAX: u32 = 3;
/// By how much less is asked for after a failure.
const SMALLER: usize = 8;
/// A list with more rows that fail is one that fails, and so is one that begins with two of them.
const BAD_ROWS_MAX: usize = 10;
/// Where rows are hidden or many were added, some pages in a row show nothing new.
const STALE_PAGES_MAX: u32 = 10;

/// A row of a list that is walked.
pub(super) trait Step: Sized {
    /// None if it has no name.
    fn read(raw: &RawValue) -> Option<Self>;
    fn key(&self) -> &Key;
}

/// All rows, and those that could not be had.
pub(super) struct Walked<T> {
    pub(super) rows: Vec<T>,
    pub(super) unlisted: Vec<Unlisted>,
    /// Of walks that were begun anew, what the last has not shown: most likely gone since.
    pub(super) earlier: Vec<T>,
}

impl<T> Walked<T> {
    /// All of it, or why not.
    pub(super) fn whole(self) -> Result<Vec<T>, Failure> {
        match self.unlisted.into_iter().next() {
            Some(unlisted) => Err(unlisted.failure),
            None => Ok(self.rows),
        }
    }
}

/// How far a walk has come.
struct Walk<T> {
    rows: Vec<T>,
    unlisted: Vec<Unlisted>,
    /// The order in which rows came.
    places: HashMap<Key, usize>,
    /// Rows that came, also those without a name.
    count: usize,
    /// Rows of the server that are behind it, also those that could not be had.
    position: usize,
    limit: usize,
    /// The next page is asked to show the last row again.
    overlaps: bool,
    stale_pages: u32,
    /// The page before, and the keys of its rows.
    before: Option<(Ask, Vec<Option<Key>>)>,
    /// Rows are not where they were when it began, and some of them may have been missed.
    has_moved: bool,
}

/// A page to ask for.
#[derive(Clone, Copy)]
struct Ask {
    offset: usize,
    limit: usize,
    /// Its first row is known, if nothing has moved.
    overlaps: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Onward,
    End,
}

impl Looker {
    /// `path` ends where more can be added to it.
    pub(super) async fn walk<T: Step>(&self, path: &str, call: &Call) -> Result<Walked<T>, Failure> {
        self.walk_from(path, 0, call).await
    }

    /// What comes after so many rows.
    pub(super) async fn walk_from<T: Step>(&self, path: &str, start: usize, call: &Call) -> Result<Walked<T>, Failure> {
        let mut earlier: Vec<T> = Vec::new();
        for walks_left in (0..WALKS_MAX).rev() {
            let mut walk = Walk::new(start);
            self.go(&mut walk, path, walks_left > 0, call).await?;
            earlier.retain(|row| !walk.places.contains_key(row.key()));
            let Walk { mut rows, mut unlisted, has_moved, .. } = walk;
            if !has_moved {
                return Ok(Walked { rows, unlisted, earlier });
            }
            earlier.append(&mut rows);
            if walks_left == 0 {
                let failure = Failure::new(FailureKind::Broken, format!("{path}: rows move at every look"));
                unlisted.push(Unlisted { part: "rows that move".into(), failure });
                return Ok(Walked { rows: earlier, unlisted, earlier: Vec::new() });
            }
        }
        unreachable!("the last walk is taken as it is")
    }

    /// To the end, or until rows are seen to have moved if there is time for another walk. A short page is not the last:
    /// rows that may not be seen can be missing from it, and a server may give less than it is asked for.
    async fn go<T: Step>(&self, walk: &mut Walk<T>, path: &str, may_turn: bool, call: &Call) -> Result<(), Failure> {
        while !(walk.has_moved && may_turn) {
            let ask = walk.ask();
            let patience = match walk.limit {
                PAGE => &QUICK_RETRIES[..],
                1 => &QUICK_RETRIES[..2],
                _ => &[],
            };
            let page = match self.page_of(path, ask, patience, call).await {
                Ok(page) => page,
                Err(failure) => {
                    walk.retreat(failure)?;
                    continue;
                }
            };
            if let (true, Some((before, shown))) = (walk.is_doubtful(&page, ask), &walk.before) {
                let again = self.page_of::<T>(path, *before, &QUICK_RETRIES, call).await?;
                walk.has_moved |= keys_of(&again) != *shown;
            }
            match walk.add(page, ask) {
                Course::End => return Ok(()),
                Course::Onward if walk.stale_pages < STALE_PAGES_MAX => {}
                Course::Onward => {
                    walk.give_up(path);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    async fn page_of<T: Step>(
        &self,
        path: &str,
        ask: Ask,
        patience: &[Duration],
        call: &Call,
    ) -> Result<Vec<Option<T>>, Failure> {
        let page = format!("{path}limit={}&offset={}", ask.limit, ask.offset);
        let body = self.list_for(&page, patience, call).await?;
        Ok(rows(&body, path)?.into_iter().map(T::read).collect())
    }
}

fn keys_of<T: Step>(page: &[Option<T>]) -> Vec<Option<Key>> {
    page.iter().map(|row| row.as_ref().map(|row| row.key().clone())).collect()
}

impl<T: Step> Walk<T> {
    fn new(start: usize) -> Self {
        Walk {
            rows: Vec::new(),
            unlisted: Vec::new(),
            places: HashMap::new(),
            count: 0,
            position: start,
            limit: PAGE,
            overlaps: false,
            stale_pages: 0,
            before: None,
            has_moved: false,
        }
    }

    fn ask(&self) -> Ask {
        let overlap = usize::from(self.overlaps);
        Ask { offset: self.position - overlap, limit: self.limit.max(1 + overlap), overlaps: self.overlaps }
    }

    fn add(&mut self, page: Vec<Option<T>>, ask: Ask) -> Course {
        if page.is_empty() {
            self.has_moved |= ask.overlaps;
            return Course::End;
        }
        let (length, count, known) = (page.len(), self.count, self.known(&page, ask));
        self.has_moved |= known.is_none();
        let is_last_again = length == 1 && ask.overlaps && known == Some(self.last());
        self.before = Some((ask, keys_of(&page)));
        for row in page.into_iter().skip(known.map_or(0, |known| known.len())) {
            self.take(row);
        }
        self.stale_pages = if self.count > count { 0 } else { self.stale_pages + 1 };
        self.position = ask.offset + length;
        // One row alone is no step forward: what comes after it is asked for.
        self.overlaps = length > 1;
        // Of small pages a row that comes alone may be followed by hidden ones.
        if is_last_again && self.limit == PAGE { Course::End } else { Course::Onward }
    }

    /// Whether rows have moved back, or some are hidden, of the page before: the latter shows the same if it is asked for
    /// again.
    fn is_doubtful(&self, page: &[Option<T>], ask: Ask) -> bool {
        let expected = if ask.overlaps { self.last() } else { self.count..self.count };
        !self.has_moved && page.len() > 1 && self.known(page, ask).is_some_and(|known| known != expected)
    }

    fn last(&self) -> Range<usize> {
        self.count.saturating_sub(1)..self.count
    }

    /// The places of the rows with which a page begins, as far as they came before and in the same order; none if they
    /// did not come in this order, or what was to be shown again is not there.
    fn known(&self, page: &[Option<T>], ask: Ask) -> Option<Range<usize>> {
        let first = match page.first()? {
            Some(row) => self.places.get(row.key()).copied(),
            None => self.count.checked_sub(1).filter(|_| ask.overlaps),
        };
        let Some(first) = first else { return (!ask.overlaps).then_some(self.count..self.count) };
        let length = page.len().min(self.count - first);
        let is_there = |(place, row): (usize, &Option<T>)| {
            row.as_ref().is_none_or(|row| self.places.get(row.key()) == Some(&(first + place)))
        };
        page[..length].iter().enumerate().all(is_there).then_some(first..first + length)
    }

    fn take(&mut self, row: Option<T>) {
        match row {
            Some(row) if self.places.contains_key(row.key()) => self.has_moved = true,
            Some(row) => {
                self.places.insert(row.key().clone(), self.count);
                self.rows.push(row);
                self.count += 1;
            }
            None => {
                self.unlisted.push(Unlisted::nameless());
                self.count += 1;
            }
        }
    }

    /// The server shows again and again what it has shown.
    fn give_up(&mut self, path: &str) {
        let message = format!("{path}: {STALE_PAGES_MAX} pages in a row show nothing new, whatever their offset");
        let part = format!("what comes after {} rows", self.count);
        self.unlisted.push(Unlisted { part, failure: Failure::new(FailureKind::Malformed, message) });
    }

    fn retreat(&mut self, failure: Failure) -> Result<(), Failure> {
        let may_be_the_page = is_passing(failure.kind) || failure.kind == FailureKind::Status;
        let bad_rows_max = if self.count == 0 { 1 } else { BAD_ROWS_MAX };
        if !may_be_the_page || self.unlisted.len() >= bad_rows_max {
            return Err(failure);
        }
        if self.limit > 1 {
            self.limit = (self.limit / SMALLER).max(1);
            return Ok(());
        }
        self.unlisted.push(Unlisted { part: format!("row {}", self.position), failure });
        self.position += 1;
        (self.limit, self.overlaps) = (SMALLER, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row(Key);

    impl Step for Row {
        fn read(raw: &RawValue) -> Option<Self> {
            raw.get().parse().ok().map(|number| Row(Key::Number(number)))
        }

        fn key(&self) -> &Key {
            &self.0
        }
    }

    fn walk() -> Walk<Row> {
        Walk::new(0)
    }

    fn add(walk: &mut Walk<Row>, page: &str) -> Course {
        let (rows, ask): (Vec<&RawValue>, _) = (serde_json::from_str(page).unwrap(), walk.ask());
        walk.add(rows.into_iter().map(Row::read).collect(), ask)
    }

    /// A walk with these pages, and whether it noticed that rows moved.
    fn moves(pages: &[&str]) -> bool {
        let mut walk = walk();
        let ends: Vec<_> = pages.iter().map(|page| add(&mut walk, page)).collect();
        assert!(ends[..ends.len() - 1].iter().all(|course| *course == Course::Onward), "{ends:?}");
        walk.has_moved
    }

    fn server() -> Failure {
        Failure::new(FailureKind::Server, "status 500")
    }

    #[test]
    fn rows_that_moved_between_pages_show_in_the_rows_that_are_shown_again() {
        for quiet in [&["[1,2,3]", "[3,4]", "[4]"][..], &["[1]", "[]"], &["[1]", "[2,3]"], &["[]"]] {
            assert!(!moves(quiet), "{quiet:?}");
        }
        for moved in [&["[1,2,3]", "[5,6]"][..], &["[1,2,3]", "[]"], &["[1,2,3]", "[2,4]"], &["[1,2,3]", "[3,4,1]"]] {
            assert!(moves(moved), "{moved:?}");
        }
    }

    #[test]
    fn a_row_behind_hidden_ones_may_come_again_with_those_before_it() {
        // Rows 2 to 8 of ten are hidden: the page that begins with the third has what the first one had.
        let mut walk = walk();
        for (page, is_doubtful) in [("[1,9,10]", false), ("[9,10,11,12]", true), ("[12]", false)] {
            let rows: Vec<&RawValue> = serde_json::from_str(page).unwrap();
            let rows: Vec<Option<Row>> = rows.into_iter().map(Row::read).collect();
            assert_eq!(walk.is_doubtful(&rows, walk.ask()), is_doubtful, "{page}");
            add(&mut walk, page);
        }
        assert!(!walk.has_moved);
    }

    #[test]
    fn the_end_is_where_only_the_last_row_comes_again() {
        let mut walk = walk();
        assert_eq!(["[1,2]", "[2,3]", "[3]"].map(|page| add(&mut walk, page)).last(), Some(&Course::End));
        assert_eq!((walk.position, walk.count), (3, 3));
    }

    #[test]
    fn a_page_that_fails_is_made_smaller_down_to_the_row_that_is_left_out() {
        let mut walk = walk();
        add(&mut walk, "[1,2]");
        while walk.limit > 1 {
            walk.retreat(server()).unwrap();
        }
        let Ask { offset, limit, .. } = walk.ask();
        assert_eq!((offset, limit), (1, 2), "also a single row is asked for with the one before it");
        walk.retreat(server()).unwrap();
        assert_eq!((walk.position, walk.unlisted[0].part.as_str()), (3, "row 2"));
        assert!(walk.limit > 1);
        assert!(walk.retreat(Failure::new(FailureKind::Forbidden, "status 403")).is_err());
    }

    #[test]
    fn a_list_that_begins_with_rows_that_fail_is_given_up() {
        let mut walk = walk();
        let failures = (0..100).take_while(|_| walk.retreat(server()).is_ok()).count();
        assert!(failures < 10, "{failures} requests in vain");
    }

    #[test]
    fn a_row_without_a_name_is_told_of_once() {
        let mut walk = walk();
        for page in [r#"[1,"x",2,"y"]"#, r#"["y",3]"#] {
            assert_eq!(add(&mut walk, page), Course::Onward);
        }
        assert_eq!((walk.rows.len(), walk.unlisted.len(), walk.has_moved), (3, 2, false));
        let Walk { rows, unlisted, .. } = walk;
        assert!(Walked { rows, unlisted, earlier: Vec::new() }.whole().is_err());
    }
}
