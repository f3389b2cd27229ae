//! Passes over what is stored already.

use futures_util::poll;
use highwater_core::{DeadLetterPolicy, Position, Purpose, Rescan, RescanReason, SegmentStatus, Verdict};

use super::item;
use super::scene::{Lab, Scene, at, span, verdict};
use crate::{Claimed, ErrorKind, RescanPlan, Wanted};

const LAID: &str = "SELECT count(*) FROM ingest_segments WHERE purpose = 'rescan'";

/// A stream of forty keys that are all stored.
async fn stored(lab: Lab) -> Scene {
    let scene = Scene::planned(lab, 0, 40, 10).await;
    scene.finish_all(at(0)).await;
    scene
}

async fn settled(scene: &Scene, seconds: i64) -> Vec<Rescan> {
    scene.store().settle_live(&scene.stream, at(seconds)).await.unwrap().rescans
}

pub async fn a_pass_counts_what_it_saw_and_leaves_no_segments(lab: Lab) {
    let scene = stored(lab).await;
    let plan = scene.rescan_of(RescanReason::Scheduled, 15, 99, at(1));
    let id = scene.store().begin_rescan(&plan).await.unwrap();
    let passes = scene.claim("worker", 9, at(1)).await;
    assert_eq!(passes.iter().map(|pass| pass.span.start().0).collect::<Vec<_>>(), [15, 25, 35]);
    for pass in &passes {
        assert_eq!(settled(&scene, 2).await, [], "not before all of it is done");
        scene.commit(&pass.lease, vec![item(pass.span.start().0, "changed", &[])], vec![], at(2)).await.unwrap();
        let rest = pass.span.start().0 + 1..pass.span.end().0;
        let rest = rest.map(|key| item(key, "text", &[])).collect();
        scene.commit(&pass.lease, rest, vec![], at(2)).await.unwrap();
        scene.close(&pass.lease, DeadLetterPolicy::Hold, at(2)).await.unwrap();
    }
    let counts = "SELECT seen_count, changed_count FROM ingest_segments WHERE purpose = 'rescan' ORDER BY start_pos";
    assert_eq!(scene.query(counts).await, ["10|1", "10|1", "5|1"]);
    let ended = settled(&scene, 3).await;
    let [rescan] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!((rescan.id, rescan.span, rescan.sealed_at), (id, span(15, 40), Some(at(3))));
    assert_eq!((rescan.began_at, rescan.items, rescan.changed), (at(1), 25, 3));
    assert_eq!(settled(&scene, 4).await, []);

    scene.plan(Purpose::Catchup, 40, 50, 10).await.unwrap();
    let next = scene.query("SELECT max(segment_id) FROM ingest_segments").await;
    assert_eq!(next[0].parse::<i64>().unwrap(), passes[2].lease.segment.0 + 1, "no number is used twice");
    settled(&scene, 4).await;
    assert_eq!(scene.query(LAID).await, ["0"]);
    scene.assert_tiled().await;
    let state = scene.store().live_state(&scene.stream).await.unwrap();
    assert_eq!((state.rescans.len(), state.last_rescan.as_ref()), (0, Some(rescan)));
    assert_eq!((state.rescanned, state.differed), (25, 3));
    let sealed = r#"RESCAN_SEALED {"changed":3,"end":40,"items":25,"reason":"scheduled","start":15,"stream":"items"}"#;
    assert_eq!(scene.ledger_events().await.iter().filter(|event| *event == sealed).count(), 1);
    assert_eq!(scene.store().integrity().await.unwrap(), [""; 0]);
}

pub async fn what_is_brought_twice_is_seen_once(lab: Lab) {
    let scene = stored(lab).await;
    scene.store().begin_rescan(&scene.rescan_of(RescanReason::Scheduled, 10, 30, at(1))).await.unwrap();
    for pass in scene.claim("worker", 9, at(1)).await {
        scene.store_all_but(&pass, &[], at(2)).await;
        scene.finish(&pass, at(2)).await;
    }
    assert_eq!(settled(&scene, 3).await[0].items, 20);
}

pub async fn a_claim_of_what_is_new_leaves_a_pass_alone(lab: Lab) {
    let scene = stored(lab).await;
    scene.store().begin_rescan(&scene.rescan_of(RescanReason::Scheduled, 0, 40, at(1))).await.unwrap();
    scene.plan(Purpose::Catchup, 40, 60, 10).await.unwrap();
    let starts = |claimed: Vec<Claimed>| claimed.iter().map(|one| one.span.start().0).collect::<Vec<_>>();
    assert_eq!(starts(scene.claim_of("worker", 9, Wanted::New, at(1)).await), [40, 50]);
    assert_eq!(starts(scene.claim_of("worker", 9, Wanted::New, at(1)).await), [0; 0]);
    assert_eq!(starts(scene.claim_of("worker", 9, Wanted::Anything, at(1)).await), [0, 10, 20, 30]);
}

pub async fn a_pass_over_one_key_is_laid_once_and_leaves_nothing(lab: Lab) {
    let scene = stored(lab).await;
    let plan = |seconds| scene.rescan_of(RescanReason::Key, 7, 8, at(seconds));
    let first = scene.store().begin_rescan(&plan(1)).await.unwrap();
    assert_eq!(scene.store().begin_rescan(&plan(2)).await.unwrap(), first);
    assert_eq!(scene.query(LAID).await, ["1"]);
    let pass = scene.claim_one(at(3)).await;
    let second = scene.store().begin_rescan(&plan(4)).await.unwrap();
    assert_ne!(second, first, "what is at work may have been asked for before");
    scene.finish(&pass, at(5)).await;
    let again = scene.claim_one(at(5)).await;
    scene.finish(&again, at(5)).await;
    let lines = scene.ledger_events().await.len();
    assert_eq!(settled(&scene, 6).await, []);
    assert_eq!(scene.ledger_events().await.len(), lines, "no line for a single key");
    let state = scene.store().live_state(&scene.stream).await.unwrap();
    assert_eq!((state.rescans.len(), state.last_rescan, state.rescanned), (0, None, 0));
    // The youngest of each go when there are younger ones.
    scene.store().begin_rescan(&scene.rescan_of(RescanReason::Scheduled, 0, 10, at(7))).await.unwrap();
    settled(&scene, 8).await;
    assert_eq!(scene.query(LAID).await, ["1"]);
    assert_eq!(scene.query("SELECT reason FROM ingest_rescans").await, ["scheduled"]);
}

pub async fn a_pass_that_is_asked_for_twice_is_laid_once(lab: Lab) {
    let scene = stored(lab).await;
    let plan = scene.rescan_of(RescanReason::History, 0, 40, at(1));
    let first = scene.store().begin_rescan(&plan).await.unwrap();
    assert_eq!(scene.store().begin_rescan(&plan).await.unwrap(), first);
    assert_eq!(scene.query(LAID).await, ["4"]);
    let later = RescanPlan { now: at(2), ..plan };
    assert_ne!(scene.store().begin_rescan(&later).await.unwrap(), first);
    let state = scene.store().live_state(&scene.stream).await.unwrap();
    assert_eq!(state.rescans.iter().map(|rescan| rescan.began_at).collect::<Vec<_>>(), [at(1), at(2)]);
}

pub async fn a_long_pass_is_laid_in_chunks_and_goes_on_where_it_broke_off(lab: Lab) {
    let scene = Scene::planned(lab, 0, 200_000, 100_000).await;
    let plan = |end| RescanPlan { segment_size: 1, ..scene.rescan_of(RescanReason::History, 0, end, at(1)) };
    let refused = scene.store().begin_rescan(&plan(100_001)).await.unwrap_err();
    assert_eq!((refused.kind, scene.query(LAID).await), (ErrorKind::Refused, vec!["0".to_owned()]));

    let plans = [1, 2].map(|second| RescanPlan { now: at(second), ..plan(3_500) });
    let laid = async || scene.query(LAID).await[0].parse::<u32>().unwrap();
    for plan in &plans {
        let before = laid().await;
        let mut broken_off = scene.store().begin_rescan(plan);
        while laid().await == before {
            assert!(poll!(&mut broken_off).is_pending());
            tokio::task::yield_now().await;
        }
    }
    let mut before = laid().await;
    assert!(before < 7_000, "{before}");
    scene.query("UPDATE ingest_segments SET status = 'sealed' WHERE purpose = 'rescan'").await;
    while before < 7_000 {
        assert_eq!(settled(&scene, 2).await, [], "not before all of it is laid");
        let now = laid().await;
        assert!(now > before && now - before <= 1_000, "{before} and then {now}");
        before = now;
    }
    let tiled = "SELECT count(*), count(DISTINCT start_pos), min(start_pos), max(end_pos) FROM ingest_segments
                 WHERE purpose = 'rescan' GROUP BY rescan_id";
    assert_eq!(scene.query(tiled).await, ["3500|3500|0|3500"; 2]);
    scene.store().begin_rescan(&plans[0]).await.unwrap();
    assert_eq!(laid().await, 7_000);
}

pub async fn an_absence_outlives_the_segment_that_found_it(lab: Lab) {
    let scene = stored(lab).await;
    scene.store().begin_rescan(&scene.rescan_of(RescanReason::Scheduled, 10, 30, at(1))).await.unwrap();
    let passes = scene.claim("worker", 9, at(1)).await;
    for pass in &passes {
        scene.store_all_but(pass, &[14], at(1)).await;
    }
    scene.commit(&passes[0].lease, vec![], vec![verdict(14, Verdict::Missing)], at(1)).await.unwrap();
    for pass in &passes {
        scene.close(&pass.lease, DeadLetterPolicy::Hold, at(2)).await.unwrap();
    }
    scene.store().begin_rescan(&scene.rescan_of(RescanReason::Scheduled, 0, 10, at(3))).await.unwrap();
    assert_eq!(settled(&scene, 4).await.len(), 1);
    assert_eq!(scene.query(LAID).await, ["1"]);
    let owner = "SELECT e.item_key, e.state, s.purpose, s.start_pos FROM ingest_exceptions AS e
                 JOIN ingest_segments AS s ON s.segment_id = e.segment_id";
    assert_eq!(scene.query(owner).await, ["14|missing|catchup|10"]);
    assert_eq!(scene.frontier().await, 40);
}

pub async fn a_dead_letter_keeps_its_segment_and_ends_the_pass(lab: Lab) {
    let scene = stored(lab).await;
    scene.store().begin_rescan(&scene.rescan_of(RescanReason::Scheduled, 10, 20, at(1))).await.unwrap();
    let pass = scene.claim_one(at(1)).await;
    scene.store_all_but(&pass, &[14], at(1)).await;
    scene.commit(&pass.lease, vec![], vec![verdict(14, Verdict::Retry { at: at(5) })], at(1)).await.unwrap();
    scene.close(&pass.lease, DeadLetterPolicy::Hold, at(1)).await.unwrap();
    assert_eq!(settled(&scene, 2).await, [], "a retry is waited for");
    let pass = scene.claim_one(at(5)).await;
    scene.commit(&pass.lease, vec![], vec![verdict(14, Verdict::Dead)], at(5)).await.unwrap();
    let closed = scene.close(&pass.lease, DeadLetterPolicy::Hold, at(5)).await.unwrap();
    assert_eq!((closed.status, closed.frontier), (SegmentStatus::DeadLetter, Position(40)));
    assert_eq!(settled(&scene, 6).await.len(), 1);
    scene.plan(Purpose::Catchup, 40, 50, 10).await.unwrap();
    settled(&scene, 6).await;
    assert_eq!(scene.query(LAID).await, ["1"], "it is still listed");

    scene.store().replay(&scene.stream, None, at(7)).await.unwrap();
    let pass = scene.claim_one(at(7)).await;
    let healed = (vec![item(14, "here", &[])], vec![verdict(14, Verdict::Stored)]);
    scene.commit(&pass.lease, healed.0, healed.1, at(8)).await.unwrap();
    scene.close(&pass.lease, DeadLetterPolicy::Hold, at(8)).await.unwrap();
    assert_eq!(settled(&scene, 9).await, []);
    assert_eq!(scene.query(LAID).await, ["0"]);
}
