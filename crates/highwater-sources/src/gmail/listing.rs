//! Lists of message ids, page by page.

use std::collections::BTreeSet;

use highwater_core::{Failure, FailureKind, Key, Span};
use serde::Deserialize;

use super::{Gmail, places::Places, query::Query};
use crate::Call;

/// As many as Gmail gives at once.
const PAGE: usize = 500;
/// How often a listing is begun anew because its place was forgotten.
const RESTARTS: u32 = 5;

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Page {
    messages: Vec<Named>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

/// Which messages are listed: all that have every one of these.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Which<'a> {
    pub(super) span: Option<Span>,
    pub(super) label: Option<&'a str>,
}

/// What became of a listing with a bound.
pub(super) enum Listed {
    All {
        keys: BTreeSet<Key>,
        pages: u32,
    },
    /// There is more than was wished for.
    More,
}

impl Gmail {
    /// All of it. Where a next page begins is written nowhere: if it is a number, whatever leaves the list meanwhile hides
    /// another one. What takes more than a page is listed twice, and what either names is there.
    pub(super) async fn list(&self, which: Which<'_>, call: &Call) -> Result<BTreeSet<Key>, Failure> {
        let (mut keys, pages) = self.list_once(which, call).await?;
        if pages > 1 {
            keys.extend(self.list_once(which, call).await?.0);
        }
        Ok(keys)
    }

    /// Where much depends on it: one answer that leaves something out does no harm.
    pub(super) async fn list_twice(&self, which: Which<'_>, call: &Call) -> Result<BTreeSet<Key>, Failure> {
        let mut keys = self.list_once(which, call).await?.0;
        keys.extend(self.list_once(which, call).await?.0);
        Ok(keys)
    }

    async fn list_once(&self, which: Which<'_>, call: &Call) -> Result<(BTreeSet<Key>, u32), Failure> {
        match self.list_pages(which, u32::MAX, call).await? {
            Listed::All { keys, pages } => Ok((keys, pages)),
            Listed::More => Err(Failure::new(FailureKind::Internal, "a listing without end")),
        }
    }

    /// An empty page may be followed by others: only a page that names no next one is the last.
    pub(super) async fn list_pages(&self, which: Which<'_>, pages_max: u32, call: &Call) -> Result<Listed, Failure> {
        let mut keys = BTreeSet::new();
        let (mut pages, mut restarts) = (0, 0);
        let mut places = Places::default();
        loop {
            if pages >= pages_max {
                return Ok(Listed::More);
            }
            match self.list_page(which, places.token(), call).await {
                Ok(page) => {
                    keys.extend(page.messages.iter().map(|named| Key::from(named.id.as_str())));
                    pages += 1;
                    if !places.go_on(page.messages.len(), page.next_page_token)? {
                        return Ok(Listed::All { keys, pages });
                    }
                }
                // What was listed already stays: a key too many does no harm.
                Err(failure) if is_forgotten(&failure, &places) && restarts < RESTARTS => {
                    restarts += 1;
                    (places, pages) = (Places::default(), 0);
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn list_page(&self, which: Which<'_>, token: Option<&str>, call: &Call) -> Result<Page, Failure> {
        let mut query = Query::new("messages");
        query.add("maxResults", &PAGE.to_string()).add("includeSpamTrash", "true");
        if let Some(dates) = which.span.and_then(|span| around(span, self.seconds())) {
            query.add("q", &dates);
        }
        if let Some(label) = which.label {
            query.add("labelIds", label);
        }
        if let Some(token) = token {
            query.add("pageToken", token);
        }
        self.read(query.request(), call, self.costs().list).await
    }

    /// Whether any message is older.
    pub(super) async fn has_before(&self, seconds: i64, call: &Call) -> Result<bool, Failure> {
        let mut places = Places::default();
        loop {
            let mut query = Query::new("messages");
            query.add("maxResults", "1").add("includeSpamTrash", "true").add("q", &format!("before:{seconds}"));
            if let Some(token) = places.token() {
                query.add("pageToken", token);
            }
            let page: Page = self.read(query.request(), call, self.costs().list).await?;
            if !page.messages.is_empty() {
                return Ok(true);
            }
            if !places.go_on(0, page.next_page_token)? {
                return Ok(false);
            }
        }
    }
}

/// The place of a page that is not the first.
fn is_forgotten(failure: &Failure, places: &Places) -> bool {
    failure.kind == FailureKind::Status && places.token().is_some()
}

/// Whether the ends belong to it is written nowhere: with a second more where it begins, no second is left out by either
/// reading of two spans side by side, and what two of them name may be fetched twice. A span that begins with all mail or
/// ends with it has no end there: dates may be odd, and some lie in the future.
fn around(span: Span, now: i64) -> Option<String> {
    let after = (span.start().0 > 1).then(|| format!("after:{}", span.start().0 - 1));
    let before = (span.end().0 <= now).then(|| format!("before:{}", span.end().0));
    let dates: Vec<_> = after.into_iter().chain(before).collect();
    (!dates.is_empty()).then(|| dates.join(" "))
}

#[cfg(test)]
mod tests {
    use highwater_core::Position;

    use super::*;

    /// How many of two spans side by side name a second, if the ends of a search belong to it or do not.
    fn named(second: i64, [after_too, before_too]: [bool; 2]) -> usize {
        let spans = [(100, 200), (200, 300)].map(|(start, end)| Span::new(Position(start), Position(end)));
        let finds = |dates: &str| {
            dates.split(' ').all(|word| {
                match word.split_once(':').map(|(what, at)| (what, at.parse::<i64>().unwrap())) {
                    Some(("after", at)) => second > at || (after_too && second == at),
                    Some(("before", at)) => second < at || (before_too && second == at),
                    _ => panic!("{word}"),
                }
            })
        };
        spans.iter().filter(|span| finds(&around(**span, 1000).unwrap())).count()
    }

    #[test]
    fn spans_side_by_side_name_every_second_and_few_twice() {
        for (reading, doubles) in [([false, false], 0), ([true, false], 1), ([false, true], 1), ([true, true], 2)] {
            let named: Vec<usize> = (100..300).map(|second| named(second, reading)).collect();
            assert!(named.iter().all(|times| *times > 0), "{reading:?}");
            assert_eq!(named.iter().filter(|times| **times > 1).count(), doubles, "{reading:?}");
        }
    }

    #[test]
    fn a_span_is_asked_for_with_room_where_it_begins_and_open_where_mail_is() {
        let asked = |start, end| around(Span::new(Position(start), Position(end)), 1000);
        assert_eq!(asked(100, 200).as_deref(), Some("after:99 before:200"));
        assert_eq!(asked(0, 200).as_deref(), Some("before:200"));
        assert_eq!(asked(900, 1001).as_deref(), Some("after:899"));
        assert_eq!(asked(0, 1001), None);
    }
}
