//! From a request target to what is meant.

use super::control::Act;

/// What a request target means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    Api {
        endpoint: Endpoint<'a>,
        print: Print,
    },
    /// A page about the simulator itself: no faults, no quota, no counting.
    Page(Page<'a>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint<'a> {
    Item(u64),
    MaxItem,
    Updates,
    List(List),
    User(&'a str),
    /// Firebase answers `null` for a node that does not exist.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Top,
    New,
    Best,
    Ask,
    Show,
    Job,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Print {
    Compact,
    Pretty,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page<'a> {
    Stats,
    Truth {
        from: u64,
        to: u64,
    },
    /// Names with commas between; without any, all that have changed.
    UserTruth(Option<&'a str>),
    Act {
        act: Act,
        query: &'a str,
    },
    Unknown,
}

impl Endpoint<'_> {
    pub(super) const NAMES: &'static [&'static str] = &["item", "maxitem", "updates", "list", "user", "unknown"];

    /// Into [`Endpoint::NAMES`].
    pub(super) const fn index(self) -> usize {
        match self {
            Endpoint::Item(_) => 0,
            Endpoint::MaxItem => 1,
            Endpoint::Updates => 2,
            Endpoint::List(_) => 3,
            Endpoint::User(_) => 4,
            Endpoint::Unknown => 5,
        }
    }
}

impl<'a> Route<'a> {
    pub(super) fn parse(target: &'a str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if let Some(page) = path.strip_prefix("/_sim/") {
            return Route::Page(Page::parse(page, query));
        }
        let node = path.strip_prefix("/v0/").and_then(|rest| rest.strip_suffix(".json"));
        let is_pretty = !query.is_empty() && value(query, "print") == Some("pretty");
        let print = if is_pretty { Print::Pretty } else { Print::Compact };
        Route::Api { endpoint: node.map_or(Endpoint::Unknown, endpoint), print }
    }
}

impl<'a> Page<'a> {
    fn parse(page: &str, query: &'a str) -> Self {
        if let Some(act) = Act::named(page) {
            return Page::Act { act, query };
        }
        let number = |key, missing: u64| value(query, key).map_or(Some(missing), |text| text.parse().ok());
        match (page, number("from", 0), number("to", u64::MAX)) {
            ("stats", ..) => Page::Stats,
            ("truth", Some(from), Some(to)) => Page::Truth { from, to },
            ("truth/users", ..) => Page::UserTruth(value(query, "names")),
            _ => Page::Unknown,
        }
    }
}

fn endpoint(node: &str) -> Endpoint<'_> {
    if let Some(id) = node.strip_prefix("item/") {
        return id.parse().map_or(Endpoint::Unknown, Endpoint::Item);
    }
    if let Some(name) = node.strip_prefix("user/") {
        return Endpoint::User(name);
    }
    match node {
        "maxitem" => Endpoint::MaxItem,
        "updates" => Endpoint::Updates,
        "topstories" => Endpoint::List(List::Top),
        "newstories" => Endpoint::List(List::New),
        "beststories" => Endpoint::List(List::Best),
        "askstories" => Endpoint::List(List::Ask),
        "showstories" => Endpoint::List(List::Show),
        "jobstories" => Endpoint::List(List::Job),
        _ => Endpoint::Unknown,
    }
}

pub(super) fn value<'a>(query: &'a str, key: &str) -> Option<&'a str> {
    query.split('&').filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == key).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_mean_what_the_real_api_means() {
        let api = |endpoint| Route::Api { endpoint, print: Print::Compact };
        for (target, expected) in [
            ("/v0/item/8863.json", api(Endpoint::Item(8863))),
            ("/v0/item/x.json", api(Endpoint::Unknown)),
            ("/v0/item/1", api(Endpoint::Unknown)),
            ("/v0/jobsstories.json", api(Endpoint::Unknown)),
            ("/v0/user/pg.json", api(Endpoint::User("pg"))),
            ("/v0/showstories.json?x=1", api(Endpoint::List(List::Show))),
            ("/v0/maxitem.json?print=pretty", Route::Api { endpoint: Endpoint::MaxItem, print: Print::Pretty }),
            ("/_sim/stats", Route::Page(Page::Stats)),
            ("/_sim/truth?from=3&to=9", Route::Page(Page::Truth { from: 3, to: 9 })),
            ("/_sim/truth", Route::Page(Page::Truth { from: 0, to: u64::MAX })),
            ("/_sim/truth?from=x", Route::Page(Page::Unknown)),
            ("/_sim/truth/users?names=a,b", Route::Page(Page::UserTruth(Some("a,b")))),
            ("/_sim/grow?by=2", Route::Page(Page::Act { act: Act::Grow, query: "by=2" })),
        ] {
            assert_eq!(Route::parse(target), expected, "{target}");
        }
    }
}
