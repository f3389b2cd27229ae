//! The pages of a list, from one to the next.

use std::collections::BTreeSet;

use highwater_core::{Failure, FailureKind};

/// So many pages in a row that name nothing are more than a whim of the remote.
const EMPTY_MAX: u32 = 1_000;

/// Where a walk through the pages is. Each is gone to once: a list that leads in a circle has no end.
#[derive(Default)]
pub(super) struct Places {
    token: Option<String>,
    seen: BTreeSet<String>,
    empty: u32,
}

impl Places {
    /// What to ask the page with that comes now.
    pub(super) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Goes on from a page that names so many objects; false at the end.
    pub(super) fn go_on(&mut self, named: usize, next: Option<String>) -> Result<bool, Failure> {
        let Some(next) = next.filter(|next| !next.is_empty()) else { return Ok(false) };
        self.empty = if named == 0 { self.empty + 1 } else { 0 };
        if self.empty > EMPTY_MAX {
            return Err(malformed("the listing goes on and on, and names nothing"));
        }
        if !self.seen.insert(next.clone()) {
            return Err(malformed("the listing leads back to a page that it has come from"));
        }
        self.token = Some(next);
        Ok(true)
    }
}

fn malformed(why: &str) -> Failure {
    Failure::new(FailureKind::Malformed, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk<'a>(pages: impl IntoIterator<Item = (usize, &'a str)>) -> Result<bool, FailureKind> {
        let mut places = Places::default();
        let mut goes_on = true;
        for (named, next) in pages {
            goes_on = places.go_on(named, Some(next.to_owned())).map_err(|failure| failure.kind)?;
            assert_eq!(places.token() == Some(next), goes_on);
        }
        Ok(goes_on)
    }

    #[test]
    fn a_walk_ends_with_a_page_that_names_no_next_one_or_a_former_one() {
        assert_eq!(walk([(1, "a"), (0, "b"), (1, "c")]), Ok(true));
        assert_eq!(Places::default().go_on(1, None), Ok(false));
        assert_eq!(Places::default().go_on(1, Some(String::new())), Ok(false));
        assert_eq!(walk([(1, "a"), (1, "a")]), Err(FailureKind::Malformed));
        assert_eq!(walk([(1, "a"), (1, "b"), (1, "a")]), Err(FailureKind::Malformed));
    }

    #[test]
    fn pages_may_be_empty_though_not_for_ever() {
        let tokens: Vec<String> = (0..=EMPTY_MAX).map(|nth| nth.to_string()).collect();
        let empty = || tokens.iter().map(|token| (0, token.as_str()));
        assert_eq!(walk(empty().skip(1)), Ok(true));
        assert_eq!(walk(empty()), Err(FailureKind::Malformed));
        assert_eq!(walk(empty().skip(1).chain([(1, "x"), (0, "y")])), Ok(true));
    }
}
