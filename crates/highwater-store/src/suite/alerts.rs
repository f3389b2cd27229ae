//! Alerts, and what a store knows of itself.

use super::scene::{Lab, Scene, at};
use crate::{AlertNote, RunStart};
use highwater_core::AlertState::{self, Lasting, Raised, Resolved};

pub async fn an_alert_is_told_once_until_it_is_resolved(lab: Lab) {
    let scene = Scene::new(lab).await;
    let note = |condition: &str, seconds, state| AlertNote {
        source: scene.stream.source.clone(),
        condition: condition.into(),
        severity: "warning".into(),
        message: format!("{condition} since {seconds}"),
        at: at(seconds),
        state,
        told_at: None,
    };
    let notes = [
        note("quiet", 1, Resolved),
        note("quiet", 2, Raised),
        note("full", 1, Raised),
        note("quiet", 3, Raised),
        note("full", 4, Resolved),
        note("full", 5, Resolved),
        note("full", 6, Raised),
    ];
    for note in &notes {
        scene.store().note_alert(note).await.unwrap();
    }
    let open = scene.store().open_alerts(&scene.stream.source).await.unwrap();
    let shown: Vec<_> = open.iter().map(|alert| (alert.message.as_str(), alert.raised_at)).collect();
    assert_eq!(shown, [("quiet since 2", at(2)), ("full since 6", at(6))]);
    assert_eq!((open[0].condition.as_str(), open[0].severity.as_str()), ("quiet", "warning"));
    assert_eq!(scene.store().open_alerts(&"other".parse().unwrap()).await.unwrap(), []);
    let events = scene.ledger_events().await;
    let kinds: Vec<_> = events.iter().map(|event| event.split(' ').next().unwrap()).collect();
    assert_eq!(kinds, ["ALERT_RAISED", "ALERT_RAISED", "ALERT_RESOLVED", "ALERT_RAISED"]);
    assert_eq!(scene.query("SELECT count(*) FROM ingest_alerts WHERE resolved_at IS NOT NULL").await, ["1"]);
}

pub async fn an_alert_that_goes_on_says_what_holds_now_and_when_it_was_told(lab: Lab) {
    let scene = Scene::new(lab).await;
    let note = |condition: &str, state: AlertState, seconds, told_at| AlertNote {
        source: scene.stream.source.clone(),
        condition: condition.into(),
        severity: "warning".into(),
        message: format!("{condition} at {seconds}"),
        at: at(seconds),
        state,
        told_at,
    };
    let notes = [
        note("letters", Raised, 1, Some(at(1))),
        note("letters", Lasting, 2, None),
        note("lag", Raised, 3, None),
        note("full", Raised, 4, Some(at(4))),
        note("full", Lasting, 5, Some(at(5))),
        note("full", Resolved, 6, None),
        note("full", Lasting, 7, Some(at(7))),
    ];
    for note in &notes {
        scene.store().note_alert(note).await.unwrap();
    }
    let source = &scene.stream.source;
    let open = scene.store().open_alerts(source).await.unwrap();
    let shown: Vec<_> = open.iter().map(|alert| (alert.message.as_str(), alert.raised_at)).collect();
    assert_eq!(shown, [("letters at 2", at(1)), ("lag at 3", at(3))]);
    let told = scene.store().told_alerts(source).await.unwrap();
    assert_eq!(told, [("full".to_owned(), at(5)), ("letters".to_owned(), at(1))]);
    let events = scene.ledger_events().await;
    let kinds: Vec<_> = events.iter().map(|event| event.split(' ').next().unwrap()).collect();
    assert_eq!(kinds, ["ALERT_RAISED", "ALERT_RAISED", "ALERT_RAISED", "ALERT_RESOLVED"]);
}

pub async fn a_store_knows_its_size_and_its_age(lab: Lab) {
    let scene = Scene::planned(lab, 0, 5_000, 1).await;
    let sizes = scene.store().sizes().await.unwrap();
    assert!(sizes.control_bytes > 500_000 && sizes.control_bytes <= sizes.database_bytes, "{sizes:?}");
    let source = scene.stream.source.clone();
    assert_eq!(scene.store().first_run_at(&source, None).await.unwrap(), None);
    for (id, command, seconds) in [("b", "serve", 7), ("a", "sync", 3), ("c", "serve", 5)] {
        let (id, source) = (id.into(), source.clone());
        let run = RunStart { id, source, command, workers: 1, at: at(seconds) };
        scene.store().begin_run(&run).await.unwrap();
    }
    assert_eq!(scene.store().first_run_at(&source, None).await.unwrap(), Some(at(3)));
    assert_eq!(scene.store().first_run_at(&source, Some("serve")).await.unwrap(), Some(at(5)));
    assert_eq!(scene.store().first_run_at(&source, Some("other")).await.unwrap(), None);
}
