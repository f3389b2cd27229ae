//! Lists that come page by page: on to an empty page, each with the last row of the one before. What fails is made smaller,
//! down to the row that cannot be listed.

use std::collections::HashSet;

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
    walked: Walked<T>,
    seen: HashSet<Key>,
    /// Rows of the server that are behind it, also those that could not be had.
    position: usize,
    limit: usize,
    /// The last page had as many rows as were asked for, so that the next is asked to show the last of them again.
    is_full: bool,
}

impl Looker {
    /// `path` ends where more can be added to it.
    pub(super) async fn walk<T: Step>(&self, path: &str, call: &Call) -> Result<Walked<T>, Failure> {
        self.walk_from(path, 0, call).await
    }

    /// What comes after so many rows.
    pub(super) async fn walk_from<T: Step>(&self, path: &str, start: usize, call: &Call) -> Result<Walked<T>, Failure> {
        for _ in 0..WALKS_MAX {
            if let Some(walked) = self.walk_once(path, start, call).await? {
                return Ok(walked);
            }
        }
        let message = format!("{path}: rows move at every look");
        Err(Failure::new(FailureKind::Broken, message))
    }

    /// None if rows moved meanwhile. A short page is not the last: rows that may not be seen can be missing from it.
    async fn walk_once<T: Step>(&self, path: &str, start: usize, call: &Call) -> Result<Option<Walked<T>>, Failure> {
        let walked = Walked { rows: Vec::new(), unlisted: Vec::new() };
        let mut walk = Walk { walked, seen: HashSet::new(), position: start, limit: PAGE, is_full: false };
        loop {
            let overlap = usize::from(walk.is_full && walk.limit > 1);
            let (limit, offset) = (walk.limit, walk.position - overlap);
            let page = format!("{path}limit={limit}&offset={offset}");
            let patience = match limit {
                PAGE => &QUICK_RETRIES[..],
                1 => &QUICK_RETRIES[..2],
                _ => &[],
            };
            match self.list_for(&page, patience, call).await {
                Ok(body) => {
                    let found = rows(&body, path)?;
                    if found.is_empty() && overlap == 0 {
                        return Ok(Some(walk.walked));
                    }
                    if !walk.add(&found, overlap, limit) {
                        return Ok(None);
                    }
                }
                Err(failure) => walk.retreat(failure)?,
            }
        }
    }
}

impl<T: Step> Walk<T> {
    /// False if the row that was to be shown again is not there.
    fn add(&mut self, found: &[&RawValue], overlap: usize, limit: usize) -> bool {
        let read: Vec<Option<T>> = found.iter().map(|raw| T::read(raw)).collect();
        let is_known = |row: &Option<T>| row.as_ref().is_some_and(|row| self.seen.contains(row.key()));
        if overlap > 0 && !read.first().is_some_and(is_known) {
            return false;
        }
        self.position += found.len() - overlap;
        self.is_full = found.len() == limit;
        for row in read {
            match row {
                Some(row) => {
                    if self.seen.insert(row.key().clone()) {
                        self.walked.rows.push(row);
                    }
                }
                None => self.walked.unlisted.push(Unlisted::nameless()),
            }
        }
        true
    }

    fn retreat(&mut self, failure: Failure) -> Result<(), Failure> {
        let may_be_the_page = is_passing(failure.kind) || failure.kind == FailureKind::Status;
        let bad_rows_max = if self.seen.is_empty() { 1 } else { BAD_ROWS_MAX };
        if !may_be_the_page || self.walked.unlisted.len() >= bad_rows_max {
            return Err(failure);
        }
        if self.limit > 1 {
            self.limit = (self.limit / SMALLER).max(1);
            return Ok(());
        }
        self.walked.unlisted.push(Unlisted { part: format!("row {}", self.position), failure });
        self.position += 1;
        (self.limit, self.is_full) = (SMALLER, false);
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
        let walked = Walked { rows: Vec::new(), unlisted: Vec::new() };
        Walk { walked, seen: HashSet::new(), position: 0, limit: PAGE, is_full: false }
    }

    fn add(walk: &mut Walk<Row>, page: &str, overlap: usize, limit: usize) -> bool {
        let rows: Vec<&RawValue> = serde_json::from_str(page).unwrap();
        walk.add(&rows, overlap, limit)
    }

    fn server() -> Failure {
        Failure::new(FailureKind::Server, "status 500")
    }

    #[test]
    fn rows_that_moved_between_pages_show_in_the_row_that_is_shown_again() {
        let mut walk = walk();
        assert!(add(&mut walk, "[1,2,3]", 0, 3));
        assert!(walk.is_full);
        assert!(add(&mut walk, "[3,4]", 1, 3));
        assert_eq!((walk.position, walk.is_full), (4, false));
        assert!(!add(&mut walk, "[6,7]", 1, 3), "row 5 has moved over the edge");
    }

    #[test]
    fn a_page_that_fails_is_made_smaller_down_to_the_row_that_is_left_out() {
        let mut walk = walk();
        add(&mut walk, "[1,2]", 0, PAGE);
        while walk.limit > 1 {
            walk.retreat(server()).unwrap();
        }
        walk.retreat(server()).unwrap();
        assert_eq!((walk.position, walk.walked.unlisted[0].part.as_str()), (3, "row 2"));
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
    fn a_row_without_a_name_is_told_of() {
        let mut walk = walk();
        assert!(add(&mut walk, r#"[1,"x",2]"#, 0, 3));
        assert_eq!((walk.walked.rows.len(), walk.walked.unlisted.len()), (2, 1));
        assert!(walk.walked.whole().is_err());
    }
}
