//! Windows in which nobody listened.

use highwater_core::{BlindWindow, Position, Purpose, RescanReason, Timestamp, WindowId};

use super::scene::{Lab, Scene, at, span, worker};
use crate::{EndWindow, LiveState, NewWindow};

async fn opened(scene: &Scene, opened_at: Timestamp, now: Timestamp) -> WindowId {
    let stream = scene.stream.clone();
    let window = NewWindow { stream, opened_at, reason: "silence".into(), worker: worker("ear"), now };
    scene.store().open_window(&window).await.unwrap()
}

fn end_of(scene: &Scene, window: WindowId, head: i64, start: i64, now: Timestamp) -> EndWindow {
    let rescan = scene.rescan_of(RescanReason::Blind, start, head, now);
    EndWindow { window, ended_at: now, head: Position(head), rescan, worker: worker("ear") }
}

async fn state(scene: &Scene) -> LiveState {
    scene.store().live_state(&scene.stream).await.unwrap()
}

/// The windows that this call closed.
async fn closed(scene: &Scene, now: Timestamp) -> Vec<BlindWindow> {
    scene.store().settle_live(&scene.stream, now).await.unwrap().windows
}

pub async fn a_window_opens_once_and_ends_once(lab: Lab) {
    let scene = Scene::planned(lab, 0, 40, 10).await;
    assert!(scene.listen("ear", at(0)).await);
    let first = opened(&scene, at(5), at(6)).await;
    assert_eq!(opened(&scene, at(3), at(7)).await, first);
    assert_eq!(opened(&scene, at(9), at(9)).await, first);
    let open = state(&scene).await.windows;
    assert_eq!((open.len(), open[0].opened_at, open[0].reason.as_str()), (1, at(3), "silence"));
    assert_eq!((open[0].ended_at, open[0].rescan, open[0].lasted()), (None, None, None));

    let end = end_of(&scene, first, 40, 15, at(10));
    for _ in 0..2 {
        scene.store().end_window(&end).await.unwrap();
        let later = EndWindow { ended_at: at(99), head: Position(99), ..end.clone() };
        scene.store().end_window(&later).await.unwrap();
    }
    let now = state(&scene).await;
    let ended = &now.windows[0];
    assert_eq!((ended.ended_at, ended.head, ended.rescan), (Some(at(10)), Some(Position(40)), Some(now.rescans[0].id)));
    assert_eq!((now.rescans.len(), now.rescans[0].span, now.rescans[0].reason), (1, span(15, 40), RescanReason::Blind));
    let laid = "SELECT start_pos, end_pos, status FROM ingest_segments WHERE purpose = 'rescan'
                AND rescan_id IS NOT NULL ORDER BY start_pos";
    assert_eq!(scene.query(laid).await, ["15|25|pending", "25|35|pending", "35|40|pending"]);

    assert_ne!(opened(&scene, at(20), at(20)).await, first, "one that has ended is not open");
    assert_eq!(state(&scene).await.windows.len(), 2);
    let events = scene.ledger_events().await;
    let kinds: Vec<_> = events.iter().map(|event| event.split(' ').next().unwrap()).collect();
    assert_eq!(kinds, ["BLIND_WINDOW_OPENED", "BLIND_WINDOW_ENDED", "BLIND_WINDOW_OPENED"]);
    assert!(events[1].contains(r#""end":40,"ended":1700000010000,"head":40,"opened":1700000003000"#), "{events:?}");
}

pub async fn a_window_closes_only_when_all_of_it_was_looked_at_again(lab: Lab) {
    let scene = Scene::planned(lab, 0, 20, 10).await;
    scene.finish_all(at(0)).await;
    assert!(scene.listen("ear", at(0)).await);
    let mut windows = Vec::new();
    // Each reaches further back than the one before, so that none can share its pass.
    for (second, start) in [(1, 12), (2, 11), (3, 10)] {
        let window = opened(&scene, at(second), at(second)).await;
        assert_eq!(closed(&scene, at(second)).await, [], "not before it has ended");
        scene.store().end_window(&end_of(&scene, window, 30, start, at(second))).await.unwrap();
        windows.push(window);
    }
    let [unnamed, unscanned, sound] = windows[..] else { unreachable!() };
    for window in [unscanned, sound] {
        scene.store().names_done(window, at(4)).await.unwrap();
    }
    let passes = scene.claim("worker", 9, at(4)).await;
    assert_eq!(passes.len(), 3, "the span of a pass ends where its stream does");
    assert!(passes.iter().all(|pass| pass.purpose == Purpose::Rescan && pass.span.end() == Position(20)));
    scene.finish(&passes[0], at(5)).await;
    scene.finish(&passes[2], at(5)).await;
    assert_eq!(closed(&scene, at(6)).await, [], "the new positions are not behind the frontier");
    assert_eq!(state(&scene).await.rescans.len(), 1);

    scene.plan(Purpose::Catchup, 20, 30, 10).await.unwrap();
    let head = scene.claim_one(at(7)).await;
    assert_eq!(scene.finish(&head, at(7)).await.frontier, Position(30));
    let first = closed(&scene, at(8)).await;
    assert_eq!(first.iter().map(|window| (window.id, window.closed_at)).collect::<Vec<_>>(), [(sound, Some(at(8)))]);
    assert_eq!(closed(&scene, at(9)).await, [], "told once");

    scene.store().names_done(unnamed, at(9)).await.unwrap();
    scene.finish(&passes[1], at(9)).await;
    let ids: Vec<_> = closed(&scene, at(10)).await.iter().map(|window| window.id).collect();
    assert_eq!(ids, [unnamed, unscanned]);
    assert_eq!(state(&scene).await.windows, []);
    let events = scene.ledger_events().await;
    assert_eq!(events.iter().filter(|event| event.starts_with("BLIND_WINDOW_CLOSED")).count(), 3, "{events:?}");
}

/// A feed that comes and goes while a pass waits for its turn.
pub async fn a_pass_that_nobody_has_begun_serves_the_next_window_as_well(lab: Lab) {
    let scene = Scene::planned(lab, 0, 60, 10).await;
    scene.finish_all(at(0)).await;
    assert!(scene.listen("ear", at(0)).await);
    let blind = async |second, start, head| {
        let window = opened(&scene, at(second), at(second)).await;
        scene.store().end_window(&end_of(&scene, window, head, start, at(second))).await.unwrap();
        scene.store().names_done(window, at(second)).await.unwrap();
        state(&scene).await.windows.iter().find(|open| open.id == window).unwrap().rescan.unwrap()
    };
    let first = blind(1, 10, 40).await;
    assert_eq!((blind(2, 20, 40).await, blind(3, 15, 55).await), (first, first));
    let now = state(&scene).await;
    assert_eq!((now.windows.len(), now.rescans.len(), now.rescans[0].span), (3, 1, span(10, 55)));
    let laid = "SELECT count(*), min(start_pos), max(end_pos), sum(end_pos - start_pos) FROM ingest_segments
                WHERE rescan_id IS NOT NULL";
    assert_eq!(scene.query(laid).await, ["5|10|55|45"]);
    let wider = blind(4, 5, 55).await;
    assert_ne!(wider, first, "it would leave something out");

    let begun = scene.claim("worker", 99, at(5)).await;
    let last = blind(6, 10, 55).await;
    assert!(last != first && last != wider, "what has begun may have been asked for before the window ended");
    for segment in &begun {
        scene.finish(segment, at(7)).await;
    }
    assert_eq!(closed(&scene, at(8)).await.len(), 4);
    scene.finish_all(at(9)).await;
    assert_eq!(closed(&scene, at(10)).await.len(), 1);
}

pub async fn a_window_does_not_wait_for_a_catch_up_behind_its_pass(lab: Lab) {
    let scene = Scene::planned(lab, 0, 40, 10).await;
    assert!(scene.listen("ear", at(0)).await);
    let window = opened(&scene, at(1), at(1)).await;
    scene.store().end_window(&end_of(&scene, window, 40, 30, at(2))).await.unwrap();
    scene.store().names_done(window, at(2)).await.unwrap();
    let pass = scene.claim_one(at(3)).await;
    assert_eq!((pass.purpose, pass.span), (Purpose::Rescan, span(30, 40)));
    assert_eq!(closed(&scene, at(3)).await, []);
    scene.finish(&pass, at(3)).await;
    assert_eq!((closed(&scene, at(4)).await.len(), scene.frontier().await), (1, 0));
}

pub async fn a_window_over_nothing_needs_no_pass(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    scene.finish_all(at(0)).await;
    assert!(scene.listen("ear", at(0)).await);
    let window = opened(&scene, at(1), at(1)).await;
    scene.store().end_window(&end_of(&scene, window, 10, 10, at(2))).await.unwrap();
    scene.store().names_done(window, at(3)).await.unwrap();
    assert_eq!(closed(&scene, at(4)).await.len(), 1);
    assert_eq!(scene.query("SELECT count(*) FROM ingest_segments WHERE purpose = 'rescan'").await, ["0"]);
    let last = state(&scene).await.last_rescan.unwrap();
    assert_eq!((last.items, last.sealed_at), (0, Some(at(2))));
}
