//! What is read back: pages, counts, the ledger, runs.

use highwater_core::{DeadLetterPolicy, ExceptionState, Key, KeySet, Purpose, SegmentStatus, Verdict};
use serde_json::json;

use super::scene::{Lab, Scene, at, span, verdict};
use super::{ITEMS, item};
use crate::{ExceptionFilter, LedgerEntry, Page, RunEnd, RunOutcome, RunStart, RunTallies, payload_text};

pub async fn pages_join_to_the_whole(lab: Lab) {
    let scene = Scene::planned(lab, 0, 20, 2).await;
    scene.plan(Purpose::Rescan, 0, 20, 5).await.unwrap();
    let claimed = scene.claim_one(at(0)).await;
    let records = (0..20).map(|key| item(key, "", &[key, key + 1])).collect();
    let settlements = (5..17).map(|key| verdict(key, if key % 2 == 0 { Verdict::Dead } else { Verdict::Missing }));
    scene.commit(&claimed.lease, records, settlements.collect(), at(0)).await.unwrap();
    let store = scene.store();

    let (mut after, mut segments) = (None, Vec::new());
    while let page @ [.., _] = store.segments(&scene.stream, Page { after, limit: 3 }).await.unwrap().as_slice() {
        after = page.last().map(|segment| (segment.span.start(), segment.id));
        segments.extend(page.iter().map(|segment| segment.span.start().0));
    }
    assert_eq!(segments, [0, 0, 2, 4, 5, 6, 8, 10, 10, 12, 14, 15, 16, 18]);

    let (mut after, mut dead) = (None, Vec::new());
    let filter = ExceptionFilter { state: Some(ExceptionState::DeadLetter) };
    while let page @ [.., _] =
        store.exceptions(&scene.stream, filter, Page { after: after.clone(), limit: 2 }).await.unwrap().as_slice()
    {
        after = page.last().map(|exception| exception.key.clone());
        dead.extend(page.iter().map(|exception| exception.key.to_string()));
    }
    assert_eq!(dead, ["10", "12", "14", "16", "6", "8"], "in order of their text");

    let (mut after, mut rows) = (None, Vec::new());
    while let page @ [.., _] = store.rows(&ITEMS, Page { after, limit: 7 }).await.unwrap().as_slice() {
        after = page.last().map(|row| row.key.clone());
        rows.extend(page.iter().map(|row| row.body.edges[1] - 1));
    }
    assert!(rows.into_iter().eq(0..20));

    let counts = store.counts(&scene.stream).await.unwrap();
    assert_eq!((counts.segments_in(SegmentStatus::Pending), counts.segments_in(SegmentStatus::InProgress)), (13, 1));
    assert_eq!((counts.exceptions_in(ExceptionState::Missing), counts.exceptions_in(ExceptionState::Excluded)), (6, 0));
}

pub async fn known_keys_are_told_by_range_and_by_name(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let settlements = vec![verdict(4, Verdict::Missing), verdict(9, Verdict::Dead)];
    scene.commit(&lease, vec![item(2, "", &[]), item(8, "", &[])], settlements, at(0)).await.unwrap();
    let list = KeySet::List([8, 4, 3, 2, 2].map(Key::Number).to_vec());
    for keys in [KeySet::Range(span(2, 9)), list] {
        let known = scene.store().known(&scene.stream, &ITEMS, &keys).await.unwrap();
        assert!(known.stored.into_iter().eq([2, 8].map(Key::Number)));
        assert_eq!(known.exceptions.iter().map(|found| found.key.number()).collect::<Vec<_>>(), [Some(4)]);
    }
}

pub async fn the_ledger_holds_after_everything(lab: Lab) {
    let scene = Scene::planned(lab, 0, 30, 10).await;
    let entry = |source: &str, n: i64| LedgerEntry {
        at: at(n),
        event_type: "NOTED",
        source: source.parse().unwrap(),
        entity_type: "thing",
        entity_id: n.to_string(),
        payload: json!({"longer": "\u{fffd} \"x\" 👋", "n": n, "a": [1, {"zz": null, "b": true}]}),
        actor: "me".into(),
    };
    for claimed in scene.claim("worker", 3, at(0)).await {
        let dead = claimed.span.start().0;
        scene.store_all_but(&claimed, &[dead], at(0)).await;
        scene.commit(&claimed.lease, vec![], vec![verdict(dead, Verdict::Dead)], at(0)).await.unwrap();
        // The first close is refused: the chain goes on from the last line that stands.
        scene.query("DELETE FROM hn_items WHERE id = 5").await;
        let closed = scene.close(&claimed.lease, DeadLetterPolicy::Pass, at(0)).await;
        assert_eq!(closed.is_err(), dead == 0);
        scene.store().append_ledger(&entry("hn", dead)).await.unwrap();
        scene.store().append_ledger(&entry("other", dead)).await.unwrap();
    }
    assert_eq!(scene.ledger_events().await.len(), 3 + 2 + 3);
    let other = scene.store().ledger(&"other".parse().unwrap(), Page { after: Some(1), limit: 1 }).await.unwrap();
    assert_eq!((other.len(), other[0].seq, other[0].payload["n"].clone()), (1, 2, json!(10)));
    // Whoever reads the column finds under the hash what is in it, but for spaces.
    let shown = scene.query("SELECT CAST(payload AS TEXT) FROM ledger WHERE source = 'hn' ORDER BY seq").await;
    let lines = scene.store().ledger(&scene.stream.source, Page { after: None, limit: 99 }).await.unwrap();
    let hashed = lines.iter().map(|line| payload_text(&line.payload).replace(' ', ""));
    assert!(shown.iter().map(|text| text.replace(' ', "")).eq(hashed), "{shown:?}");
}

pub async fn a_run_is_measured(lab: Lab) {
    let scene = Scene::new(lab).await;
    let source = scene.stream.source.clone();
    let start = RunStart { id: "run".into(), source: source.clone(), command: "sync", workers: 4, at: at(0) };
    let end = RunEnd {
        id: "run".into(),
        source,
        command: "sync",
        outcome: RunOutcome::Complete,
        items: 500,
        requests: 510,
        tallies: RunTallies::default(),
        at: at(100),
    };
    for _ in 0..2 {
        scene.store().begin_run(&start).await.unwrap();
        scene.store().end_run(&end).await.unwrap();
    }
    let runs = "SELECT command, worker_count, items, requests, outcome FROM ingest_runs
                WHERE throughput_items_per_second = 5 AND ended_at > started_at";
    assert_eq!(scene.query(runs).await, ["sync|4|500|510|complete"]);
}

pub async fn the_database_finds_itself_sound(lab: Lab) {
    let scene = Scene::planned(lab, 0, 100, 10).await;
    for claimed in scene.claim("worker", 5, at(0)).await {
        scene.finish(&claimed, at(0)).await;
    }
    assert_eq!(scene.store().integrity().await.unwrap(), [""; 0]);
}
