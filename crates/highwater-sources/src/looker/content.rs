//! An object as Looker serves it, as a row.

use std::{borrow::Cow, sync::Arc};

use highwater_core::{Body, Failure, FailureKind, Key, Record, Timestamp, Value, schema::Table};

use super::{
    json::{Node, Volatile},
    kinds::{Kind, List},
    references::Found,
};
use crate::Fetched;

/// Per caller, counted by the server, or about who looked at it: nothing of it is a change.
const NAMES: &[&str] = &[
    "can",
    "view_count",
    "favorite_count",
    "usage_count",
    "last_viewed_at",
    "last_accessed_at",
    "content_favorite_id",
    "alert_count",
    "next_run_at",
    "last_run_at",
    "user_count",
    "child_count",
    "contains_current_user",
    "followed",
    "logged_in_at",
    "ui_state",
];
const VOLATILE: Volatile = Volatile { names: NAMES, more: &[], prefixes: &["avatar_url"] };
const OF_USERS: Volatile = Volatile { names: NAMES, more: &["sessions"], prefixes: &["avatar_url"] };
/// A look has its query where it comes alone or with its folder, and not in a page. `query_id` says which it is.
const OF_LOOKS: Volatile = Volatile { names: NAMES, more: &["query", "url"], prefixes: &["avatar_url"] };
const OF_DATAGROUPS: Volatile = Volatile { names: NAMES, more: &[], prefixes: &["avatar_url", "trigger"] };

/// Reads the objects of one type.
#[derive(Clone)]
pub(super) struct Reader {
    pub(super) source: Arc<str>,
    pub(super) kind: &'static Kind,
    pub(super) table: &'static Table,
    /// Whether what objects refer to is mirrored, too.
    pub(super) collects: bool,
}

/// An object that was read, and what it refers to.
pub(super) struct Object {
    pub(super) key: Key,
    pub(super) record: Record,
    pub(super) found: Found,
}

impl Reader {
    /// The answer to a request for one object.
    pub(super) fn read_one(&self, key: &Key, json: &str) -> Result<Object, Failure> {
        let malformed = || super::reply::malformed(self.kind.name);
        let raw: &serde_json::value::RawValue = serde_json::from_str(json).map_err(|_| malformed())?;
        let node = Node::read(raw.get()).filter(|node| matches!(node, Node::Object(_))).ok_or_else(malformed)?;
        match self.key_of(&node) {
            Some(found) if found == *key => Ok(self.object(found, &node, raw.get())),
            // Slugs lead to queries by several names.
            _ if self.kind.is_for_ever() => Ok(self.object(key.clone(), &node, raw.get())),
            found => {
                let found = found.map_or_else(|| "nothing".to_owned(), |found| found.to_string());
                let message = format!("{} {key} was asked for, and {found} came", self.kind.name);
                Err(Failure::new(FailureKind::WrongIdentity, message))
            }
        }
    }

    /// One of the objects of a list; none if it has no name.
    pub(super) fn read_listed(&self, json: &str) -> Option<Object> {
        let node = Node::read(json)?;
        let key = self.key_of(&node)?;
        Some(self.object(key, &node, json))
    }

    pub(super) fn key_of(&self, node: &Node<'_>) -> Option<Key> {
        let word = |name: &str| node.member(name).and_then(Node::word);
        let id = match self.kind.list {
            List::Explores => match (word("model_name"), word("name")) {
                (Some(model), Some(name)) => Cow::Owned(format!("{model}::{name}")),
                _ => word("id")?,
            },
            _ => word(self.kind.id)?,
        };
        (!id.is_empty()).then(|| Key::from(id.as_ref()))
    }

    pub(super) fn object(&self, key: Key, node: &Node<'_>, raw: &str) -> Object {
        let spelled = node.spell();
        let exact = if spelled.is_mended { Value::Bytes(raw.as_bytes().to_vec()) } else { Value::Null };
        let values = vec![
            Value::text(self.table.row_key(&key).to_string()),
            Value::text(self.source.to_string()),
            Value::text(self.kind.name),
            Value::text(shown(&key.to_string())),
            text(first(node, &["title", "name", "display_name", "custom_title", "label"])),
            text(self.folder_of(node)),
            text(first(node, &["user_id", "owner_id", "creator_id"]).or_else(|| inner(node, "user", "id"))),
            time(first(node, &["created_at"])),
            time(first(node, &["updated_at"])),
            deleted_at(node),
            Value::Json(spelled.json),
            Value::text(node.hash(self.volatile())),
            exact,
        ];
        let found = if self.collects { Found::read(self.kind, node) } else { Found::default() };
        Object { record: Record::new(key.clone(), self.table, Body { values, edges: Vec::new() }), key, found }
    }

    fn folder_of<'n>(&self, node: &Node<'n>) -> Option<Cow<'n, str>> {
        match self.kind.name {
            "folders" => first(node, &["parent_id"]),
            _ => first(node, &["folder_id"]).or_else(|| inner(node, "folder", "id")),
        }
    }

    fn volatile(&self) -> &'static Volatile {
        match self.kind.name {
            "users" => &OF_USERS,
            "looks" => &OF_LOOKS,
            "datagroups" => &OF_DATAGROUPS,
            _ => &VOLATILE,
        }
    }
}

pub(super) fn answer(read: Result<Object, Failure>) -> Fetched {
    match read {
        Ok(object) => Fetched::Found(object.record),
        Err(failure) => Fetched::Failed(failure),
    }
}

fn first<'n>(node: &Node<'n>, names: &[&str]) -> Option<Cow<'n, str>> {
    names.iter().find_map(|name| node.member(name).and_then(Node::word))
}

fn inner<'n>(node: &Node<'n>, outer: &str, name: &str) -> Option<Cow<'n, str>> {
    node.member(outer).and_then(|inner| inner.member(name)).and_then(Node::word)
}

fn text(word: Option<Cow<'_, str>>) -> Value {
    word.map_or(Value::Null, |word| Value::text(shown(&word)))
}

/// A column cannot hold NUL.
fn shown(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn time(word: Option<Cow<'_, str>>) -> Value {
    word.and_then(|word| moment(&word)).map_or(Value::Null, Value::Time)
}

/// Texts as RFC 3339 has them, also with a space or without a colon in the offset; numbers are seconds.
fn moment(text: &str) -> Option<Timestamp> {
    if let Ok(seconds) = text.parse::<i64>() {
        return seconds.checked_mul(1000).map(Timestamp::from_millis);
    }
    let parsed = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let format = if text.contains('T') { "%Y-%m-%dT%H:%M:%S%.f%z" } else { "%Y-%m-%d %H:%M:%S%.f %z" };
        jiff::Timestamp::strptime(format, text).ok()
    });
    parsed.map(|at| Timestamp::from_millis(at.as_millisecond()))
}

/// When it went to the trash. Some say only that it did: then the last thing that is known of it.
fn deleted_at(node: &Node<'_>) -> Value {
    let said = time(first(node, &["deleted_at"]));
    let is_deleted = first(node, &["deleted"]).is_some_and(|word| word == "true");
    match said {
        Value::Null if is_deleted => match time(first(node, &["updated_at", "created_at"])) {
            Value::Null => Value::Time(Timestamp::EPOCH),
            at => at,
        },
        said => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(kind: &str) -> Reader {
        let kind = Kind::find(kind).unwrap();
        Reader { source: "bi".into(), kind, table: super::super::schema::content("bi", kind.name), collects: true }
    }

    fn columns(kind: &str, json: &str) -> Vec<Value> {
        reader(kind).read_listed(json).unwrap().record.body.values
    }

    #[test]
    fn a_dashboard_is_a_row_with_its_body_as_served() {
        let values = columns(
            "dashboards",
            r#"{"id":"7","title":"Sales","folder":{"id":"3"},"user_id":"12","created_at":"2024-01-02T03:04:05.000Z",
                "brand_new":{"x":[1]},"view_count":5}"#,
        );
        let text = |text: &str| Value::text(text);
        assert_eq!(
            values[..7],
            [text("bi:dashboards-7"), text("bi"), text("dashboards"), text("7"), text("Sales"), text("3"), text("12")]
        );
        assert_eq!(values[7], Value::Time(Timestamp::from_millis(1_704_164_645_000)));
        assert!(matches!(&values[10], Value::Json(body) if body.contains(r#""brand_new":{"x":[1]}"#)));
        let more_viewed = columns(
            "dashboards",
            r#"{"id":"7","title":"Sales","folder":{"id":"3"},"user_id":"12",
            "created_at":"2024-01-02T03:04:05.000Z","brand_new":{"x":[1]},"view_count":6}"#,
        );
        assert_eq!(values[11], more_viewed[11]);
    }

    #[test]
    fn objects_are_named_as_their_type_names_them() {
        let key = |kind: &str, json: &str| reader(kind).read_listed(json).map(|object| object.key.to_string());
        assert_eq!(key("connections", r#"{"name":"thelook","id":"1"}"#).as_deref(), Some("thelook"));
        assert_eq!(key("explores", r#"{"id":"x","model_name":"m","name":"e"}"#).as_deref(), Some("m::e"));
        assert_eq!(key("dashboards", r#"{"id":9}"#).as_deref(), Some("9"));
        assert_eq!(key("dashboards", r#"{"title":"nameless"}"#), None);
    }

    #[test]
    fn the_trash_says_since_when() {
        let deleted = |json: &str| columns("dashboards", json)[9].clone();
        assert_eq!(deleted(r#"{"id":"1","deleted":false,"deleted_at":null}"#), Value::Null);
        let at = Value::Time(Timestamp::from_millis(1_704_164_645_000));
        assert_eq!(deleted(r#"{"id":"1","deleted":true,"deleted_at":"2024-01-02T03:04:05Z"}"#), at);
        assert_eq!(deleted(r#"{"id":"1","deleted":true,"updated_at":"2024-01-02T03:04:05Z"}"#), at);
    }

    #[test]
    fn times_are_read_in_every_form_that_was_seen() {
        let at = Some(Timestamp::from_millis(1_704_164_645_000));
        for text in [
            "2024-01-02T03:04:05Z",
            "2024-01-02T03:04:05.000Z",
            "2024-01-02T03:04:05+00:00",
            "2024-01-02T03:04:05.000+0000",
            "2024-01-02T03:04:05+0000",
            "2024-01-02 03:04:05 +0000",
            "1704164645",
        ] {
            assert_eq!(moment(text), at, "{text}");
        }
        assert_eq!(moment("yesterday"), None);
    }

    #[test]
    fn another_object_than_the_one_asked_for_is_refused() {
        let wrong = reader("looks").read_one(&Key::from("5"), r#"{"id":"6"}"#).err().unwrap();
        assert_eq!(wrong.kind, FailureKind::WrongIdentity);
        let html = reader("looks").read_one(&Key::from("5"), "<html>").err().unwrap();
        assert_eq!(html.kind, FailureKind::Malformed);
    }
}
