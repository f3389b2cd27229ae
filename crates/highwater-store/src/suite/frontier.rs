//! What the frontier may cross, and what it may not.

use futures_util::future::join_all;
use highwater_core::{DeadLetterPolicy, Frontier, KeySet, Position, Purpose, SegmentStatus, Verdict};

use super::item;
use super::scene::{Lab, Scene, at, verdict};
use crate::{ErrorKind, Page};

pub async fn the_frontier_crosses_only_a_gap_free_prefix(lab: Lab) {
    frontier_follows_the_model(lab, &[(3, false), (0, false), (1, true), (5, false), (2, false), (4, false)]).await;
}

/// Closes segments of ten keys in this order, each sealed or held by a dead letter, beside the core's own frontier;
/// then brings the dead back and seals the rest.
pub async fn frontier_follows_the_model(lab: Lab, order: &[(usize, bool)]) {
    let end = i64::try_from(order.len()).unwrap() * 10;
    let scene = Scene::planned(lab, 0, end, 10).await;
    let claimed = scene.claim("worker", 1_000, at(0)).await;
    let mut model = Frontier::new(Position(0));
    for (index, dies) in order {
        let segment = &claimed[*index];
        let dead = segment.span.start().0 + 4;
        let closed = if *dies {
            scene.store_all_but(segment, &[dead], at(1)).await;
            scene.commit(&segment.lease, vec![], vec![verdict(dead, Verdict::Dead)], at(1)).await.unwrap();
            scene.close(&segment.lease, DeadLetterPolicy::Hold, at(1)).await.unwrap()
        } else {
            model.seal(segment.span).unwrap();
            scene.finish(segment, at(1)).await
        };
        assert_eq!((closed.frontier, scene.frontier().await), (model.position(), model.position().0));
    }
    scene.store().replay(&scene.stream, None, at(2)).await.unwrap();
    for segment in scene.claim("worker", 1_000, at(2)).await {
        let key = segment.due[0].key.number().unwrap();
        scene
            .commit(&segment.lease, vec![item(key, "", &[])], vec![verdict(key, Verdict::Stored)], at(3))
            .await
            .unwrap();
        let closed = scene.close(&segment.lease, DeadLetterPolicy::Hold, at(3)).await.unwrap();
        assert_eq!(closed.frontier, model.seal(segment.span).unwrap());
    }
    assert_eq!((scene.frontier().await, model.position().0), (end, end));
}

pub async fn segments_closed_at_once_are_judged_each_by_itself(lab: Lab) {
    let scene = Scene::planned(lab, 0, 60, 10).await;
    let mut claimed = scene.claim("worker", 6, at(0)).await;
    for segment in &claimed {
        scene.store_all_but(segment, &[24], at(1)).await;
    }
    claimed[4].lease.epoch.0 += 1;
    let closings = claimed.iter().map(|segment| scene.close(&segment.lease, DeadLetterPolicy::Hold, at(2)));
    let ends = join_all(closings).await;
    let kinds: Vec<_> = ends.into_iter().map(|end| end.map(|end| end.status).map_err(|error| error.kind)).collect();
    let (sealed, short) = (Ok(SegmentStatus::Sealed), Err(ErrorKind::Unaccounted));
    assert_eq!(kinds, [sealed, sealed, short, sealed, Err(ErrorKind::Fenced), sealed]);
    assert_eq!((scene.frontier().await, scene.row().await.stored), (20, 59));
    assert_eq!(scene.ledger_events().await.len(), 4);
    scene.commit(&claimed[2].lease, vec![item(24, "", &[])], vec![], at(3)).await.unwrap();
    claimed[4].lease.epoch.0 -= 1;
    let closings = [4, 2].map(|index| scene.close(&claimed[index].lease, DeadLetterPolicy::Hold, at(4)));
    assert!(join_all(closings).await.iter().all(Result::is_ok));
    assert_eq!((scene.frontier().await, scene.row().await.stored), (60, 60));
}

pub async fn dead_letters_hold_the_frontier_or_are_passed(lab: Lab) {
    let scene = Scene::planned(lab, 0, 20, 10).await;
    let claimed = scene.claim("worker", 2, at(0)).await;
    for segment in &claimed {
        let dead = segment.span.start().0;
        scene.store_all_but(segment, &[dead], at(0)).await;
        scene.commit(&segment.lease, vec![], vec![verdict(dead, Verdict::Dead)], at(0)).await.unwrap();
    }
    let passed = scene.close(&claimed[0].lease, DeadLetterPolicy::Pass, at(1)).await.unwrap();
    assert_eq!((passed.status, passed.frontier), (SegmentStatus::Sealed, Position(10)));
    let held = scene.close(&claimed[1].lease, DeadLetterPolicy::Hold, at(1)).await.unwrap();
    assert_eq!((held.status, held.frontier), (SegmentStatus::DeadLetter, Position(10)));
    let unresolved = "SELECT status, unresolved_count FROM ingest_segments ORDER BY start_pos";
    assert_eq!(scene.query(unresolved).await, ["sealed|1", "dead_letter|1"]);
    assert_eq!(scene.claim("worker", 9, at(9999)).await, [], "the dead are not tried again");
}

pub async fn a_rescan_never_moves_the_frontier(lab: Lab) {
    let scene = Scene::planned(lab, 0, 20, 10).await;
    scene.plan(Purpose::Rescan, 0, 20, 20).await.unwrap();
    let claimed = scene.claim("worker", 9, at(0)).await;
    let rescan = claimed.iter().find(|segment| segment.purpose == Purpose::Rescan).unwrap();
    let closed = scene.finish(rescan, at(1)).await;
    assert_eq!((closed.status, closed.frontier), (SegmentStatus::Sealed, Position(0)));
    let catchup = claimed.iter().find(|segment| segment.purpose == Purpose::Catchup).unwrap();
    assert_eq!(scene.finish(catchup, at(2)).await.frontier, Position(10));
}

/// A catch-up segment held by a dead key, and a rescan over it.
async fn held_and_rescanned(lab: Lab) -> (Scene, crate::Claimed) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let held = scene.claim_one(at(0)).await;
    scene.store_all_but(&held, &[4], at(0)).await;
    scene.commit(&held.lease, vec![], vec![verdict(4, Verdict::Dead)], at(0)).await.unwrap();
    scene.close(&held.lease, DeadLetterPolicy::Hold, at(0)).await.unwrap();
    scene.plan(Purpose::Rescan, 0, 10, 10).await.unwrap();
    let rescan = scene.claim_one(at(1)).await;
    assert_eq!(rescan.purpose, Purpose::Rescan);
    (scene, rescan)
}

pub async fn a_rescan_heals_a_held_segment(lab: Lab) {
    let (scene, rescan) = held_and_rescanned(lab).await;
    let again = verdict(4, Verdict::Retry { at: at(9) });
    scene.commit(&rescan.lease, vec![], vec![again], at(2)).await.unwrap();
    let closed = scene.close(&rescan.lease, DeadLetterPolicy::Hold, at(2)).await.unwrap();
    assert_eq!(closed.status, SegmentStatus::Sealed, "the key stays the business of the segment that needs it");
    let held = scene.claim_one(at(3)).await;
    assert_eq!((held.purpose, held.due.len()), (Purpose::Catchup, 0));
    let waiting = scene.close(&held.lease, DeadLetterPolicy::Hold, at(3)).await.unwrap();
    assert_eq!((waiting.status, waiting.frontier), (SegmentStatus::RetryWait, Position(0)));

    scene.plan(Purpose::Rescan, 0, 10, 10).await.unwrap();
    let rescan = scene.claim_one(at(4)).await;
    let healed = (vec![item(4, "here", &[])], vec![verdict(4, Verdict::Stored)]);
    scene.commit(&rescan.lease, healed.0, healed.1, at(4)).await.unwrap();
    scene.close(&rescan.lease, DeadLetterPolicy::Hold, at(4)).await.unwrap();
    let outlook = scene.store().outlook(&scene.stream).await.unwrap();
    assert_eq!((outlook.open, outlook.next_retry_at), (1, None), "the healed segment is to be closed");
    let held = scene.claim_one(at(5)).await;
    let closed = scene.close(&held.lease, DeadLetterPolicy::Hold, at(5)).await.unwrap();
    assert_eq!((closed.status, closed.frontier), (SegmentStatus::Sealed, Position(10)));
    assert_eq!(scene.query("SELECT sum(unresolved_count) FROM ingest_segments").await, ["0"]);
}

pub async fn what_a_rescan_left_open_holds_the_frontier(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    scene.plan(Purpose::Rescan, 0, 10, 10).await.unwrap();
    let claimed = scene.claim("worker", 2, at(0)).await;
    let (catchup, rescan) = (&claimed[0], &claimed[1]);
    scene.commit(&rescan.lease, vec![], vec![verdict(4, Verdict::Retry { at: at(60) })], at(0)).await.unwrap();
    scene.store_all_but(catchup, &[4], at(0)).await;
    let closed = scene.close(&catchup.lease, DeadLetterPolicy::Hold, at(1)).await.unwrap();
    assert_eq!((closed.status, closed.frontier), (SegmentStatus::RetryWait, Position(0)));
    let closed = scene.close(&rescan.lease, DeadLetterPolicy::Hold, at(1)).await.unwrap();
    assert_eq!(closed.status, SegmentStatus::Sealed);
}

pub async fn a_failed_second_look_does_not_undo_a_confirmed_absence(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let first = scene.claim_one(at(0)).await;
    scene.store_all_but(&first, &[4], at(0)).await;
    scene.commit(&first.lease, vec![], vec![verdict(4, Verdict::Missing)], at(0)).await.unwrap();
    assert_eq!(scene.close(&first.lease, DeadLetterPolicy::Hold, at(0)).await.unwrap().frontier, Position(10));
    scene.plan(Purpose::Rescan, 0, 10, 10).await.unwrap();
    let rescan = scene.claim_one(at(1)).await;
    scene.commit(&rescan.lease, vec![], vec![verdict(4, Verdict::Retry { at: at(9) })], at(1)).await.unwrap();
    assert_eq!(scene.query("SELECT item_key, state FROM ingest_exceptions").await, ["4|missing"]);
    let found = (vec![item(4, "here", &[])], vec![verdict(4, Verdict::Stored)]);
    scene.commit(&rescan.lease, found.0, found.1, at(2)).await.unwrap();
    assert_eq!(scene.exceptions().await, []);
    assert_eq!(scene.query("SELECT DISTINCT status FROM ingest_segments WHERE purpose = 'catchup'").await, ["sealed"]);
}

pub async fn a_segment_that_does_not_add_up_is_not_sealed(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let claimed = scene.claim_one(at(0)).await;
    scene.store_all_but(&claimed, &[3, 4], at(0)).await;
    // One key explained, and one that is stored as well explains nothing more.
    let settlements = vec![verdict(3, Verdict::Missing), verdict(5, Verdict::Excluded)];
    scene.commit(&claimed.lease, vec![], settlements, at(0)).await.unwrap();
    let refused = scene.close(&claimed.lease, DeadLetterPolicy::Hold, at(1)).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unaccounted);
    assert!(refused.doing.contains("9 of 10"), "{}", refused.doing);
    assert_eq!((scene.frontier().await, scene.ledger_events().await.len()), (0, 1));
    assert_eq!(scene.query("SELECT status, scan_cursor IS NULL FROM ingest_segments").await, ["in_progress|1"]);
    scene.commit(&claimed.lease, vec![item(4, "", &[])], vec![], at(2)).await.unwrap();
    assert_eq!(scene.close(&claimed.lease, DeadLetterPolicy::Hold, at(2)).await.unwrap().frontier, Position(10));
    let known = scene.store().known(&scene.stream, &super::ITEMS, &KeySet::Range(claimed.span)).await.unwrap();
    assert_eq!((known.stored.len(), known.exceptions.len()), (9, 2));
    let last = scene.store().ledger(&scene.stream.source, Page { after: Some(1), limit: 9 }).await.unwrap();
    let sealed = r#"{"dead":0,"end":10,"excluded":0,"missing":1,"start":0,"stored":9,"stream":"items"}"#;
    assert_eq!((last[0].event_type.as_str(), last[0].payload.to_string().as_str()), ("SEGMENT_SEALED", sealed));
}
