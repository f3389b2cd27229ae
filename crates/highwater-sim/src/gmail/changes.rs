//! `history.list`: what changed after a point, in order.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    GmailSim, Inside, Outcome,
    error::ApiError,
    fault::GmailFault,
    labels::{Catalogue, Labels},
    mailbox::{Change, Record, hex},
    pages::{self, At},
    params::Params,
};

/// What a request wants to know of.
struct Wanted {
    added: bool,
    deleted: bool,
    labels_added: bool,
    labels_removed: bool,
    label: Option<Labels>,
}

impl GmailSim {
    pub(super) fn changes(
        &self,
        inside: &mut Inside,
        params: &Params,
        fault: Option<GmailFault>,
        now: Duration,
    ) -> Outcome {
        let missing = || ApiError::invalid("Missing/invalid parameter: startHistoryId");
        let start = params.first("startHistoryId").and_then(|text| text.parse().ok()).filter(|id: &u64| *id > 0);
        let start = start.ok_or_else(missing)?;
        let limit = pages::max_results(params)?;
        let wanted = Wanted::parse(params, &inside.mailbox.catalogue)?;
        let at = inside.pages.find(params, now)?;
        let current = inside.mailbox.history.current().to_string();
        // Also between pages: a chain may break off in its middle.
        let records = inside.mailbox.history.since(start, now).ok_or_else(ApiError::not_found)?;
        if fault == Some(GmailFault::EmptyPage) {
            return Ok(json!({ "historyId": current, "nextPageToken": inside.pages.issue(params, at, now) }));
        }
        let after = if let At::Record(id) = at { id } else { start };
        let catalogue = &inside.mailbox.catalogue;
        let rest = records.iter().filter(|record| record.id > after);
        let mut shown = rest.filter_map(|record| Some((record.id, wanted.show(record, catalogue)?)));
        let mut page: Vec<(u64, Value)> = shown.by_ref().take(limit).collect();
        let more = shown.next().is_some();
        let last = page.last().map(|(id, _)| *id);
        swap(&mut page, |id| inside.mailbox.history.is_swapped(id));
        let mut answer = json!({ "historyId": current });
        if !page.is_empty() {
            answer["history"] = page.into_iter().map(|(_, record)| record).collect();
        }
        if let Some(last) = last.filter(|_| more) {
            answer["nextPageToken"] = json!(inside.pages.issue(params, At::Record(last), now));
        }
        Ok(answer)
    }
}

/// Order is promised, and was seen broken.
fn swap(page: &mut [(u64, Value)], swapped: impl Fn(u64) -> bool) {
    let mut at = 0;
    while at + 1 < page.len() {
        if swapped(page[at].0) {
            page.swap(at, at + 1);
            at += 1;
        }
        at += 1;
    }
}

impl Wanted {
    fn parse(params: &Params, catalogue: &Catalogue) -> Result<Self, ApiError> {
        let types: Vec<&str> = params.all("historyTypes").collect();
        const KNOWN: [&str; 4] = ["messageAdded", "messageDeleted", "labelAdded", "labelRemoved"];
        if let Some(unknown) = types.iter().find(|name| !KNOWN.contains(name)) {
            let text = format!(
                "Invalid value at 'history_types' (type.googleapis.com/google.gmail.v1.HistoryType), \"{unknown}\""
            );
            return Err(ApiError::invalid(text));
        }
        let wants = |name| types.is_empty() || types.contains(&name);
        let label = params
            .first("labelId")
            .map(|id| catalogue.by_id(id).ok_or_else(|| ApiError::invalid(format!("Invalid label: {id}"))));
        Ok(Wanted {
            added: wants(KNOWN[0]),
            deleted: wants(KNOWN[1]),
            labels_added: wants(KNOWN[2]),
            labels_removed: wants(KNOWN[3]),
            label: label.transpose()?,
        })
    }

    /// `None` if nothing in the record is wanted.
    fn show(&self, record: &Record, catalogue: &Catalogue) -> Option<Value> {
        let message = message(record, catalogue);
        let mut shown = json!({ "id": record.id.to_string() });
        let mut any = false;
        let mut put = |key: &str, entry: Value| {
            shown[key] = json!([entry]);
            any = true;
        };
        match record.change {
            _ if !self.concerns(record) => return None,
            Change::Added if self.added => put("messagesAdded", json!({ "message": message })),
            Change::Deleted if self.deleted => put("messagesDeleted", json!({ "message": message })),
            Change::Labels { added, removed } => {
                if self.labels_added && !added.is_empty() {
                    put("labelsAdded", json!({ "message": message, "labelIds": catalogue.ids(added) }));
                }
                if self.labels_removed && !removed.is_empty() {
                    put("labelsRemoved", json!({ "message": message, "labelIds": catalogue.ids(removed) }));
                }
            }
            _ => {}
        }
        shown["messages"] = json!([{ "id": hex(record.message), "threadId": hex(record.thread) }]);
        any.then_some(shown)
    }

    fn concerns(&self, record: &Record) -> bool {
        let Some(label) = self.label else { return true };
        let changed = match record.change {
            Change::Labels { added, removed } => (added | removed).touches(label),
            _ => false,
        };
        changed || record.after.touches(label)
    }
}

fn message(record: &Record, catalogue: &Catalogue) -> Value {
    let mut message = json!({ "id": hex(record.message), "threadId": hex(record.thread) });
    if record.told && !record.after.is_empty() {
        message["labelIds"] = json!(catalogue.ids(record.after));
    }
    message
}
