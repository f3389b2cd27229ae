//! Partial answers: `fields=id,dashboard_elements(id,query(model,view))`. Names that nothing has simply vanish.

use serde_json::{Map, Value};

/// Names, each with what is wanted below it; nothing below means all of it.
#[derive(Debug, PartialEq)]
pub(super) struct Fields(Vec<(String, Option<Fields>)>);

impl Fields {
    /// `None` if the text makes no sense.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        Fields::list(&mut rest).filter(|_| rest.is_empty())
    }

    /// `None` if it is not wanted, and else what is wanted below it.
    pub(super) fn wants(&self, name: &str) -> Option<Option<&Fields>> {
        self.0.iter().find(|(wanted, _)| wanted == name).map(|(_, below)| below.as_ref())
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
            let value = match self.wants(&name)? {
                Some(below) => below.apply(value),
                None => value,
            };
            Some((name, value))
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
        *rest = rest.trim_start();
        let end = rest.find([',', '(', ')']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let name = name.trim_end();
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return None;
        }
        *rest = after;
        let Some(after) = rest.strip_prefix('(') else { return Some((name.to_owned(), None)) };
        *rest = after;
        let below = Fields::list(rest)?;
        *rest = rest.strip_prefix(')')?;
        Some((name.to_owned(), Some(below)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_named_is_left() {
        let body =
            json!({ "id": "1", "elements": [{ "id": "2", "query": { "model": "m", "view": "v" } }], "title": "t" });
        let check = |text: &str, expected: Value| {
            assert_eq!(Fields::parse(text).unwrap().apply(body.clone()), expected, "{text}");
        };
        check("id", json!({ "id": "1" }));
        check("id, elements(id),none", json!({ "id": "1", "elements": [{ "id": "2" }] }));
        check("elements(query(model))", json!({ "elements": [{ "query": { "model": "m" } }] }));
    }

    #[test]
    fn what_makes_no_sense_is_no_selector() {
        for bad in ["", "id,", "id(", "id()", "id(a))", "a b", "id/x"] {
            assert_eq!(Fields::parse(bad), None, "{bad}");
        }
    }
}
