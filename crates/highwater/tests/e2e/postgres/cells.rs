//! The same odd items in both stores: what one keeps the other keeps, cell by cell.

use serde_json::Value as Json;

use crate::support::{FAST, Home, Schema, Sim, Tables, assert_mirrors};

const ITEMS: u32 = 3000;
/// Every other item is odd: NUL, half an emoji, a very long link, lists where a flag should be, and more.
const PLAN: &str = "[body]\nodd = 0.5\n[[script]]\nshare = 0.002\nthen = \"null\"\n";

/// JSON and lists are text on SQLite and types of their own on PostgreSQL; flags are numbers there.
const SQLITE: &str = "SELECT id, type, by, time, title, url, text, score, descendants, parent, poll, parts,
    dead, deleted, extra, row_check FROM hn_items ORDER BY id";
const POSTGRES: &str = "SELECT id, type, by, time, title, url, text, score, descendants, parent, poll,
    to_json(parts)::text, dead::int, deleted::int, extra::text, row_check FROM hn_items ORDER BY id";
const PARTS: usize = 11;
const EXTRA: usize = 14;
const URL: usize = 5;

fn items(store: &impl Tables, sql: &str) -> Vec<Vec<Json>> {
    let mut rows = store.cells(sql);
    for row in &mut rows {
        for place in [PARTS, EXTRA] {
            if let Json::String(text) = &row[place] {
                row[place] = serde_json::from_str(text).unwrap();
            }
        }
    }
    rows
}

#[test]
fn what_no_database_can_hold_is_kept_alike_by_both() {
    let (schema, sim) = (Schema::new(), Sim::planned(ITEMS, PLAN));
    let (file, server) = (Home::new(&sim.url(), FAST), Home::with_store(&schema.url(), &sim.url(), FAST));
    for home in [&file, &server] {
        home.run(&["sync", "hn"]).exits(0);
        home.run(&["verify", "hn"]).exits(0);
    }
    let (database, session) = (file.database(), schema.session());
    assert_mirrors(&session, &sim, 1, i64::from(ITEMS));
    let (ours, theirs) = (items(&database, SQLITE), items(&session, POSTGRES));
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    for same in [
        "SELECT item, kid, display_order FROM hn_kids ORDER BY item, kid",
        "SELECT item_key, state, reason FROM ingest_exceptions ORDER BY item_number",
        "SELECT start_pos, end_pos, status, stored_count, unresolved_count FROM ingest_segments ORDER BY start_pos",
        "SELECT source, stream, axis, origin, frontier, target, stored FROM ingest_streams",
    ] {
        assert_eq!(database.cells(same), session.cells(same), "{same}");
    }
    assert_odd(&theirs);
}

/// The plan did bring what this is about.
fn assert_odd(rows: &[Vec<Json>]) {
    let exact = rows.iter().filter(|row| row[EXTRA].get("_exact").is_some()).count();
    let replaced =
        rows.iter().filter(|row| row.iter().any(|cell| cell.as_str().is_some_and(|text| text.contains('\u{FFFD}'))));
    let long = rows.iter().filter(|row| row[URL].as_str().is_some_and(|url| url.len() == 6598)).count();
    assert!(exact > 10 && long > 10, "{exact} with what no column holds, {long} with a long link");
    assert_eq!(replaced.count(), exact);
}
