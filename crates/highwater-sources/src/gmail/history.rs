//! The mailbox's own record of changes.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use highwater_core::{Edit, Failure, FailureKind, Key, Otherwise, Tiding, Timestamp, Value};
use serde::Deserialize;

use super::{
    Gmail, census,
    message::INGESTED,
    places::Places,
    query::Query,
    schema::{DELETED, LABELS},
};
use crate::{Call, Census, Changes, Known, Mark, Since};

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
    /// Since when, as of the last that is told: what was deleted may be added again.
    gone_since: Option<Timestamp>,
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
                // A mark that it does not take is of as much use as one that it has forgotten.
                Err(failure) if failure.kind == FailureKind::Status => return Ok(Since::Expired),
                told => return told,
            }
        }
    }

    /// Later pages name later ends of the record; what happened between belongs to the next time.
    async fn chain_once(&self, mark: &str, now: Timestamp, call: &Call) -> Result<Since, Failure> {
        let mut entries = Vec::new();
        let mut upto = None;
        let mut places = Places::default();
        loop {
            let page = self.history_page(mark, places.token(), call).await?;
            let told = page.history.len();
            upto = upto.or(page.history_id);
            entries.extend(page.history);
            if !places.go_on(told, page.next_page_token)? {
                break;
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
            _ if story.is_new => Otherwise::Fetch,
            _ => Otherwise::Reconsider,
        };
        let mut edits = story.edits;
        match story.gone_since {
            Some(since) => edits.push(Edit::Fill { column: DELETED, value: Value::Time(since) }),
            // It may have come in after a listing that everything was compared with.
            None if story.is_new => edits.push(Edit::Set { column: DELETED, value: Value::Null }),
            None => {}
        }
        Tiding { key, edits, otherwise }
    }
}

/// Order is promised and was seen broken: ids tell it.
fn stories(mut entries: Vec<Entry>, now: Timestamp) -> BTreeMap<Key, Story> {
    entries.sort_by_key(|entry| entry.id.parse::<u64>().unwrap_or(0));
    let mut stories = BTreeMap::new();
    entries.into_iter().for_each(|entry| entry.tell(&mut stories, now));
    stories
}

impl Entry {
    fn tell(self, stories: &mut BTreeMap<Key, Story>, now: Timestamp) {
        for about in self.messages_added {
            let story = story_of(&about, stories);
            (story.is_new, story.gone_since, story.labels) = (true, None, about.message.label_ids);
        }
        for about in self.labels_added {
            let story = story_of(&about, stories);
            story.edits.push(Edit::Add { column: LABELS, members: about.label_ids });
            story.labels = about.message.label_ids;
        }
        for about in self.labels_removed {
            let story = story_of(&about, stories);
            story.edits.push(Edit::Remove { column: LABELS, members: about.label_ids });
            story.labels = about.message.label_ids;
        }
        for about in self.messages_deleted {
            story_of(&about, stories).gone_since = Some(now);
        }
    }
}

fn story_of<'a>(about: &About, stories: &'a mut BTreeMap<Key, Story>) -> &'a mut Story {
    stories.entry(Key::from(about.message.id.as_str())).or_default()
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

    fn census<'a>(&'a self, known: &'a Known, call: &'a Call) -> BoxFuture<'a, Result<Census, Failure>> {
        Box::pin(self.take_census(known, call))
    }

    fn leaves_out(&self, reason: &str) -> bool {
        self.policy.leaves_out(reason)
    }

    fn storing(&self) -> &'static str {
        INGESTED
    }

    fn compared(&self) -> &'static [&'static str] {
        &census::COMPARED
    }

    fn labels_of(&self, values: &[Value]) -> Vec<String> {
        census::labels_of(values)
    }

    fn compare(&self, census: &Census, key: &Key, values: &[Value], now: Timestamp) -> Vec<Edit> {
        census::compare(census, key, values, now)
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
    #[test]
    fn what_was_deleted_and_added_again_is_there() {
        let change = |id: &str, what: &str| -> Entry {
            serde_json::from_value(serde_json::json!({ "id": id, what: [{ "message": { "id": "m" } }] })).unwrap()
        };
        let gone_since = |entries| stories(entries, Timestamp::EPOCH)[&Key::from("m")].gone_since;
        let back = vec![change("1", "messagesDeleted"), change("2", "messagesAdded")];
        assert_eq!(gone_since(back), None);
        let gone = vec![change("1", "messagesAdded"), change("2", "messagesDeleted")];
        assert_eq!(gone_since(gone), Some(Timestamp::EPOCH));
    }
}
