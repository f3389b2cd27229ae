//! Damage done behind the product's back: found, named, and repaired where a refetch can.

use serde_json::Value as Json;

use crate::support::{Database, FAST, Home, Reply, Server, Sim, assert_mirrors};

const ITEMS: u32 = 1500;
const MISSING: i64 = 300;

/// A complete mirror; each test damages a copy of it.
struct Mirror {
    sim: Sim,
    home: Home,
}

fn mirror() -> Mirror {
    let sim = Sim::planned(ITEMS, "[[script]]\nid = 300\nthen = \"null\"\n");
    let home = Home::new(&sim.url(), FAST);
    home.run(&["sync", "hn"]).exits(0);
    home.run(&["verify", "hn"]).exits(0);
    Mirror { sim, home }
}

/// A copy with `sql` done to it, and what verify says of that.
fn damaged(home: &Home, sql: &[&str]) -> (Home, Json) {
    let copy = home.copied();
    for sql in sql {
        Database::meddle(&copy.path("highwater.db"), sql);
    }
    let proof = copy.run(&["verify", "hn", "--json"]).exits(3).json();
    assert_eq!(proof["complete"], false);
    (copy, proof)
}

/// Kinds and keys of what was found, in order.
fn found(proof: &Json) -> Vec<(&str, i64)> {
    let examples = proof["streams"][0]["examples"].as_array().unwrap().iter();
    let named = |example: &Json| -> i64 { example["key"].as_str().unwrap().parse().unwrap() };
    let mut found: Vec<_> = examples.map(|example| (example["kind"].as_str().unwrap(), named(example))).collect();
    found.sort();
    found
}

/// Pages of the table itself, of which only SQLite can tell that they are damaged.
#[test]
fn a_damaged_page_is_found_by_a_look_at_the_file() {
    let Mirror { home, .. } = mirror();
    home.run(&["verify", "--store"]).exits(0);
    let copy = home.copied();
    let path = copy.path("highwater.db");
    let (page, size): (i64, i64) = {
        let database = copy.database();
        let last = "SELECT rootpage FROM sqlite_schema WHERE name = 'hn_kids'";
        (database.one(last), database.one("SELECT page_size FROM pragma_page_size()"))
    };
    let mut bytes = std::fs::read(&path).unwrap();
    let start = usize::try_from((page - 1) * size).unwrap();
    bytes[start + 8..start + 64].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let found = copy.run(&["verify", "--store"]);
    assert_ne!(found.status.code(), Some(0), "{}", found.out);
    assert!(found.out.contains("hn_kids") || found.out.to_lowercase().contains("page"), "{} {}", found.out, found.err);
}

#[test]
fn rows_changed_or_removed_are_named_and_a_forced_sync_repairs_them() {
    let Mirror { sim, home } = mirror();
    let title = home.database().one::<i64>("SELECT max(id) FROM hn_items WHERE title IS NOT NULL");
    let score = home.database().one::<i64>("SELECT min(id) FROM hn_items WHERE score IS NOT NULL");
    let parent = home.database().one::<i64>("SELECT max(item) FROM hn_kids");
    let (copy, proof) = damaged(
        &home,
        &[
            "DELETE FROM hn_items WHERE id = 17",
            &format!("UPDATE hn_items SET title = 'another' WHERE id = {title}"),
            &format!("UPDATE hn_items SET score = score + 1 WHERE id = {score}"),
            &format!("DELETE FROM hn_kids WHERE item = {parent}"),
        ],
    );
    let mut expected = vec![("differs", title), ("differs", score), ("differs", parent), ("unexplained", 17)];
    expected.sort();
    assert_eq!(found(&proof), expected);
    let stream = &proof["streams"][0];
    assert_eq!((&stream["differs"], &stream["unexplained"]), (&3.into(), &1.into()));

    let forced = copy.run(&["sync", "hn", "--force", "--json"]).exits(0).json();
    assert_eq!((&forced["streams"][0]["run"]["new"], &forced["streams"][0]["complete"]), (&1.into(), &true.into()));
    assert_mirrors(&copy.database(), &sim, 1, i64::from(ITEMS));
    copy.run(&["verify", "hn"]).exits(0);
}

#[test]
fn books_that_were_cooked_are_found_out() {
    let Mirror { sim: _sim, home } = mirror();
    let (copy, proof) = damaged(&home, &[&format!("DELETE FROM ingest_exceptions WHERE item_key = '{MISSING}'")]);
    assert_eq!(found(&proof), [("unexplained", MISSING)]);
    copy.run(&["sync", "hn", "--force", "--from", "290", "--to", "310"]).exits(0);
    copy.run(&["verify", "hn"]).exits(0);

    let (_, proof) = damaged(&home, &["UPDATE ingest_streams SET frontier = frontier - 1000"]);
    assert!(proof["streams"][0]["book_errors"][0].as_str().unwrap().contains("frontier"), "{proof}");

    let (_, proof) = damaged(&home, &["DELETE FROM ingest_segments WHERE start_pos = 1001"]);
    assert!(!proof["streams"][0]["book_errors"].as_array().unwrap().is_empty(), "{proof}");

    let alter = "UPDATE ledger SET payload = '{}' WHERE seq = 2";
    let (copy, proof) = damaged(&home, &[alter]);
    assert_eq!((&proof["ledger"]["sound"], &proof["streams"][0]["complete"]), (&false.into(), &true.into()));
    assert!(proof["ledger"]["error"].as_str().unwrap().contains("line 2"), "{proof}");
    copy.run(&["ledger", "hn", "--verify"]).exits(3);

    let (copy, _) = damaged(&home, &["DELETE FROM ledger WHERE seq = 2"]);
    copy.run(&["ledger", "hn", "--verify"]).exits(3);

    for lost in ["DELETE FROM ledger", "DELETE FROM ledger WHERE seq > 2", "UPDATE ledger SET source = 'other'"] {
        let (_, proof) = damaged(&home, &[lost]);
        assert!(proof["streams"][0]["book_errors"][0].as_str().unwrap().contains("no line of the ledger"), "{proof}");
    }

    let bogus = "INSERT INTO ingest_exceptions (source, stream, item_key, item_number, segment_id, state, attempts,
        absences, first_seen_at, last_tried_at, reason)
        SELECT source, stream, '99999', 99999, segment_id, state, 0, 3, first_seen_at, last_tried_at, reason
        FROM ingest_exceptions";
    let (_, proof) = damaged(&home, &[bogus]);
    assert!(proof["streams"][0]["book_errors"][0].as_str().unwrap().contains("99999 has an exception"), "{proof}");
}

#[test]
fn what_moved_at_the_remote_is_told_apart_from_damage() {
    let body = |score: u32| {
        move |asked: Option<i64>, _: usize| {
            let story = |id| format!("{{\"id\":{id},\"score\":{score},\"title\":\"t\",\"type\":\"story\"}}");
            Some(Reply::ok(asked.map_or_else(|| "100".to_owned(), story)))
        }
    };
    let (before, after) = (Server::start(body(1)), Server::start(body(2)));
    let home = Home::new(&before.url(), FAST);
    home.run(&["sync", "hn"]).exits(0);
    home.configure(&after.url(), FAST);
    let proof = home.run(&["verify", "hn", "--json"]).exits(0).json();
    let stream = &proof["streams"][0];
    assert_eq!((&stream["moved"], &stream["differs"], &stream["complete"]), (&100.into(), &0.into(), &true.into()));
}
