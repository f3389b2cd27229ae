//! What content refers to: queries, merged queries, and permissions of its own. Collected while bodies are read, because
//! nothing lists them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use highwater_core::Key;

use super::{
    json::Node,
    kinds::{Kind, List},
};

/// What one object refers to.
#[derive(Default)]
pub(super) struct Found {
    /// With their bodies, where they are part of the object.
    queries: Vec<(Key, Option<String>)>,
    merged: Vec<Key>,
    /// Of content metadata: whether it has permissions of its own.
    has_own_access: Option<bool>,
}

/// Bodies of queries beyond this are asked for again: nobody knows how many there are.
const BODIES_MAX: usize = 32 * 1024 * 1024;

/// What all objects refer to that were read in this run.
#[derive(Default)]
pub(super) struct References {
    pub(super) queries: BTreeMap<Key, Option<String>>,
    pub(super) merged: BTreeSet<Key>,
    pub(super) own_access: BTreeMap<Key, bool>,
    /// Whose bodies were read.
    seen: BTreeMap<&'static str, HashSet<Key>>,
    bytes: usize,
}

impl Found {
    pub(super) fn read(kind: &Kind, node: &Node<'_>) -> Found {
        let mut found = Found::default();
        match kind.list {
            List::PagesAndTrash { .. } | List::Pages { .. } if kind.one == "dashboards" => found.dashboard(node),
            List::Looks => found.query(node),
            _ if kind.name == "scheduled_plans" => found.query(node),
            List::MergeQueries => {
                let sources = node.member("source_queries").map(Node::elements).unwrap_or_default();
                sources.iter().for_each(|source| found.query(source));
            }
            List::Metadata => {
                let inherits = node.member("inherits").and_then(Node::word);
                found.has_own_access = Some(inherits.is_some_and(|inherits| inherits == "false"));
            }
            _ => {}
        }
        found
    }

    fn dashboard(&mut self, node: &Node<'_>) {
        for element in node.member("dashboard_elements").map(Node::elements).unwrap_or_default() {
            self.query(element);
            if let Some(maker) = element.member("result_maker") {
                self.query(maker);
            }
            if let Some(look) = element.member("look") {
                self.query(look);
            }
        }
    }

    /// `query_id`, `merge_result_id` and the query itself, of whatever has them.
    fn query(&mut self, node: &Node<'_>) {
        let word = |name: &str| node.member(name).and_then(Node::word).filter(|word| !word.is_empty());
        let body = node.member("query").filter(|query| matches!(query, Node::Object(_)));
        let id_of_body = body.and_then(|body| body.member("id")).and_then(Node::word);
        if let Some(id) = word("query_id").or_else(|| id_of_body.clone()) {
            let body = body.filter(|_| id_of_body.as_ref() == Some(&id)).map(|body| body.spell().json);
            self.queries.push((Key::from(id.as_ref()), body));
        }
        self.merged.extend(word("merge_result_id").map(|id| Key::from(id.as_ref())));
    }
}

impl References {
    pub(super) fn note(&mut self, kind: &'static Kind, key: &Key, found: Found) {
        for (id, body) in found.queries {
            let room = BODIES_MAX.saturating_sub(self.bytes);
            let known = self.queries.entry(id).or_default();
            if let (None, Some(body)) = (&known, body.filter(|body| body.len() <= room)) {
                self.bytes += body.len();
                *known = Some(body);
            }
        }
        self.merged.extend(found.merged);
        if let Some(has_own) = found.has_own_access {
            self.own_access.insert(key.clone(), has_own);
        }
        self.seen.entry(kind.name).or_default().insert(key.clone());
    }

    /// Which of these were not read yet.
    pub(super) fn unseen<'k>(&self, kind: &Kind, keys: impl Iterator<Item = &'k Key>) -> Vec<Key> {
        keys.filter(|key| self.is_unseen(kind, key)).cloned().collect()
    }

    pub(super) fn is_unseen(&self, kind: &Kind, key: &Key) -> bool {
        !self.seen.get(kind.name).is_some_and(|seen| seen.contains(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, json: &str) -> References {
        let (kind, key) = (Kind::find(kind).unwrap(), Key::from("1"));
        let found = Found::read(kind, &Node::read(json).unwrap());
        let mut references = References::default();
        references.note(kind, &key, found);
        references
    }

    #[test]
    fn queries_of_elements_are_found_wherever_they_are() {
        let references = read(
            "dashboards",
            r#"{"id":"1","dashboard_elements":[
                {"query_id":"a","query":{"id":"a","model":"m"}},
                {"query_id":null,"result_maker":{"query_id":"b"}},
                {"merge_result_id":"x"},
                {"look":{"query":{"id":"c"}}}]}"#,
        );
        let ids: Vec<_> = references.queries.keys().map(Key::to_string).collect();
        assert_eq!(ids, ["a", "b", "c"]);
        assert_eq!(references.queries[&Key::from("a")].as_deref(), Some(r#"{"id":"a","model":"m"}"#));
        assert_eq!(references.queries[&Key::from("b")], None);
        assert_eq!(references.merged.len(), 1);
    }

    #[test]
    fn metadata_says_whether_it_has_permissions_of_its_own() {
        let own = |json: &str| read("content_metadata", json).own_access[&Key::from("1")];
        assert!(own(r#"{"id":"1","inherits":false}"#));
        assert!(!own(r#"{"id":"1","inherits":true}"#));
    }
}
