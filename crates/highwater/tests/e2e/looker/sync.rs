//! A whole instance, twice, in both stores.

use serde_json::{Value as Json, json};

use super::{
    desk::{Desk, FAST},
    mirror::assert_instance,
};
use crate::support::{Database, Schema, Sim, Tables};

const VERSIONS: &str = "SELECT count(*) FROM looker_content_versions";

#[test]
fn everything_is_mirrored_and_the_same_again_writes_no_version() {
    let desk = Desk::new(Sim::looker(230, "none"), FAST);
    desk.sync().exits(0);
    let first = desk.calls();
    assert_instance(&desk.database(), &desk.sim, &[]);
    let touched = "SELECT count(*) FROM looker_content WHERE last_changed_at <> first_seen_at";
    desk.sync().exits(0);
    let second = desk.calls() - first;
    assert!(second <= first, "{first} calls, then {second}");
    assert_eq!(desk.database().one::<i64>(VERSIONS), 0);
    assert_eq!(desk.database().one::<i64>(touched), 0);
    assert_instance(&desk.database(), &desk.sim, &[]);
    assert_eq!(desk.sim.stats()["invalid"], 0, "requests that Looker would refuse");
    assert_eq!(desk.sim.stats()["tokens_live"], 0, "signed off");
    desk.home.run(&["verify", "bi", "--quiet"]).exits(0);
    desk.home.run(&["ledger", "bi", "--verify", "--quiet"]).exits(0);
}

#[test]
fn a_run_is_in_the_books_with_its_items_and_calls() {
    let desk = Desk::new(Sim::looker(40, "none"), FAST);
    desk.sync().exits(0);
    let calls = desk.calls();
    let database = desk.database();
    let run = database.cells(
        "SELECT worker_count, items, errors, requests, outcome, items_by_type ->> 'dashboards', calls ->> 'query',
            calls ->> 'non_query', throughput_items_per_second > 0 FROM ingest_runs",
    );
    let rows: i64 = database.one("SELECT count(*) FROM looker_content");
    let dashboards: i64 = database.one("SELECT count(*) FROM looker_content WHERE content_type = 'dashboards'");
    let [run] = &run[..] else { panic!("{} runs", run.len()) };
    let by = |activity: &str| desk.sim.stats()["by_activity"][activity].clone();
    let told = json!([8, rows, 0, calls, "complete", dashboards, by("query"), by("non_query"), 1]);
    assert_eq!(Json::Array(run.clone()), told);
}

#[test]
fn both_stores_keep_the_same() {
    let schema = Schema::new();
    let desk = Desk::with_store(&schema.url(), Sim::looker(60, "none"), FAST);
    desk.sync().exits(0);
    let session = schema.session();
    assert_instance(&session, &desk.sim, &[]);
    desk.sim.act("edit?type=dashboards&id=7");
    desk.sync().exits(0);
    assert_eq!(session.number(VERSIONS), 1);
    assert_instance(&session, &desk.sim, &[]);
    desk.home.run(&["verify", "bi", "--quiet"]).exits(0);
    let views = [
        "SELECT content_type, content_id, name, owner, folder_path, schedule_count FROM looker_content_overview
            ORDER BY content_type, content_id",
        "SELECT content_type, content_id, element_id, model, explore, field, used_as FROM looker_fields_used
            ORDER BY content_type, content_id, element_id, field, used_as",
    ];
    let theirs = views.map(|view| session.cells(view));
    desk.configure("sqlite:highwater.db", FAST);
    desk.sync().exits(0);
    for (view, theirs) in views.iter().zip(theirs) {
        let ours = desk.database().cells(view);
        assert!(!ours.is_empty());
        let set = |rows: Vec<Vec<Json>>| {
            rows.into_iter().map(|row| format!("{row:?}")).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(set(ours), set(theirs), "{view}");
    }
}

#[test]
fn ids_may_be_ordered_as_texts_and_pages_be_short() {
    for list in ["ids = \"text\"", "limit_max = 40", "unsorted = \"by-id\"\nheaders = true"] {
        let desk = Desk::new(
            Sim::looker_planned(230, &format!("[list]\n{list}\n")),
            &format!("types = ['dashboards', 'users']\n{FAST}"),
        );
        desk.sync().exits(0);
        let truth = desk.sim.looker_truth();
        let all = truth["types"]["dashboards"].as_object().unwrap().len() as i64;
        let stored = "SELECT count(*) FROM looker_content WHERE content_type = 'dashboards'";
        assert_eq!(desk.database().one::<i64>(stored), all);
        assert!(desk.asked("/dashboards/:dashboard_id") <= 4, "{list}: {}", desk.sim.stats()["by_path"]);
    }
}

#[test]
fn a_query_that_content_names_and_no_row_has_is_found_by_verify() {
    let desk = Desk::new(Sim::looker(40, "none"), FAST);
    desk.sync().exits(0);
    let (merged, query) = ("'merge_queries'", "'queries'");
    let one = |kind: &str| {
        let sql = format!("SELECT min(content_id) FROM looker_content WHERE content_type = {kind}");
        desk.database().one::<String>(&sql)
    };
    for (kind, id) in [(merged, one(merged)), (query, one(query))] {
        let row = format!("content_type = {kind} AND content_id = '{id}'");
        Database::meddle(&desk.home.path("highwater.db"), &format!("DELETE FROM looker_content WHERE {row}"));
        let found = desk.home.run(&["verify", "bi"]).exits(3).out;
        assert!(found.contains(&id), "{id} in {found}");
    }
    desk.sync().exits(0);
    desk.home.run(&["verify", "bi", "--quiet"]).exits(0);
}
