//! The tables against the truth of the simulator.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use crate::support::{Sim, Tables};

/// What the simulator calls otherwise.
const CALLED: [(&str, &str); 1] = [("content_access", "content_metadata_access")];

const MOVES: [&str; 17] = [
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
    "sessions",
    "logged_in_at",
    "ui_state",
];

fn moves(name: &str) -> bool {
    MOVES.contains(&name) || name.starts_with("avatar_url") || name.starts_with("trigger")
}

fn still(value: &Json) -> Json {
    match value {
        Json::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !moves(name));
            Json::Object(kept.map(|(name, value)| (name.clone(), still(value))).collect())
        }
        Json::Array(elements) => elements.iter().map(still).collect(),
        other => other.clone(),
    }
}

/// Rows by type and id: body, and whether it is marked as deleted.
pub(super) fn rows(tables: &impl Tables) -> BTreeMap<(String, String), (Json, bool)> {
    let sql = "SELECT content_type, content_id, CAST(body AS TEXT), CASE WHEN deleted_at IS NULL THEN 0 ELSE 1 END
        FROM looker_content";
    let text = |cell: &Json| cell.as_str().unwrap().to_owned();
    let row = |cells: Vec<Json>| {
        let body = serde_json::from_str(cells[2].as_str().unwrap()).unwrap();
        ((text(&cells[0]), text(&cells[1])), (body, cells[3] != 0))
    };
    tables.cells(sql).into_iter().map(row).collect()
}

/// Every object that can be had is a row that says what it says, and nothing else is, but what is marked as deleted.
/// `but` are types and ids that are not looked at.
pub(super) fn assert_instance(tables: &impl Tables, sim: &Sim, but: &[(&str, &str)]) {
    assert_types(tables, sim, but, |_| true);
}

/// The same of some types, of which alone there are rows.
pub(super) fn assert_types(tables: &impl Tables, sim: &Sim, but: &[(&str, &str)], are_meant: impl Fn(&str) -> bool) {
    let (mut rows, truth) = (rows(tables), sim.looker_truth());
    let passed: BTreeSet<(String, String)> = but.iter().map(|(kind, id)| ((*kind).into(), (*id).into())).collect();
    for (kind, objects) in truth["types"].as_object().unwrap().iter().filter(|(kind, _)| are_meant(kind)) {
        let called = CALLED.iter().find(|(theirs, _)| theirs == kind).map_or(kind.as_str(), |(_, ours)| ours);
        for (id, object) in objects.as_object().unwrap() {
            let key = (called.to_owned(), id.clone());
            if passed.contains(&key) || object["hidden"] == true {
                rows.remove(&key);
                continue;
            }
            let (body, deleted) = rows.remove(&key).unwrap_or_else(|| panic!("{kind} {id} is not there"));
            assert_eq!(deleted, object["deleted"] == true, "{kind} {id}");
            assert_body(&key, &body, object);
        }
    }
    // Looker keeps queries for ever, whatever becomes of what refers to them.
    rows.retain(|key, (_, deleted)| !*deleted && !passed.contains(key) && !key.0.ends_with("queries"));
    assert!(rows.is_empty(), "too much: {:?}", rows.keys().take(5).collect::<Vec<_>>());
}

/// Lists abbreviate some objects: what is there must be true.
fn assert_body(key: &(String, String), body: &Json, object: &Json) {
    let (ours, theirs) = (still(body), still(&object["body"]));
    let empty = Map::new();
    for (name, value) in ours.as_object().unwrap_or(&empty) {
        match (key.0.as_str(), name.as_str()) {
            ("groups", "users" | "groups") => {
                let sorted = |list: &Json| {
                    let texts = list.as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned());
                    texts.collect::<BTreeSet<_>>()
                };
                assert_eq!(sorted(value), sorted(&object["members"][name]), "{key:?} {name}");
            }
            _ => assert_eq!(Some(value), theirs.get(name), "{key:?} {name}"),
        }
    }
}
