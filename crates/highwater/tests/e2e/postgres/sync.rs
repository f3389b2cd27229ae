//! A mirror from nothing to proven, and what a second look at everything costs the server.

use std::time::Duration;

use serde_json::json;

use crate::{
    support::{FAST, Home, Schema, Session, Sim, Tables, assert_mirrors, until},
    sync::{CALM_ITEMS, prove_calm},
};

#[test]
fn a_calm_remote_is_mirrored_proven_and_then_asked_only_for_its_head() {
    let (schema, sim) = (Schema::new(), Sim::start(CALM_ITEMS, "calm"));
    let home = Home::with_store(&schema.url(), &sim.url(), FAST);
    prove_calm(&home, || schema.session(), &sim);
    let letters = home.run(&["dead-letters", "list", "hn", "--json"]).exits(0).json();
    assert_eq!(letters["dead_letters"], json!([]));
}

#[test]
fn a_stormy_remote_is_mirrored_whole() {
    let (schema, sim) = (Schema::new(), Sim::start(3000, "storm"));
    let home = Home::with_store(&schema.url(), &sim.url(), "rate = 1000\nrate_max = 4000");
    home.run(&["sync", "hn"]).exits(0);
    let truth = assert_mirrors(&schema.session(), &sim, 1, 3000);
    assert_eq!(truth.unreachable, [0; 0]);
    assert_eq!(sim.stats()["retry_after_violations"], 0, "nothing is sent while the remote asks for silence");
    let before = sim.item_requests();
    home.run(&["sync", "hn"]).exits(0);
    assert_eq!(sim.item_requests(), before, "what is settled is not asked for again");
}

/// Everything of the mirror but when it was last looked at.
const CONTENT: &str = "SELECT md5(string_agg((to_jsonb(item) - 'last_fetched_at')::text, '' ORDER BY id))
    FROM hn_items AS item";

#[test]
fn a_forced_sync_of_what_has_not_changed_moves_only_the_time_of_the_look() {
    let (schema, sim) = (Schema::new(), Sim::start(CALM_ITEMS, "calm"));
    let home = Home::with_store(&schema.url(), &sim.url(), FAST);
    home.run(&["sync", "hn"]).exits(0);
    let session = schema.session();
    session.run("ALTER TABLE hn_items SET (autovacuum_enabled = off)");
    let stored = session.number("SELECT count(*) FROM hn_items");
    let content: String = session.one(CONTENT);
    let before = written(&session, "hn_items");

    let forced = home.run(&["sync", "hn", "--force", "--json"]).exits(0).json();
    let run = &forced["streams"][0]["run"];
    assert_eq!((&run["refetched"], &run["differed"], &run["new"]), (&stored.into(), &0.into(), &0.into()));
    assert_eq!(session.one::<String>(CONTENT), content, "rows are as they were");
    assert_eq!(session.number("SELECT count(*) FROM hn_items WHERE last_fetched_at <= first_seen_at"), 0);
    assert_eq!(session.number("SELECT count(*) FROM hn_item_versions"), 0);

    // A server counts what a connection did soon after its end.
    let moved = until("the server's count", Duration::from_secs(10), || {
        let [inserted, updated, hot] = written(&session, "hn_items");
        (updated - before[1] >= stored).then_some([inserted - before[0], updated - before[1], hot - before[2]])
    });
    assert_eq!(moved[..2], [0, stored], "every row is written once, in place");
    println!("{} of {stored} rows moved without touching an index", moved[2]);
    assert!(moved[2] >= stored * 95 / 100, "only {} of {stored} updates left the indexes alone", moved[2]);
    assert_eq!(written(&session, "hn_kids")[1..], [0, 0], "kids that did not change are not written");
}

/// Rows inserted, updated, and of these without touching an index, ever.
fn written(session: &Session, table: &str) -> [i64; 3] {
    let stats =
        format!("SELECT n_tup_ins, n_tup_upd, n_tup_hot_upd FROM pg_stat_all_tables WHERE relid = '{table}'::regclass");
    let counts = session.cells(&stats).remove(0);
    [0, 1, 2].map(|place| counts[place].as_i64().unwrap())
}
