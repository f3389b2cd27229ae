//! Partial answers: `fields=messages(id,payload/headers),nextPageToken`.

use serde_json::{Map, Value};

use super::{error::ApiError, params::Params};

/// Every name in the answers of the methods that are simulated; Google refuses others.
const KNOWN: [&str; 48] = [
    "attachmentId",
    "backgroundColor",
    "body",
    "classificationLabelValues",
    "color",
    "data",
    "emailAddress",
    "filename",
    "headers",
    "history",
    "historyId",
    "id",
    "internalDate",
    "labelIds",
    "labelListVisibility",
    "labels",
    "labelsAdded",
    "labelsRemoved",
    "message",
    "messageListVisibility",
    "messages",
    "messagesAdded",
    "messagesDeleted",
    "messagesTotal",
    "messagesUnread",
    "mimeType",
    "name",
    "nextPageToken",
    "partId",
    "parts",
    "payload",
    "raw",
    "resultSizeEstimate",
    "size",
    "sizeEstimate",
    "snippet",
    "textColor",
    "threadId",
    "threads",
    "threadsTotal",
    "threadsUnread",
    "type",
    "value",
    "error",
    "code",
    "status",
    "details",
    "*",
];

/// Names, each with what is wanted below it; nothing below means all of it.
#[derive(Debug, PartialEq)]
pub(super) struct Fields(Vec<(String, Option<Fields>)>);

impl Fields {
    /// `None` where everything is wanted.
    pub(super) fn of(params: &Params) -> Result<Option<Self>, ApiError> {
        let Some(text) = params.first("fields") else { return Ok(None) };
        let mut rest = text;
        match Fields::list(&mut rest) {
            Some(fields) if rest.is_empty() => Ok(Some(fields)),
            _ => Err(ApiError::invalid(format!("Invalid field selection {text}"))),
        }
    }

    pub(super) fn apply(&self, value: Value) -> Value {
        match value {
            Value::Object(map) => Value::Object(self.pick(map)),
            Value::Array(items) => items.into_iter().map(|item| self.apply(item)).collect(),
            plain => plain,
        }
    }

    fn pick(&self, map: Map<String, Value>) -> Map<String, Value> {
        let kept = map.into_iter().filter_map(|(name, value)| {
            let (_, below) = self.0.iter().find(|(wanted, _)| *wanted == name || wanted == "*")?;
            Some((
                name,
                match below {
                    Some(below) => below.apply(value),
                    None => value,
                },
            ))
        });
        kept.collect()
    }

    fn list(rest: &mut &str) -> Option<Self> {
        let mut fields = vec![Fields::item(rest)?];
        while let Some(after) = rest.strip_prefix(',') {
            *rest = after;
            fields.push(Fields::item(rest)?);
        }
        Some(Fields(fields))
    }

    fn item(rest: &mut &str) -> Option<(String, Option<Fields>)> {
        let end = rest.find([',', '/', '(', ')']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        *rest = after;
        if !KNOWN.contains(&name) {
            return None;
        }
        let below = if let Some(after) = rest.strip_prefix('/') {
            *rest = after;
            Some(Fields(vec![Fields::item(rest)?]))
        } else if let Some(after) = rest.strip_prefix('(') {
            *rest = after;
            let list = Fields::list(rest)?;
            *rest = rest.strip_prefix(')')?;
            Some(list)
        } else {
            None
        };
        Some((name.to_owned(), below))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(text: &str) -> Result<Option<Fields>, ApiError> {
        Fields::of(&Params::parse(&format!("fields={text}")))
    }

    #[test]
    fn only_what_is_named_is_left() {
        let page = json!({
            "messages": [{ "id": "a", "threadId": "t" }, { "id": "b", "threadId": "t" }],
            "nextPageToken": "7", "resultSizeEstimate": 201,
        });
        let check = |text: &str, expected: Value| {
            assert_eq!(fields(text).unwrap().unwrap().apply(page.clone()), expected, "{text}");
        };
        check("nextPageToken", json!({ "nextPageToken": "7" }));
        check("messages/id", json!({ "messages": [{ "id": "a" }, { "id": "b" }] }));
        check(
            "messages(id),nextPageToken",
            json!({ "messages": [{ "id": "a" }, { "id": "b" }], "nextPageToken": "7" }),
        );
        check("*", page.clone());
        check("history(messagesAdded/message(id,labelIds))", json!({}));
        assert_eq!(Fields::of(&Params::default()).unwrap(), None);
    }

    #[test]
    fn a_bad_selector_is_refused() {
        for bad in ["", "mesages", "messages(id", "messages(id))", "messages//id", "id,", "id(,)"] {
            assert_eq!(fields(bad).unwrap_err().reason, "invalidArgument", "{bad}");
        }
    }
}
