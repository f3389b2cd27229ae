//! What processes of one account know of each other, and what outlives them.

use std::time::Duration;

use highwater_core::{
    AccountReport, AccountView, Pause, Timestamp, WorkerId,
    throttle::{Learned, PauseReason},
};

use super::{Lab, Scene, scene::at};
use crate::{RunEnd, RunOutcome, RunStart, RunTallies, SHARE_LASTS, ShareAsk};

const BUSY: AccountReport = AccountReport { demand: 1.0, rate: Some(40.0), cuts: 0, pause: None, learned: None };

async fn share(scene: &Scene, worker: &str, report: AccountReport, now: Timestamp) -> AccountView {
    let ask = ShareAsk {
        source: scene.stream.source.clone(),
        worker: WorkerId::new(worker),
        host: "here".into(),
        pid: 7,
        started_at: at(0),
        report,
        now,
    };
    scene.store().share(&ask).await.unwrap()
}

pub async fn a_closed_gate_outlives_the_process(lab: Lab) {
    let scene = Scene::new(lab).await;
    let pause = Pause { left: Duration::from_secs(60), reason: PauseReason::RetryAfter };
    let learned = Learned { rate: 40.0, ceiling: Some(50.0) };
    let closed = AccountReport { pause: Some(pause), cuts: 1, learned: Some(learned), ..BUSY };
    share(&scene, "first", closed, at(0)).await;
    let view = share(&scene, "second", BUSY, at(20)).await;
    assert_eq!(view.pause, Some(Pause { left: Duration::from_secs(40), ..pause }));
    let told = async |now| scene.store().pause(&scene.stream.source, now).await.unwrap();
    assert_eq!(told(at(20)).await, view.pause, "also to who only reads");
    assert_eq!(told(at(60)).await, None);
    assert_eq!(told(at(-1_000_000)).await, None, "no source is left alone for so long");
    assert_eq!((view.cuts, view.learned), (1, Some(learned)));
    assert_eq!(share(&scene, "second", BUSY, at(60)).await.pause, None);
}

pub async fn shares_are_given_back_by_leaving_or_dying(lab: Lab) {
    let scene = Scene::new(lab).await;
    assert_eq!(share(&scene, "first", BUSY, at(0)).await.share, 1.0);
    if !scene.store().is_shared() {
        assert_eq!(share(&scene, "second", BUSY, at(1)).await.share, 1.0, "the first one must be dead");
        return;
    }
    assert!(share(&scene, "second", BUSY, at(1)).await.share < 0.1, "the first one holds all of it");
    assert_eq!(share(&scene, "first", BUSY, at(2)).await.share, 0.5);
    assert!(share(&scene, "second", BUSY, at(2)).await.share > 0.49);
    scene.store().leave(&WorkerId::new("second")).await.unwrap();
    assert_eq!(share(&scene, "first", BUSY, at(3)).await.share, 1.0);
    let later = at(3) + SHARE_LASTS;
    assert_eq!(share(&scene, "third", BUSY, later).await.share, 1.0, "the first one is dead by now");
}

pub async fn who_is_at_work_is_listed_with_what_it_holds(lab: Lab) {
    let scene = Scene::planned(lab, 0, 40, 10).await;
    scene.claim("worker", 3, at(0)).await;
    share(&scene, "worker", BUSY, at(0)).await;
    let workers = scene.store().workers(&scene.stream.source, at(1)).await.unwrap();
    let [worker] = &workers[..] else { panic!("{workers:?}") };
    assert_eq!((worker.worker.as_str(), worker.host.as_str(), worker.pid), ("worker", "here", 7));
    assert_eq!((worker.started_at, worker.share, worker.rate, worker.segments), (at(0), 1.0, Some(40.0), 3));
    let dead = scene.store().workers(&scene.stream.source, at(0) + SHARE_LASTS).await.unwrap();
    assert_eq!(dead, []);
}

pub async fn a_run_ends_once(lab: Lab) {
    let scene = Scene::new(lab).await;
    let source = scene.stream.source.clone();
    let start = RunStart { id: "r".into(), source: source.clone(), command: "sync", workers: 1, at: at(0) };
    scene.store().begin_run(&start).await.unwrap();
    let end = RunEnd {
        id: "r".into(),
        source,
        command: "sync",
        outcome: RunOutcome::Complete,
        items: 5,
        requests: 6,
        tallies: RunTallies::default(),
        at: at(1),
    };
    scene.store().end_run(&end).await.unwrap();
    scene.store().end_run(&end).await.unwrap();
    let events = scene.ledger_events().await;
    assert_eq!(events.iter().filter(|event| event.starts_with("RUN_ENDED")).count(), 1, "{events:?}");
}
