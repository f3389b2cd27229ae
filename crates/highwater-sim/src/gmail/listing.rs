//! `messages.list` and `threads.list`: pages of ids, newest first as far as the plan lets them.

use std::{collections::BTreeSet, ops::Bound, time::Duration};

use serde_json::{Value, json};

use super::{
    GmailSim, Inside, Outcome,
    fault::GmailFault,
    mailbox::{Entry, INVERSION_MAX_MS, Mailbox, Place, hex},
    pages::{self, At},
    plan::{SearchDate, TokenStyle},
    route::{Call, Method},
    search::Filter,
};

/// What Gmail says when there is more than one page.
const ESTIMATE: usize = 201;

impl GmailSim {
    pub(super) fn list(
        &self,
        inside: &mut Inside,
        call: &Call<'_>,
        fault: Option<GmailFault>,
        now: Duration,
    ) -> Outcome {
        let params = &call.params;
        let limit = pages::max_results(params)?;
        let wall = self.wall(now) / 1_000;
        let filter = Filter::parse(params, &inside.mailbox.catalogue, &self.plan.search, wall)?;
        let at = inside.pages.find(params, now)?;
        if fault == Some(GmailFault::EmptyPage) {
            let token = inside.pages.issue(params, at, now);
            return Ok(json!({ "nextPageToken": token, "resultSizeEstimate": ESTIMATE }));
        }
        let mailbox = &inside.mailbox;
        let whole = matching(mailbox, &filter, at);
        let found: Vec<(Place, &Entry)> = match call.method {
            Method::ThreadsList => {
                let newest = whole.filter(|(place, entry)| is_newest(mailbox, &filter, *place, entry));
                take(newest, at, limit + 1)
            }
            _ => take(whole, at, limit + 1),
        };
        let shown = &found[..limit.min(found.len())];
        let mut page = match call.method {
            Method::ThreadsList => threads(mailbox, shown),
            _ => messages(shown),
        };
        let next = (found.len() > limit).then(|| self.next_place(shown, at)).flatten();
        page["resultSizeEstimate"] = json!(if next.is_some() { ESTIMATE } else { shown.len() });
        if let Some(next) = next {
            page["nextPageToken"] = json!(inside.pages.issue(params, next, now));
        }
        Ok(page)
    }

    fn next_place(&self, shown: &[(Place, &Entry)], at: At) -> Option<At> {
        let (last, _) = shown.last()?;
        let before = if let At::Skip(count) = at { count } else { 0 };
        Some(match self.plan.list.tokens {
            TokenStyle::Key => At::Below(*last),
            TokenStyle::Offset => At::Skip(before + shown.len()),
        })
    }

    /// The `labels.get` counts.
    pub(super) fn label(&self, inside: &Inside, id: &str) -> Option<Value> {
        let mailbox = &inside.mailbox;
        let label = mailbox.catalogue.by_id(id)?;
        let with: Vec<&Entry> =
            mailbox.listed(..).map(|(_, entry)| entry).filter(|entry| entry.labels.contains(label)).collect();
        let unread = || with.iter().filter(|entry| entry.labels.contains(super::labels::Labels::UNREAD));
        let mut shown = mailbox.catalogue.one(label);
        shown["messagesTotal"] = json!(with.len());
        shown["messagesUnread"] = json!(unread().count());
        shown["threadsTotal"] = json!(with.iter().map(|entry| entry.thread).collect::<BTreeSet<_>>().len());
        shown["threadsUnread"] = json!(unread().map(|entry| entry.thread).collect::<BTreeSet<_>>().len());
        Some(shown)
    }
}

/// All matches from `at` on; only as much of the mailbox is looked at as the dates allow.
fn matching<'a>(
    mailbox: &'a Mailbox,
    filter: &'a Filter,
    at: At,
) -> impl Iterator<Item = (Place, &'a Entry)> + use<'a> {
    let by_date = filter.date == SearchDate::Internal;
    let seconds = |bound: Option<i64>| bound.filter(|_| by_date).map(|second| second.saturating_mul(1_000));
    let from = seconds(filter.from).map_or(i64::MIN, |from| from.saturating_sub(INVERSION_MAX_MS));
    let until = seconds(filter.until).map_or(i64::MAX, |until| until.saturating_add(INVERSION_MAX_MS));
    let mut top = (until, u64::MAX);
    if let At::Below(place) = at {
        top = top.min(place);
    }
    // A range must not be upside down.
    let bottom = (from, 0).min(top);
    let range = (Bound::Included(bottom), Bound::Excluded(top));
    let listed = (bottom != top).then(|| mailbox.listed(range)).into_iter().flatten();
    listed.filter(|(_, entry)| filter.matches(entry, &mailbox.author))
}

fn take<'a>(found: impl Iterator<Item = (Place, &'a Entry)>, at: At, count: usize) -> Vec<(Place, &'a Entry)> {
    let skip = if let At::Skip(skip) = at { skip } else { 0 };
    found.skip(skip).take(count).collect()
}

/// A thread stands where the newest of its messages that match does.
fn is_newest(mailbox: &Mailbox, filter: &Filter, place: Place, entry: &Entry) -> bool {
    let mut others = mailbox.thread(entry.thread).into_iter();
    !others.any(|other| mailbox.place_of(other) > place && filter.matches(other, &mailbox.author))
}

fn messages(shown: &[(Place, &Entry)]) -> Value {
    let ids = shown.iter().map(|(_, entry)| json!({ "id": hex(entry.id), "threadId": hex(entry.thread) }));
    if shown.is_empty() { json!({}) } else { json!({ "messages": ids.collect::<Vec<_>>() }) }
}

fn threads(mailbox: &Mailbox, shown: &[(Place, &Entry)]) -> Value {
    let ids = shown.iter().map(|(_, entry)| {
        let history = mailbox.thread(entry.thread).iter().map(|entry| entry.history).max().unwrap_or(entry.history);
        json!({ "id": hex(entry.thread), "snippet": "", "historyId": history.to_string() })
    });
    if shown.is_empty() { json!({}) } else { json!({ "threads": ids.collect::<Vec<_>>() }) }
}
