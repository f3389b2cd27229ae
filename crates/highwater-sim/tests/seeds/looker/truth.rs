//! The tables against the truth of the simulator, asked by plain SQL.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;
use serde_json::Value as Json;

use super::stage::Stage;
use crate::oracle;

/// What the simulator calls otherwise.
const ACCESS: (&str, &str) = ("content_access", "content_metadata_access");

struct Row {
    body: Json,
    is_deleted: bool,
}

type Rows = BTreeMap<(String, String), Row>;

fn rows(db: &Connection) -> Rows {
    let sql = "SELECT content_type, content_id, body, deleted_at IS NOT NULL FROM looker_content";
    let mut select = db.prepare(sql).unwrap();
    let row = |row: &rusqlite::Row<'_>| {
        let body: String = row.get(2)?;
        let body = serde_json::from_str(&body).expect("bodies are JSON");
        Ok(((row.get(0)?, row.get(1)?), Row { body, is_deleted: row.get(3)? }))
    };
    select.query_map([], row).unwrap().map(Result::unwrap).collect()
}

/// Also of a process that was killed: the frontier of a stream has passed only what is sealed.
pub(super) fn check_any_time(stage: &Stage) {
    let db = oracle::open(&stage.database());
    let ahead = "SELECT count(*) FROM ingest_segments AS g JOIN ingest_streams AS s USING (source, stream)
        WHERE g.start_pos < s.frontier AND g.status NOT IN ('sealed', 'dead_letter')";
    let ahead: i64 = db.query_row(ahead, [], |row| row.get(0)).unwrap_or(0);
    assert_eq!(ahead, 0, "a frontier has passed what is not done");
}

/// What there is now, but for the trash and what no list shows.
pub(super) fn present(stage: &Stage) -> BTreeSet<(String, String)> {
    let truth = stage.sim.truth(stage.age);
    let unlisted = Unlisted::of(&truth);
    let mut present = BTreeSet::new();
    for (kind, objects) in truth["types"].as_object().unwrap() {
        let called = if kind == ACCESS.0 { ACCESS.1 } else { kind };
        let objects = objects.as_object().unwrap().iter();
        let listed = objects.filter(|(id, object)| object["deleted"] != true && !unlisted.has(kind, id, object));
        present.extend(listed.map(|(id, _)| (called.to_owned(), id.clone())));
    }
    present
}

/// A run that says that it is complete has all that was there from its beginning to its end.
pub(super) fn check_all_stored(stage: &Stage, at_its_beginning: &BTreeSet<(String, String)>) {
    let rows = rows(&oracle::open(&stage.database()));
    for key in at_its_beginning.intersection(&present(stage)) {
        let row = rows.get(key).unwrap_or_else(|| panic!("{key:?} was there all the time, and is no row"));
        assert!(!row.is_deleted, "{key:?} was there all the time, and is said to be deleted");
    }
}

/// Every object is a row that says what Looker says; what else there is is marked as deleted.
pub(super) fn check_end(stage: &Stage) {
    let mut rows = rows(&oracle::open(&stage.database()));
    let truth = stage.sim.truth(stage.age);
    let unlisted = Unlisted::of(&truth);
    for (kind, objects) in truth["types"].as_object().unwrap() {
        let called = if kind == ACCESS.0 { ACCESS.1 } else { kind };
        for (id, object) in objects.as_object().unwrap() {
            let row = rows.remove(&(called.to_owned(), id.clone()));
            if row.is_none() && unlisted.has(kind, id, object) {
                continue;
            }
            let row = row.unwrap_or_else(|| panic!("{kind} {id} is not there"));
            assert_eq!(row.is_deleted, object["deleted"] == true, "{kind} {id}");
            check_body(kind, id, &row.body, &object["body"]);
        }
    }
    // Looker keeps queries for ever, whatever becomes of what refers to them.
    rows.retain(|(kind, _), row| !row.is_deleted && !kind.ends_with("queries"));
    assert!(rows.is_empty(), "too much: {:?}", rows.keys().take(5).collect::<Vec<_>>());
}

/// No list shows deleted boards: of one that was never seen nothing can be known, nor of its permissions.
struct Unlisted {
    metadata: BTreeSet<String>,
}

impl Unlisted {
    fn of(truth: &Json) -> Unlisted {
        let boards = truth["types"]["boards"].as_object().unwrap().values();
        let deleted = boards.filter(|board| board["deleted"] == true);
        Unlisted { metadata: deleted.filter_map(|board| word(&board["body"]["content_metadata_id"])).collect() }
    }

    fn has(&self, kind: &str, id: &str, object: &Json) -> bool {
        match kind {
            "boards" => object["deleted"] == true,
            "content_metadata" => self.metadata.contains(id),
            "content_access" => {
                word(&object["body"]["content_metadata_id"]).is_some_and(|id| self.metadata.contains(&id))
            }
            _ => false,
        }
    }
}

fn word(value: &Json) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_i64().map(|number| number.to_string()))
}

/// What people see of an object, and when it was changed.
fn check_body(kind: &str, id: &str, ours: &Json, theirs: &Json) {
    const SEEN: [&str; 8] =
        ["title", "name", "description", "updated_at", "deleted_at", "folder_id", "email", "display_name"];
    for name in SEEN {
        if let (Some(ours), Some(theirs)) = (ours.get(name), theirs.get(name)) {
            assert_eq!(ours, theirs, "{name} of {kind} {id}");
        }
    }
}
