//! Laying segments.

use futures_util::poll;
use highwater_core::{Position, Purpose, SegmentStatus};

use super::scene::{Lab, Scene, at, span};
use crate::{ErrorKind, Page, Plan};

pub async fn segments_tile_at_every_chunk(lab: Lab) {
    let scene = Scene::new(lab).await;
    let mut looks = 0;
    for (start, end) in [(10_000, 14_500), (14_500, 18_000), (5_500, 10_000)] {
        let mut plan = scene.store().plan(scene.plan_of(Purpose::Catchup, start, end, 1));
        while poll!(&mut plan).map(Result::unwrap).is_pending() {
            scene.assert_tiled().await;
            looks += 1;
            tokio::task::yield_now().await;
        }
        scene.assert_tiled().await;
    }
    assert!(looks >= 10, "the plans were seen half laid: {looks}");
    assert_eq!((scene.row().await.span, scene.frontier().await), (span(5_500, 18_000), 5_500));
    let broken_off = scene.store().plan(scene.plan_of(Purpose::Catchup, 1, 5_500, 1));
    let mut broken_off = Box::pin(broken_off);
    assert!(poll!(&mut broken_off).is_pending());
    drop(broken_off);
    scene.plan(Purpose::Catchup, 1, 5_500, 1).await.unwrap();
    scene.assert_tiled().await;
    assert_eq!((scene.row().await.span, scene.frontier().await), (span(1, 18_000), 1));
}

pub async fn an_origin_sinks_and_takes_the_frontier_along(lab: Lab) {
    let scene = Scene::planned(lab, 100, 120, 10).await;
    for claimed in scene.claim("worker", 2, at(0)).await {
        scene.finish(&claimed, at(0)).await;
    }
    assert_eq!(scene.frontier().await, 120);
    scene.plan(Purpose::Catchup, 120, 130, 10).await.unwrap();
    assert_eq!(scene.frontier().await, 120);
    scene.plan(Purpose::Catchup, 85, 100, 10).await.unwrap();
    assert_eq!((scene.row().await.span, scene.frontier().await), (span(85, 130), 85));
    scene.assert_tiled().await;
    for claimed in scene.claim("worker", 2, at(1)).await {
        scene.finish(&claimed, at(1)).await;
    }
    assert_eq!(scene.frontier().await, 120, "what was sealed stays sealed");
}

pub async fn a_plan_laid_twice_is_laid_once(lab: Lab) {
    let scene = Scene::planned(lab, 0, 30, 10).await;
    scene.plan(Purpose::Catchup, 0, 30, 10).await.unwrap();
    scene.plan(Purpose::Catchup, 10, 40, 10).await.unwrap();
    scene.plan(Purpose::Catchup, 5, 5, 10).await.unwrap();
    scene.assert_tiled().await;
    for _ in 0..2 {
        scene.plan(Purpose::Rescan, 3, 25, 10).await.unwrap();
    }
    let segments = scene.store().segments(&scene.stream, Page { after: None, limit: 99 }).await.unwrap();
    let starts = |purpose| segments.iter().filter(move |s| s.purpose == purpose).map(|s| (s.span.start().0, s.status));
    let pending = |start| (start, SegmentStatus::Pending);
    assert!(starts(Purpose::Catchup).eq([0, 10, 20, 30].map(pending)));
    assert!(starts(Purpose::Rescan).eq([3, 13, 23].map(pending)));
    assert_eq!(scene.row().await.span, span(0, 40), "a rescan moves nothing");
}

pub async fn what_is_bare_is_one_segment(lab: Lab) {
    let scene = Scene::new(lab).await;
    let bare = |start, end, until| Plan {
        bare_until: Some(Position(until)),
        ..scene.plan_of(Purpose::Catchup, start, end, 10)
    };
    for plan in [bare(500, 540, 515), bare(540, 560, 20), bare(0, 500, 480)] {
        scene.store().plan(plan).await.unwrap();
        scene.assert_tiled().await;
    }
    let segments = scene.store().segments(&scene.stream, Page { after: None, limit: 99 }).await.unwrap();
    let starts: Vec<_> = segments.iter().map(|segment| segment.span.start().0).collect();
    assert_eq!(starts, [0, 480, 490, 500, 515, 525, 535, 540, 550]);
    let mut many = scene.store().plan(bare(-1_000_000, 0, -20_000));
    assert!(poll!(&mut many).is_pending());
    drop(many);
    scene.store().plan(bare(-1_000_000, 0, -20_000)).await.unwrap();
    scene.assert_tiled().await;
    let lowest = scene.store().segments(&scene.stream, Page { after: None, limit: 1 }).await.unwrap();
    assert_eq!(lowest[0].span, span(-1_000_000, -20_000));
}

pub async fn a_plan_that_leaves_a_gap_is_refused(lab: Lab) {
    let scene = Scene::planned(lab, 10, 20, 10).await;
    for (start, end) in [(21, 30), (1, 9)] {
        assert_eq!(scene.plan(Purpose::Catchup, start, end, 10).await.unwrap_err().kind, ErrorKind::Refused);
    }
    assert_eq!(scene.row().await.span, span(10, 20));
}

pub async fn fifty_million_ids_are_cut_quickly(lab: Lab) {
    let scene = Scene::planned(lab, 1, 50_000_001, 1_000).await;
    assert_eq!(scene.store().outlook(&scene.stream).await.unwrap().open, 50_000);
    scene.assert_tiled().await;
}
