//! Content that is mirrored as a whole: what moves without meaning, when a row was last fetched, and what runs have asked.

use highwater_core::{
    Body, Key, Record, Value,
    schema::{ColumnType, Role, Table, column},
};

use super::scene::{Lab, Scene, at};
use crate::{Download, DownloadNote, Page, RunEnd, RunOutcome, RunStart, RunTallies};

static DASHBOARDS: Table = Table {
    name: "looker_content",
    columns: &[
        column("id", ColumnType::Text, Role::Key),
        column("source", ColumnType::Text, Role::Content),
        column("content_type", ColumnType::Text, Role::Content),
        column("content_id", ColumnType::Text, Role::Content),
        column("deleted_at", ColumnType::Time, Role::Mutable),
        column("body", ColumnType::Json, Role::Volatile),
        column("content_hash", ColumnType::Text, Role::Content),
    ],
    edges: None,
    versions: Some("looker_versions"),
    time: None,
    scope: Some("bi:dashboards"),
    derived: None,
};

pub fn dashboard(id: &str, hash: &str, views: u32) -> Record {
    with_body(id, hash, format!(r#"{{"id":"{id}","views":{views}}}"#))
}

fn with_body(id: &str, hash: &str, body: String) -> Record {
    let key = Key::from(id);
    let text = |text: &str| Value::Text(text.into());
    let values = vec![
        text(&DASHBOARDS.row_key(&key).to_string()),
        text("bi"),
        text("dashboards"),
        text(id),
        Value::Null,
        Value::Json(body),
        text(hash),
    ];
    Record::new(key, &DASHBOARDS, Body { values, edges: Vec::new() })
}

pub async fn what_moves_without_meaning_is_written_and_no_version(lab: Lab) {
    let scene = Scene::planned(lab, 0, 100, 100).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let both = |hash: &str, views| vec![dashboard("7", hash, views), dashboard("x", "same", 0)];
    scene.commit(&lease, both("a", 1), vec![], at(1)).await.unwrap();
    let counts = scene.commit(&lease, both("a", 2), vec![], at(2)).await.unwrap();
    assert_eq!((counts.unchanged, counts.changed), (2, 0));
    let views = "SELECT body ->> 'views' FROM looker_content WHERE content_id = '7'";
    assert_eq!(scene.query(views).await, ["2"]);
    let versions = "SELECT count(*) FROM looker_content_versions";
    assert_eq!(scene.query(versions).await, ["0"]);
    let unchanged = "SELECT count(*) FROM looker_content WHERE last_changed_at = first_seen_at";
    assert_eq!(scene.query(unchanged).await, ["2"]);
    let counts = scene.commit(&lease, both("b", 3), vec![], at(3)).await.unwrap();
    assert_eq!((counts.unchanged, counts.changed), (1, 1));
    let version = "SELECT content_type, content_id, content_hash, body ->> 'views' FROM looker_content_versions";
    assert_eq!(scene.query(version).await, ["dashboards|7|a|2"]);
    let rows = scene.store().rows(&DASHBOARDS, Page { after: None, limit: 10 }).await.unwrap();
    assert!(rows.iter().all(|row| row.row_check == row.body.checksum()));
}

pub async fn fields_are_read_of_what_has_some_whatever_stands_beside_it(lab: Lab) {
    let scene = Scene::planned(lab, 0, 100, 100).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let query = r#"{"model":"m","view":"v","fields":["a.b",null,5,{"x":1},["y"],"c.d"],"filters":{"e.f":"1"}}"#;
    let elements = [
        r#""a text""#,
        "7",
        "null",
        "[1]",
        "{}",
        r#"{"id":"1","query":"a text","result_maker":"a text","look":null}"#,
        r#"{"id":"2","query":null,"result_maker":null,"look":{"query":{"fields":"a text","filters":["g.h"]}}}"#,
    ];
    let odd = elements.join(",");
    let bodies = [
        ("1", format!(r#"{{"dashboard_elements":[{odd},{{"id":"9","query":{query}}}]}}"#)),
        ("2", format!(r#"{{"dashboard_elements":{{"one":"a text","two":{{"id":"3","query":{query}}}}}}}"#)),
        ("3", r#"{"dashboard_elements":"a text"}"#.to_owned()),
        ("4", r#"{"dashboard_elements":null}"#.to_owned()),
        ("5", r#"["a text"]"#.to_owned()),
    ];
    let records = bodies.map(|(id, body)| with_body(id, id, body)).into();
    scene.commit(&lease, records, vec![], at(1)).await.unwrap();
    let used = "SELECT content_id, element_id, model, explore, field, used_as FROM looker_fields_used ORDER BY field";
    assert_eq!(scene.query(used).await, ["1|9|m|v|a.b|field", "1|9|m|v|c.d|field", "1|9|m|v|e.f|filter"]);
}

pub async fn when_a_row_was_last_fetched_is_told_beside_its_columns(lab: Lab) {
    let scene = Scene::planned(lab, 0, 100, 100).await;
    let lease = scene.claim_one(at(0)).await.lease;
    scene.commit(&lease, vec![dashboard("7", "a", 1)], vec![], at(1)).await.unwrap();
    scene.commit(&lease, vec![dashboard("8", "a", 1)], vec![], at(5)).await.unwrap();
    let page = Page { after: None, limit: 10 };
    let told = scene.store().columns(&DASHBOARDS, &["last_fetched_at", "deleted_at"], page).await.unwrap();
    let row = |id: &str, seconds| (Key::from(id), vec![Value::Time(at(seconds)), Value::Null]);
    assert_eq!(told, [row("7", 1), row("8", 5)]);
}

pub async fn the_requests_of_runs_are_counted_also_of_those_that_never_ended(lab: Lab) {
    let scene = Scene::new(lab).await;
    let (store, source) = (scene.store(), scene.stream.source.clone());
    for (id, began) in [("old", 0), ("done", 10), ("dead", 20)] {
        let start = RunStart { id: id.into(), source: source.clone(), command: "sync", workers: 8, at: at(began) };
        store.begin_run(&start).await.unwrap();
        store.note_requests(id, 7).await.unwrap();
    }
    let tallies = RunTallies {
        errors: 2,
        items: [("looks".to_owned(), 3)].into(),
        calls: [("query", 1), ("non_query", 99)].into(),
    };
    let end = RunEnd {
        id: "done".into(),
        source: source.clone(),
        command: "sync",
        outcome: RunOutcome::Incomplete,
        items: 3,
        requests: 100,
        tallies,
        at: at(12),
    };
    store.end_run(&end).await.unwrap();
    store.note_requests("done", 5).await.unwrap();
    assert_eq!(store.requests_since(&source, at(5)).await.unwrap(), 107);
    assert_eq!(store.requests_since(&"other".parse().unwrap(), at(5)).await.unwrap(), 0);
    let run = "SELECT errors, items_by_type ->> 'looks', calls ->> 'non_query' FROM ingest_runs WHERE run_id = 'done'";
    assert_eq!(scene.query(run).await, ["2|3|99"]);
}

pub async fn what_runs_download_is_kept_by_the_hour_and_counted_once(lab: Lab) {
    let scene = Scene::new(lab).await;
    let (store, source) = (scene.store(), scene.stream.source.clone());
    // A whole one.
    let hour = |hour: i64| at(3_600 * hour - 800);
    let note = |run: &str, downloads: &[(i64, u64)], now| DownloadNote {
        source: source.clone(),
        run: run.into(),
        downloads: downloads.iter().map(|(at, bytes)| (hour(*at), *bytes)).collect(),
        now: hour(now),
    };
    for noted in [
        note("one", &[(0, 5)], 0),
        note("one", &[(0, 7), (1, 2)], 1),
        note("one", &[(0, 7), (1, 2)], 1),
        note("one", &[(0, 5)], 0),
        note("two", &[(1, 10)], 1),
    ] {
        store.note_downloads(&noted).await.unwrap();
    }
    let other = DownloadNote { source: "other".parse().unwrap(), ..note("three", &[(0, 99)], 0) };
    store.note_downloads(&other).await.unwrap();
    let download = |run: &str, at, bytes| Download { run: run.into(), hour: hour(at), bytes };
    let all = [download("one", 0, 7), download("one", 1, 2), download("two", 1, 10)];
    assert_eq!(store.downloads_since(&source, hour(0)).await.unwrap(), all);
    assert_eq!(store.downloads_since(&source, hour(1)).await.unwrap(), all[1..]);
    store.note_downloads(&note("two", &[(1, 10)], 25)).await.unwrap();
    assert_eq!(store.downloads_since(&source, hour(-9)).await.unwrap(), all[1..], "too old to count for anybody");
}
