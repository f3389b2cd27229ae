//! The mailbox's own record of changes, and full listings to compare with when it does not go back far enough.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use highwater_core::{Edit, Failure, FailureKind, Key, Otherwise, Position, Span, Tiding, Timestamp, Value, texts};
use serde::Deserialize;

use super::{
    Gmail,
    listing::Which,
    query::Query,
    schema::{DELETED, LABELS},
};
use crate::{Call, Census, Changes, Mark, Since};

const PAGE: &str = "500";
const TYPES: [&str; 4] = ["messageAdded", "messageDeleted", "labelAdded", "labelRemoved"];
/// How often a chain of pages is begun anew because its place was forgotten.
const RESTARTS: u32 = 5;

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Page {
    history: Vec<Entry>,
    next_page_token: Option<String>,
    history_id: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    id: String,
    messages_added: Vec<About>,
    messages_deleted: Vec<About>,
    labels_added: Vec<About>,
    labels_removed: Vec<About>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct About {
    message: Message,
    #[serde(default)]
    label_ids: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    id: String,
    #[serde(default)]
    label_ids: Option<Vec<String>>,
}

/// What a whole chain of pages says of one message.
#[derive(Default)]
struct Story {
    edits: Vec<Edit>,
    is_new: bool,
    is_gone: bool,
    /// None if the last change did not tell: then it may have any.
    labels: Option<Vec<String>>,
}

impl Gmail {
    async fn chain(&self, mark: &str, now: Timestamp, call: &Call) -> Result<Since, Failure> {
        let mut restarts = 0;
        loop {
            match self.chain_once(mark, now, call).await {
                Err(failure) if is_forgotten(&failure) => return Ok(Since::Expired),
                Err(failure) if failure.kind == FailureKind::Status && restarts < RESTARTS => restarts += 1,
                told => return told,
            }
        }
    }

    /// Later pages name later ends of the record; what happened between belongs to the next time.
    async fn chain_once(&self, mark: &str, now: Timestamp, call: &Call) -> Result<Since, Failure> {
        let mut entries = Vec::new();
        let mut upto = None;
        let mut token: Option<String> = None;
        loop {
            let page = self.history_page(mark, token.as_deref(), call).await?;
            upto = upto.or(page.history_id);
            entries.extend(page.history);
            match page.next_page_token.filter(|next| !next.is_empty()) {
                Some(next) => token = Some(next),
                None => break,
            }
        }
        let tidings = stories(entries, now).into_iter().map(|(key, story)| self.tiding(key, story)).collect();
        Ok(Since::Told { tidings, upto: upto.unwrap_or_else(|| mark.to_owned()) })
    }

    async fn history_page(&self, mark: &str, token: Option<&str>, call: &Call) -> Result<Page, Failure> {
        let mut query = Query::new("history");
        query.add("startHistoryId", mark).add("maxResults", PAGE);
        for kind in TYPES {
            query.add("historyTypes", kind);
        }
        if let Some(token) = token {
            query.add("pageToken", token);
        }
        self.read(query.request(), call, self.costs().history).await
    }

    /// What is new and known to be left out is not fetched to find that out.
    fn tiding(&self, key: Key, story: Story) -> Tiding {
        let labels = story.labels.iter().flatten().map(String::as_str);
        let otherwise = match self.policy.reason(labels) {
            Some(reason) if story.is_new => Otherwise::Exclude { reason },
            _ => Otherwise::Fetch,
        };
        let mut edits = story.edits;
        if story.is_new && !story.is_gone {
            // It may have come in after a listing that everything was compared with.
            edits.push(Edit::Set { column: DELETED, value: Value::Null });
        }
        Tiding { key, edits, otherwise }
    }

    async fn take_census(&self, from: Position, call: &Call) -> Result<Census, Failure> {
        let span = (from > Position(0)).then(|| Span::new(from, Position(FOREVER)));
        let keys = self.list(Which { span, label: None }, call).await?;
        let mut census = Census { from, keys, excluded: BTreeMap::new(), labels: BTreeMap::new() };
        for label in self.labels(call).await? {
            let which = Which { span, label: Some(&label) };
            match self.list(which, call).await {
                Ok(keys) => drop(census.labels.insert(label, keys)),
                // It was deleted meanwhile.
                Err(failure) if matches!(failure.kind, FailureKind::NotFound | FailureKind::Status) => {}
                Err(failure) => return Err(failure),
            }
        }
        for kind in self.policy.excluded() {
            let keys = census.labels.get(kind.label()).into_iter().flatten();
            census.excluded.extend(keys.map(|key| (key.clone(), kind.as_str())));
        }
        // A listing names what came in while it was made; what is only in a label's came in later.
        census.keys.extend(census.excluded.keys().cloned());
        Ok(census)
    }

    async fn labels(&self, call: &Call) -> Result<Vec<String>, Failure> {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Labels {
            labels: Vec<Label>,
        }
        #[derive(Deserialize)]
        struct Label {
            id: String,
        }
        let labels: Labels = self.read(Query::new("labels").request(), call, self.costs().labels).await?;
        Ok(labels.labels.into_iter().map(|label| label.id).collect())
    }
}

/// Beyond any date a mail can have.
const FOREVER: i64 = 32_503_680_000;

/// Order is promised and was seen broken: ids tell it.
fn stories(mut entries: Vec<Entry>, now: Timestamp) -> BTreeMap<Key, Story> {
    entries.sort_by_key(|entry| entry.id.parse::<u64>().unwrap_or(0));
    let mut stories = BTreeMap::new();
    entries.into_iter().for_each(|entry| entry.tell(&mut stories, now));
    stories
}

impl Entry {
    fn tell(self, stories: &mut BTreeMap<Key, Story>, now: Timestamp) {
        let mut tell = |about: About, is_new: bool, edit: Option<Edit>| {
            let story = stories.entry(Key::from(about.message.id.as_str())).or_default();
            story.is_new |= is_new;
            let is_gone = matches!(edit, Some(Edit::Fill { .. }));
            story.is_gone |= is_gone;
            story.edits.extend(edit);
            if !is_gone {
                story.labels = about.message.label_ids;
            }
        };
        for about in self.messages_added {
            tell(about, true, None);
        }
        for about in self.labels_added {
            let edit = Edit::Add { column: LABELS, members: about.label_ids.clone() };
            tell(about, false, Some(edit));
        }
        for about in self.labels_removed {
            let edit = Edit::Remove { column: LABELS, members: about.label_ids.clone() };
            tell(about, false, Some(edit));
        }
        for about in self.messages_deleted {
            tell(about, false, Some(Edit::Fill { column: DELETED, value: Value::Time(now) }));
        }
    }
}

/// 404, though other services of Google's say 410.
fn is_forgotten(failure: &Failure) -> bool {
    failure.kind == FailureKind::NotFound
}

impl Changes for Gmail {
    fn mark<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Mark, Failure>> {
        Box::pin(async move {
            let profile = self.profile(call).await?;
            Ok(Mark { place: profile.history_id, objects: Some(profile.messages_total) })
        })
    }

    fn since<'a>(&'a self, mark: &'a str, now: Timestamp, call: &'a Call) -> BoxFuture<'a, Result<Since, Failure>> {
        Box::pin(self.chain(mark, now, call))
    }

    fn census<'a>(&'a self, from: Position, call: &'a Call) -> BoxFuture<'a, Result<Census, Failure>> {
        Box::pin(self.take_census(from, call))
    }

    fn compared(&self) -> &'static [&'static str] {
        &["internal_date", LABELS, DELETED]
    }

    fn compare(&self, census: &Census, key: &Key, values: &[Value], now: Timestamp) -> Vec<Edit> {
        let [date, labels, deleted] = values else { return Vec::new() };
        let is_told_of = matches!(date, Value::Int(millis) if millis.div_euclid(1000) >= census.from.0);
        let mut edits = Vec::new();
        if !census.keys.contains(key) {
            if is_told_of && *deleted == Value::Null {
                edits.push(Edit::Fill { column: DELETED, value: Value::Time(now) });
            }
            return edits;
        }
        if *deleted != Value::Null {
            edits.push(Edit::Set { column: DELETED, value: Value::Null });
        }
        let before = texts(labels);
        let unlisted = before.iter().filter(|label| !census.labels.contains_key(*label)).cloned();
        let listed = census.labels.iter().filter(|(_, keys)| keys.contains(key)).map(|(label, _)| label.clone());
        let mut members: Vec<_> = unlisted.chain(listed).collect();
        members.sort_unstable();
        if members != before {
            edits.push(Edit::Replace { column: LABELS, members });
        }
        edits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_a_message_are_told_in_the_order_they_happened() {
        let change = |id: &str, what: &str| -> Entry {
            let about = serde_json::json!({ "message": { "id": "m" }, "labelIds": ["STARRED"] });
            serde_json::from_value(serde_json::json!({ "id": id, what: [about] })).unwrap()
        };
        // Each is one digit longer than the one before it.
        let entries =
            vec![change("1001", "labelsRemoved"), change("99", "messagesAdded"), change("100", "labelsAdded")];
        let stories = stories(entries, Timestamp::EPOCH);
        let members = vec!["STARRED".to_owned()];
        let expected =
            [Edit::Add { column: LABELS, members: members.clone() }, Edit::Remove { column: LABELS, members }];
        assert_eq!(stories[&Key::from("m")].edits, expected);
    }
}
