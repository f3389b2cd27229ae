//! Cutting a segment in two while it is being worked on.

use highwater_core::{Position, RescanReason, SegmentStatus};

use super::scene::{Lab, Scene, at, span};
use crate::ErrorKind;

pub async fn a_segment_cut_in_two_is_passed_half_by_half(lab: Lab) {
    let scene = Scene::planned(lab, 0, 100, 50).await;
    let first = scene.claim_one(at(0)).await;
    for place in [20, 20, 0, 50, 70] {
        scene.store().cut(&first.lease, Position(place)).await.unwrap();
        scene.assert_tiled().await;
    }
    let spans = "SELECT start_pos, end_pos, status FROM ingest_segments ORDER BY start_pos";
    assert_eq!(scene.query(spans).await, ["0|20|in_progress", "20|50|pending", "50|100|pending"]);
    let rest = scene.claim("another", 9, at(1)).await;
    assert_eq!(rest.iter().map(|claimed| claimed.rest()).collect::<Vec<_>>(), [span(20, 50), span(50, 100)]);
    scene.finish(&rest[0], at(2)).await;
    assert_eq!(scene.frontier().await, 0, "the second half is not all");
    assert_eq!(scene.close_sparse(&first.lease, at(3)).await.frontier, Position(50));
    scene.finish(&rest[1], at(4)).await;
    assert_eq!(scene.frontier().await, 100);
    scene.assert_tiled().await;
}

pub async fn who_has_lost_a_segment_does_not_cut_it(lab: Lab) {
    let scene = Scene::planned(lab, 0, 100, 100).await;
    let lost = scene.claim_one(at(0)).await;
    let held = scene.claim("another", 1, at(60)).await.remove(0);
    let refused = scene.store().cut(&lost.lease, Position(50)).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Fenced);
    assert_eq!(scene.query("SELECT start_pos, end_pos FROM ingest_segments").await, ["0|100"]);
    scene.store().cut(&held.lease, Position(50)).await.unwrap();
    scene.store().release(std::slice::from_ref(&held.lease)).await.unwrap();
    let released = scene.store().cut(&held.lease, Position(25)).await.unwrap_err();
    assert_eq!(released.kind, ErrorKind::Fenced);
    scene.assert_tiled().await;
}

pub async fn both_halves_belong_to_the_pass(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    scene.finish_all(at(0)).await;
    let store = scene.store();
    store.begin_rescan(&scene.rescan_of(RescanReason::Scheduled, 0, 10, at(1))).await.unwrap();
    let first = scene.claim_one(at(1)).await;
    store.cut(&first.lease, Position(5)).await.unwrap();
    assert_eq!(scene.close_sparse(&first.lease, at(2)).await.status, SegmentStatus::Sealed);
    assert_eq!(store.settle_live(&scene.stream, at(2)).await.unwrap().rescans.len(), 0, "half of it was not looked at");
    let second = scene.claim_one(at(3)).await;
    assert_eq!(second.span, span(5, 10));
    scene.close_sparse(&second.lease, at(3)).await;
    assert_eq!(store.settle_live(&scene.stream, at(4)).await.unwrap().rescans.len(), 1);
}
