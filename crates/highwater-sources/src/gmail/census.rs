//! Full listings of a mailbox, and how stored rows differ from them.

use std::collections::BTreeSet;

use highwater_core::{Edit, Failure, FailureKind, Key, Position, Span, Timestamp, Value, texts};
use serde::Deserialize;

use super::{
    Gmail,
    listing::Which,
    message,
    query::Query,
    schema::{DELETED, LABELS},
};
use crate::{Call, Census, Known};

pub(super) const COMPARED: [&str; 2] = [LABELS, DELETED];

impl Gmail {
    /// Dates decide only what is not to be fetched: searches may lag behind, and what is gone is gone at any date.
    pub(super) async fn take_census(&self, known: &Known, call: &Call) -> Result<Census, Failure> {
        let mut census = Census { keys: self.list_twice(Which::default(), call).await?, ..Census::default() };
        let mut labels = self.labels(call).await?;
        labels.extend(known.labels.keys().cloned());
        // Some can be listed by and are not named.
        labels.extend(self.policy.excluded().map(|kind| kind.label().to_owned()));
        for label in labels {
            self.add_label(&mut census, label, known, call).await?;
        }
        for kind in self.policy.excluded() {
            let keys = census.labels.get(kind.label()).into_iter().flatten();
            census.excluded.extend(keys.map(|key| (key.clone(), kind.as_str())));
        }
        // What any listing names is there: it may have come in after the first, or be left out of it by mistake.
        census.keys.extend(census.labels.values().flatten().cloned());
        // The end may belong to what is listed, and nothing is to be left out.
        let older = Span::new(Position(0), known.from.minus(1).max(Position(0)));
        if !older.is_empty() {
            census.older = self.list(Which { span: Some(older), label: None }, call).await?;
        }
        Ok(census)
    }

    /// Who has a label; it is left out if that cannot be told.
    async fn add_label(&self, census: &mut Census, label: String, known: &Known, call: &Call) -> Result<(), Failure> {
        match self.list(Which { span: None, label: Some(&label) }, call).await {
            Ok(keys) => drop(census.labels.insert(label, keys)),
            Err(failure) if is_unknown(&failure) => {
                let wearers = known.labels.get(&label).into_iter().flatten();
                let wearers: Vec<_> = wearers.filter(|key| census.keys.contains(*key)).collect();
                if self.is_gone(&label, &wearers, call).await? {
                    census.labels.insert(label, BTreeSet::new());
                }
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Messages may have labels that cannot be listed. Whether a label is one of these, or was deleted, those know that had
    /// it.
    async fn is_gone(&self, label: &str, wearers: &[&Key], call: &Call) -> Result<bool, Failure> {
        for key in wearers {
            if self.has_label(key, label, call).await? {
                return Ok(false);
            }
        }
        Ok(!wearers.is_empty())
    }

    async fn has_label(&self, key: &Key, label: &str, call: &Call) -> Result<bool, Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Labelled {
            #[serde(default)]
            label_ids: Vec<String>,
        }
        match self.read::<Labelled>(message::summary_request(key), call, self.costs().get).await {
            Ok(labelled) => Ok(labelled.label_ids.iter().any(|id| id == label)),
            // It is gone, and tells nothing.
            Err(failure) if failure.kind == FailureKind::NotFound => Ok(true),
            Err(failure) => Err(failure),
        }
    }

    async fn labels(&self, call: &Call) -> Result<BTreeSet<String>, Failure> {
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

/// No such label, or not any more.
pub(super) fn is_unknown(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::NotFound | FailureKind::Status)
}

pub(super) fn labels_of(values: &[Value]) -> Vec<String> {
    match values {
        [labels, Value::Null] => texts(labels),
        _ => Vec::new(),
    }
}

pub(super) fn compare(census: &Census, key: &Key, values: &[Value], now: Timestamp) -> Vec<Edit> {
    let [labels, deleted] = values else { return Vec::new() };
    let is_gone = *deleted != Value::Null;
    if !census.keys.contains(key) {
        let gone = Edit::Fill { column: DELETED, value: Value::Time(now) };
        return if is_gone { Vec::new() } else { vec![gone] };
    }
    let mut edits = Vec::new();
    if is_gone {
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
