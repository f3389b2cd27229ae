//! Who listens, and what nobody else may write.

use highwater_core::{Key, RescanReason, StreamId, Timestamp};

use super::scene::{Lab, Scene, TTL, at, worker};
use crate::{EndWindow, ErrorKind, Heard, NewWindow};

pub async fn a_role_is_one_process_s_until_it_falls_silent(lab: Lab) {
    let scene = Scene::new(lab).await;
    assert!(scene.listen("first", at(0)).await);
    assert!(!scene.listen("second", at(1)).await);
    assert!(scene.listen("first", at(30)).await, "renewed");
    assert!(!scene.listen("second", at(59) + TTL / 2).await);
    assert!(scene.listen("second", at(30) + TTL).await, "the first one is dead by now");
    assert!(!scene.listen("first", at(31) + TTL).await);
    scene.store().drop_role(&scene.role_of("first", at(32))).await.unwrap();
    assert!(!scene.listen("first", at(32) + TTL).await, "nobody gives up what is another's");
    scene.store().drop_role(&scene.role_of("second", at(33))).await.unwrap();
    assert!(scene.listen("first", at(33)).await);
    let other = crate::RoleAsk { role: "planner", ..scene.role_of("second", at(33)) };
    assert!(scene.store().take_role(&other).await.unwrap(), "another role is another's to take");
    assert_eq!(
        scene.query("SELECT role, owner FROM ingest_roles ORDER BY role").await,
        ["listener|first", "planner|second"]
    );
}

pub fn heard(scene: &Scene, name: &str, until: Timestamp) -> Heard {
    Heard { stream: scene.stream.clone(), until, told: Vec::new(), worker: worker(name), now: until }
}

pub async fn who_does_not_listen_writes_nothing_about_the_feed(lab: Lab) {
    let scene = Scene::planned(lab, 0, 20, 10).await;
    assert!(scene.listen("first", at(0)).await);
    let new = |name: &str| NewWindow {
        stream: scene.stream.clone(),
        opened_at: at(1),
        reason: "stopped".into(),
        worker: worker(name),
        now: at(2),
    };
    let window = scene.store().open_window(&new("first")).await.unwrap();
    let end = |name: &str| EndWindow {
        window,
        ended_at: at(3),
        head: highwater_core::Position(20),
        rescan: scene.rescan_of(RescanReason::Blind, 0, 20, at(3)),
        worker: worker(name),
    };
    assert!(scene.listen("second", at(0) + TTL).await);
    let refused = [
        scene.store().heard(&heard(&scene, "first", at(5))).await.unwrap_err(),
        scene.store().open_window(&new("first")).await.unwrap_err(),
        scene.store().end_window(&end("first")).await.unwrap_err(),
        scene.store().heard(&heard(&scene, "nobody", at(5))).await.unwrap_err(),
    ];
    assert!(refused.iter().all(|error| error.kind == ErrorKind::Fenced), "{refused:?}");
    let state = scene.store().live_state(&scene.stream).await.unwrap();
    assert_eq!((state.heard_until, state.windows.len(), state.windows[0].ended_at), (None, 1, None));
    assert_eq!(scene.query("SELECT count(*) FROM ingest_rescans").await, ["0"]);
    assert_eq!(scene.store().open_window(&new("second")).await.unwrap(), window, "the window is the stream's");
    scene.store().end_window(&end("second")).await.unwrap();
    scene.store().drop_role(&scene.role_of("second", at(4))).await.unwrap();
    let nobody = scene.store().heard(&heard(&scene, "second", at(5))).await.unwrap_err();
    assert_eq!(nobody.kind, ErrorKind::Fenced);
}

pub async fn what_was_heard_is_never_unheard(lab: Lab) {
    let scene = Scene::new(lab).await;
    assert!(scene.listen("first", at(0)).await);
    for (until, expected) in [(at(5), at(5)), (at(9), at(9)), (at(7), at(9))] {
        scene.store().heard(&heard(&scene, "first", until)).await.unwrap();
        assert_eq!(scene.store().live_state(&scene.stream).await.unwrap().heard_until, Some(expected));
    }
    let cursor = "SELECT live_cursor FROM ingest_streams";
    assert_eq!(scene.query(cursor).await, [at(9).as_millis().to_string()]);
}

pub async fn what_was_told_is_kept_for_whoever_listens_next(lab: Lab) {
    let scene = Scene::new(lab).await;
    assert!(scene.listen("first", at(0)).await);
    let users = StreamId { stream: "users".parse().unwrap(), ..scene.stream.clone() };
    let odd = Key::Text("a\"b\u{0}\n".into());
    let (ids, names) = (vec![Key::Number(7), Key::Number(5)], vec![odd]);
    let told = vec![(scene.stream.stream.clone(), ids.clone()), (users.stream.clone(), names.clone())];
    let heard = |until, told| Heard { told, ..heard(&scene, "first", until) };
    scene.store().heard(&heard(at(5), told)).await.unwrap();
    assert_eq!(scene.store().told(&scene.stream).await.unwrap(), ids);
    assert_eq!(scene.store().told(&users).await.unwrap(), names);
    scene.store().heard(&heard(at(5), vec![(users.stream.clone(), Vec::new())])).await.unwrap();
    assert_eq!(scene.store().told(&users).await.unwrap(), []);
    assert_eq!(scene.store().told(&scene.stream).await.unwrap(), ids, "nothing was said of it");
    let other = StreamId { source: "other".parse().unwrap(), ..scene.stream.clone() };
    assert_eq!(scene.store().told(&other).await.unwrap(), []);
}
