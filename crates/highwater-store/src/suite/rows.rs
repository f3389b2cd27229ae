//! Rows of mirrored objects: new, the same, changed, hostile.

use std::sync::Arc;

use futures_util::{future::BoxFuture, poll};
use highwater_core::{BatchCounts, DeadLetterPolicy, Key, KeySet, Record, Value, Verdict};

use super::scene::{Lab, Scene, at, verdict};
use super::{ITEMS, USERS, item, user};
use crate::{ErrorKind, Page, Result};

const VERSIONS: &str =
    "SELECT id, body ->> 'text', replace(body ->> 'kids', ' ', '') FROM hn_item_versions ORDER BY version";

/// A scene with one claimed segment, and the texts given to item 1 one after the other, a second apart.
async fn told(lab: Lab, bodies: &[(&str, &[i64])]) -> (Scene, crate::Claimed) {
    let scene = Scene::planned(lab, 1, 11, 10).await;
    let claimed = scene.claim_one(at(0)).await;
    for (second, (text, kids)) in (1..).zip(bodies) {
        scene.commit(&claimed.lease, vec![item(1, text, kids)], vec![], at(second)).await.unwrap();
    }
    (scene, claimed)
}

pub async fn a_changed_body_is_kept_as_a_version(lab: Lab) {
    let (scene, claimed) = told(lab, &[("first", &[]), ("second", &[]), ("first", &[]), ("first", &[])]).await;
    assert_eq!(scene.query(VERSIONS).await, ["1|first|", "1|second|"]);
    let row = scene.stored(1).await.unwrap();
    assert_eq!(row.body, item(1, "first", &[]).body);
    assert_eq!((row.row_check, row.last_fetched_at), (row.body.checksum(), at(4)));
    let times = "SELECT first_seen_at < last_changed_at, last_changed_at < last_fetched_at FROM hn_items";
    assert_eq!(scene.query(times).await, ["1|1"]);
    let counts = scene.commit(&claimed.lease, vec![item(1, "x", &[]), item(2, "y", &[])], vec![], at(9)).await.unwrap();
    assert_eq!((counts.new, counts.changed, counts.unchanged), (1, 1, 0));
    assert_eq!(scene.row().await.stored, 2);
}

pub async fn the_order_of_edges_is_no_version(lab: Lab) {
    let (scene, _) = told(lab, &[("a", &[3, 4, 5]), ("a", &[5, 3, 4])]).await;
    let row = scene.stored(1).await.unwrap();
    assert_eq!((row.body.edges.as_slice(), row.row_check), ([5, 3, 4].as_slice(), row.body.checksum()));
    assert_eq!(scene.query(VERSIONS).await, [""; 0]);
    assert_eq!(scene.query("SELECT last_changed_at < last_fetched_at FROM hn_items").await, ["1"]);
}

pub async fn edges_that_are_gone_are_gone(lab: Lab) {
    let (scene, _) = told(lab, &[("a", &[3, 4, 5]), ("a", &[5, 6]), ("a", &[])]).await;
    assert_eq!(scene.stored(1).await.unwrap().body.edges, [0; 0]);
    assert_eq!(scene.query(VERSIONS).await, ["1|a|[3,4,5]", "1|a|[5,6]"]);
    assert_eq!(scene.query("SELECT count(*) FROM hn_kids").await, ["0"]);
}

pub async fn an_edge_named_twice_counts_once(lab: Lab) {
    let (scene, _) = told(lab, &[("a", &[3, 4, 3, 5, 4]), ("a", &[3, 4, 3, 5, 4])]).await;
    let row = scene.stored(1).await.unwrap();
    assert_eq!((row.body.edges.as_slice(), row.row_check), ([3, 4, 5].as_slice(), row.body.checksum()));
    assert_eq!(scene.query(VERSIONS).await, [""; 0]);
}

pub async fn an_object_that_comes_twice_in_one_commit_is_one_row(lab: Lab) {
    let scene = Scene::planned(lab, 1, 11, 10).await;
    let claimed = scene.claim_one(at(0)).await;
    let twins = vec![item(1, "a", &[3, 4]), item(1, "a", &[3, 4])];
    let counts = scene.commit(&claimed.lease, twins, vec![], at(1)).await.unwrap();
    assert_eq!((counts.new, counts.unchanged, counts.changed), (1, 1, 0));
    assert_eq!(scene.stored(1).await.unwrap().body, item(1, "a", &[3, 4]).body);
    assert_eq!(scene.query(VERSIONS).await, [""; 0]);
}

pub async fn a_row_of_another_width_than_its_table_is_refused(lab: Lab) {
    let scene = Scene::planned(lab, 1, 11, 10).await;
    let claimed = scene.claim_one(at(0)).await;
    let (mut short, mut long) = (item(2, "short", &[]), item(2, "long", &[]));
    short.body.values.pop();
    long.body.values.push(Value::Null);
    for odd in [short, long] {
        let refused = scene.commit(&claimed.lease, vec![item(1, "whole", &[]), odd], vec![], at(1)).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Refused);
    }
    assert_eq!(scene.query("SELECT count(*) FROM hn_items").await, ["0"]);
}

pub async fn an_edge_that_outlived_its_row_is_no_obstacle(lab: Lab) {
    let (scene, claimed) = told(lab, &[("a", &[3, 4])]).await;
    scene.query("DELETE FROM hn_items").await;
    let counts = scene.commit(&claimed.lease, vec![item(1, "a", &[3, 4])], vec![], at(9)).await.unwrap();
    assert_eq!((counts.new, scene.stored(1).await.unwrap().body.edges), (1, vec![3, 4]));
}

pub async fn the_same_commit_twice_changes_nothing(lab: Lab) {
    let scene = Scene::planned(lab, 1, 11, 10).await;
    let claimed = scene.claim_one(at(0)).await;
    let records = vec![item(3, "c", &[9]), item(1, "a", &[7, 8]), item(2, "b", &[])];
    let settlements = vec![
        verdict(4, Verdict::Missing),
        verdict(5, Verdict::Dead),
        verdict(6, Verdict::Retry { at: at(9) }),
        verdict(7, Verdict::Excluded),
        verdict(1, Verdict::Stored),
    ];
    let commit = Arc::new(scene.commit_of(&claimed.lease, records, settlements));
    let mut seen = Vec::new();
    for expected_new in [3, 0] {
        let counts = scene.store().commit(commit.clone()).await.unwrap();
        assert_eq!((counts.new, counts.stored(), counts.changed), (expected_new, 3, 0));
        assert_eq!((counts.missing, counts.excluded, counts.retrying, counts.dead), (1, 1, 1, 1));
        let rows = scene.store().rows(&ITEMS, Page { after: None, limit: 99 }).await.unwrap();
        seen.push((rows, scene.exceptions().await, scene.row().await, scene.ledger_events().await));
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0].3.len(), 2, "the dead and the missing are told once");
    assert_eq!(scene.query("SELECT unresolved_count, stored_count FROM ingest_segments").await, ["2|3"]);
}

/// The caller may be gone at any moment: all of its commit is there then, or nothing.
pub async fn a_commit_broken_off_is_whole_or_absent(lab: Lab) {
    let scene = Scene::planned(lab, 0, 100, 100).await;
    let claimed = scene.claim_one(at(0)).await;
    let commit = |id: i64| {
        let settlements = vec![verdict(50 + id, Verdict::Missing)];
        let commit = scene.commit_of(&claimed.lease, vec![item(id, "", &[id])], settlements);
        scene.store().commit(Arc::new(commit))
    };
    let mut first = commit(0);
    let whole = polled(&mut first, LOOKS_MAX).await;
    if whole == LOOKS_MAX {
        // On a paused clock it gets no further while somebody looks all the time.
        first.await.unwrap();
    }
    for id in 1..=BREAKS {
        polled(&mut commit(id), whole * id.unsigned_abs() / BREAKS.unsigned_abs()).await;
        // Comes after whatever is still being written.
        scene.store().heartbeat(&[], at(0)).await.unwrap();
        let parts = "SELECT (SELECT count(*) FROM hn_items), (SELECT count(*) FROM hn_kids),
                            (SELECT count(*) FROM ingest_exceptions), (SELECT count(*) FROM ledger)";
        let parts = scene.query(parts).await.remove(0);
        let whole = parts.split('|').next().unwrap();
        assert!(parts.split('|').all(|part| part == whole), "rows, edges, exceptions, ledger: {parts}");
    }
}

/// Moments at which a commit is broken off, spread over its length.
const BREAKS: i64 = 45;
/// More than a server takes to answer.
const LOOKS_MAX: u64 = 200_000;

/// Leaves a commit after so many looks at it, or when it is done; how often it was looked at.
async fn polled(commit: &mut BoxFuture<'_, Result<BatchCounts>>, most: u64) -> u64 {
    for looks in 0..most {
        if poll!(&mut *commit).is_ready() {
            return looks;
        }
        tokio::task::yield_now().await;
    }
    most
}

pub async fn an_absence_leaves_the_stored_body_alone(lab: Lab) {
    let (scene, claimed) = told(lab, &[("precious", &[2])]).await;
    for absence in [Verdict::Missing, Verdict::Excluded, Verdict::Dead] {
        scene.commit(&claimed.lease, vec![], vec![verdict(1, absence)], at(5)).await.unwrap();
        let row = scene.stored(1).await.unwrap();
        assert_eq!((row.body, row.last_fetched_at), (item(1, "precious", &[2]).body, at(1)));
    }
}

pub async fn any_text_comes_back_as_it_went_in(lab: Lab) {
    let texts = [
        "",
        "\u{fffd}",
        "it's \"quoted\" \\ ; -- DROP TABLE",
        "👩‍👩‍👧 e\u{301} \u{202e}rtl",
        "\r\n\t",
        "null",
        "{}",
        "?1 $1 {int}",
    ];
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let claimed = scene.claim_one(at(0)).await;
    let records: Vec<Record> = (0..).zip(texts).map(|(id, text)| item(id, text, &[])).collect();
    for _ in 0..2 {
        scene.commit(&claimed.lease, records.clone(), vec![], at(0)).await.unwrap();
    }
    let rows = scene.store().rows(&ITEMS, Page { after: None, limit: 99 }).await.unwrap();
    assert!(rows.iter().map(|row| &row.body).eq(records.iter().map(|record| &record.body)));
    assert_eq!(scene.query(VERSIONS).await, [""; 0], "what went in twice did not change");
}

/// Numbers are spelled as every database gives them back; the order of names is nobody's.
pub async fn json_comes_back_in_its_one_spelling(lab: Lab) {
    let large = format!(r#"{{"n":1{}}}"#, "0".repeat(300));
    let texts = [
        r#"{"a":1,"aaa":{"b":[],"bb":{},"c":null},"bb":[1.0,0.10,-0.5,100,100000000000000000,9223372036854775807]}"#,
        r#"{"n":123456789012345678901234567890,"o":[true,false,"\u0001 \" \\ é 👋"],"z":{"":"","a b":1}}"#,
        large.as_str(),
        "[]",
        "\"text\"",
        "null",
        "0",
    ];
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let claimed = scene.claim_one(at(0)).await;
    let odd = |(id, text): (i64, &str)| {
        let mut record = item(id, "", &[]);
        record.body.values[9] = Value::Json(text.into());
        record
    };
    let records: Vec<Record> = (0..).zip(texts).map(odd).collect();
    for second in 0..2 {
        let counts = scene.commit(&claimed.lease, records.clone(), vec![], at(second)).await.unwrap();
        assert_eq!(counts.changed, 0);
    }
    let rows = scene.store().rows(&ITEMS, Page { after: None, limit: 99 }).await.unwrap();
    assert!(rows.iter().map(|row| &row.body).eq(records.iter().map(|record| &record.body)));
    assert!(rows.iter().all(|row| row.row_check == row.body.checksum()));
}

pub async fn a_large_value_comes_back_whole(lab: Lab) {
    let large = "long ".repeat(1 << 20);
    let kids: Vec<i64> = (0..20_000).rev().collect();
    let (scene, _) = told(lab, &[(&large, &kids), ("short", &kids)]).await;
    assert_eq!(scene.query("SELECT length(body ->> 'text') FROM hn_item_versions").await, [large.len().to_string()]);
    assert_eq!(scene.stored(1).await.unwrap().body, item(1, "short", &kids).body);
}

pub async fn rows_with_names_for_keys_are_rows_too(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let names = ["zoe", "Ann", "10", "007", "ann's"];
    let records = |karma| names.iter().map(|name| user(name, karma)).chain([item(1, "beside", &[])]).collect();
    assert_eq!(scene.commit(&lease, records(1), vec![], at(0)).await.unwrap().new, 6);
    assert_eq!(scene.commit(&lease, records(2), vec![], at(1)).await.unwrap().changed, 5);
    let mut after = None;
    let mut found = Vec::new();
    while let Some(row) = scene.store().rows(&USERS, Page { after, limit: 1 }).await.unwrap().pop() {
        assert_eq!(row.body.values[1], Value::Int(2));
        found.push(row.key.to_string());
        after = Some(row.key);
    }
    assert_eq!(found, ["007", "10", "Ann", "ann's", "zoe"]);
    let asked = KeySet::List(["10", "nobody", "zoe"].map(Key::from).to_vec());
    let known = scene.store().known(&scene.stream, &USERS, &asked).await.unwrap();
    assert!(known.stored.into_iter().eq(["10", "zoe"].map(Key::from)));
}

pub async fn a_refused_row_takes_nothing_else_down(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let mut bad = item(3, "bad", &[]);
    bad.body.values[3] = Value::Text("no number".into());
    let commits = [vec![item(1, "good", &[])], vec![item(2, "before it", &[]), bad], vec![item(4, "good", &[])]];
    let commits = commits.map(|records| scene.store().commit(scene.commit_of(&lease, records, vec![]).into()));
    let ends = futures_util::future::join_all(commits).await;
    let kinds: Vec<_> = ends.into_iter().map(|end| end.map(|counts| counts.new).map_err(|error| error.kind)).collect();
    assert_eq!(kinds, [Ok(1), Err(ErrorKind::Refused), Ok(1)]);
    assert_eq!(scene.query("SELECT id FROM hn_items ORDER BY id").await, ["1", "4"]);
    assert_eq!(scene.row().await.stored, 2);
}

pub async fn a_damaged_row_is_noticed_and_repaired(lab: Lab) {
    let (scene, claimed) = told(lab, &[("sound", &[])]).await;
    for damage in ["text = 'edited'", "parts = NULL", "row_check = 0", "extra = NULL"] {
        scene.query(&format!("UPDATE hn_items SET {damage}")).await;
        let row = scene.stored(1).await.unwrap();
        assert_ne!(row.row_check, row.body.checksum(), "{damage}");
        scene.commit(&claimed.lease, vec![item(1, "sound", &[])], vec![], at(9)).await.unwrap();
        let row = scene.stored(1).await.unwrap();
        assert_eq!((row.row_check, row.body), (item(1, "sound", &[]).body.checksum(), item(1, "sound", &[]).body));
    }
    scene.query("DELETE FROM hn_items").await;
    scene.store().recount(&scene.stream, &ITEMS).await.unwrap();
    assert_eq!(scene.row().await.stored, 0);
}

pub async fn the_last_content_outlives_its_item(lab: Lab) {
    let (scene, claimed) =
        told(lab, &[("[delayed]", &[]), ("said", &[]), ("said more", &[]), ("[flagged]", &[])]).await;
    let mut emptied = item(2, "", &[]);
    emptied.body.values[4] = Value::Text("a title".into());
    scene.commit(&claimed.lease, vec![emptied.clone()], vec![], at(5)).await.unwrap();
    (emptied.body.values[4], emptied.body.values[5]) = (Value::Null, Value::Null);
    scene.commit(&claimed.lease, vec![emptied, item(3, "[dead]", &[])], vec![], at(6)).await.unwrap();
    let content = "SELECT id, title, text FROM hn_items_last_content ORDER BY id";
    assert_eq!(scene.query(content).await, ["1||said more", "2|a title|", "3||[dead]"]);
    scene.close(&claimed.lease, DeadLetterPolicy::Hold, at(7)).await.unwrap_err();
}
