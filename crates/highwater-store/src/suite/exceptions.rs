//! The life of keys that are not plainly stored.

use highwater_core::{DeadLetterPolicy, ExceptionState, History, Key, Position, SegmentStatus, Settlement, Verdict};

use super::item;
use super::scene::{Lab, Scene, at, verdict};
use crate::RunStart;

pub async fn an_exception_lives_from_the_first_try_to_the_last(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let history = History { attempts: 2, absences: 3, first_absent_at: Some(at(1)) };
    let looked = |verdict| Settlement {
        key: Key::Number(4),
        verdict,
        history: history.clone(),
        reason: "null",
        last_error: None,
    };
    scene.commit(&lease, vec![], vec![looked(Verdict::Retry { at: at(9) })], at(1)).await.unwrap();
    let first = scene.exceptions().await.remove(0);
    assert_eq!((first.key, first.segment, first.state), (Key::Number(4), lease.segment, ExceptionState::RetryWait));
    assert_eq!((first.history, first.reason.as_str(), first.last_error), (history.clone(), "null", None));
    assert_eq!((first.first_seen_at, first.last_tried_at, first.next_retry_at), (at(1), at(1), Some(at(9))));

    scene.commit(&lease, vec![], vec![looked(Verdict::Missing)], at(9)).await.unwrap();
    let later = scene.exceptions().await.remove(0);
    assert_eq!((later.state, later.next_retry_at), (ExceptionState::Missing, None));
    assert_eq!((later.first_seen_at, later.last_tried_at), (at(1), at(9)));

    scene.commit(&lease, vec![item(4, "late", &[])], vec![looked(Verdict::Stored)], at(10)).await.unwrap();
    assert_eq!(scene.exceptions().await, []);
    let missing = r#"KEY_MISSING {"absences":3,"attempts":2,"key":"4","reason":"null","stream":"items"}"#;
    assert_eq!(scene.ledger_events().await, [missing]);
}

pub async fn a_time_that_a_wrong_clock_set_is_not_waited_for(lab: Lab) {
    let scene = Scene::planned(lab, 0, 20, 10).await;
    let years = 60_000_000;
    // The first under a clock that is years ahead, the second to wait for as long.
    for (claimed, now) in scene.claim("worker", 2, at(0)).await.into_iter().zip([years, 0]) {
        let key = claimed.span.start().0 + 3;
        scene.store_all_but(&claimed, &[key], at(now)).await;
        let waits = verdict(key, Verdict::Retry { at: at(years + 9) });
        scene.commit(&claimed.lease, vec![], vec![waits], at(now)).await.unwrap();
        scene.close(&claimed.lease, DeadLetterPolicy::Hold, at(now)).await.unwrap();
    }
    let source = scene.stream.source.clone();
    let run = RunStart { id: "run".into(), source, command: "sync", workers: 1, at: at(5) };
    scene.store().begin_run(&run).await.unwrap();
    let mut waiting = scene.exceptions().await;
    waiting.sort_by_key(|one| one.key.number());
    let due: Vec<_> = waiting.into_iter().map(|one| one.next_retry_at.unwrap()).collect();
    assert_eq!(due, [at(5), at(years + 9)]);
    let again = scene.claim("worker", 9, at(5)).await;
    assert_eq!(again.iter().map(|one| (one.span.start().0, one.due.len())).collect::<Vec<_>>(), [(0, 1)]);
}

pub async fn dead_letters_come_back_to_life(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let claimed = scene.claim_one(at(0)).await;
    scene.store_all_but(&claimed, &[3, 4], at(0)).await;
    let dead = vec![verdict(3, Verdict::Dead), verdict(4, Verdict::Dead)];
    scene.commit(&claimed.lease, vec![], dead, at(0)).await.unwrap();
    scene.close(&claimed.lease, DeadLetterPolicy::Hold, at(0)).await.unwrap();
    let only = [Key::Number(4), Key::Number(99)];
    assert_eq!(scene.store().replay(&scene.stream, Some(&only), at(5)).await.unwrap(), 1);
    let replayed = scene.exceptions().await.remove(1);
    assert_eq!((replayed.state, replayed.next_retry_at), (ExceptionState::RetryWait, Some(at(5))));
    assert_eq!((replayed.history.attempts, replayed.reason.as_str()), (0, "replayed"));
    assert_eq!(scene.store().replay(&scene.stream, None, at(6)).await.unwrap(), 1);
    assert_eq!(scene.store().replay(&scene.stream, None, at(6)).await.unwrap(), 0);
    let again = scene.claim_one(at(6)).await;
    assert_eq!(again.due.iter().map(|due| due.key.number()).collect::<Vec<_>>(), [Some(4), Some(3)]);
    let both = (3..5).map(|key| (item(key, "", &[]), verdict(key, Verdict::Stored))).unzip();
    scene.commit(&again.lease, both.0, both.1, at(7)).await.unwrap();
    let closed = scene.close(&again.lease, DeadLetterPolicy::Hold, at(7)).await.unwrap();
    assert_eq!((closed.status, closed.frontier), (SegmentStatus::Sealed, Position(10)));
}

pub async fn a_passed_dead_letter_is_replayed_behind_the_frontier(lab: Lab) {
    let scene = Scene::planned(lab, 0, 20, 10).await;
    let claimed = scene.claim("worker", 2, at(0)).await;
    scene.store_all_but(&claimed[0], &[4], at(0)).await;
    scene.commit(&claimed[0].lease, vec![], vec![verdict(4, Verdict::Dead)], at(0)).await.unwrap();
    scene.close(&claimed[0].lease, DeadLetterPolicy::Pass, at(0)).await.unwrap();
    assert_eq!(scene.store().replay(&scene.stream, None, at(1)).await.unwrap(), 1);
    assert_eq!(scene.frontier().await, 10);
    assert_eq!(scene.finish(&claimed[1], at(2)).await.frontier, Position(10), "what is at work again holds it");
    let again = scene.claim_one(at(3)).await;
    scene.commit(&again.lease, vec![], vec![verdict(4, Verdict::Dead)], at(3)).await.unwrap();
    let closed = scene.close(&again.lease, DeadLetterPolicy::Pass, at(3)).await.unwrap();
    assert_eq!((closed.status, closed.frontier), (SegmentStatus::Sealed, Position(20)));
}

pub async fn the_outlook_tells_retries_from_the_unpublished(lab: Lab) {
    let scene = Scene::planned(lab, 0, 20, 10).await;
    let outlook = || async { scene.store().outlook(&scene.stream).await.unwrap() };
    assert_eq!((outlook().await.open, outlook().await.next_retry_at), (2, None));
    let claimed = scene.claim_one(at(0)).await;
    scene.store_all_but(&claimed, &[7, 8, 9], at(0)).await;
    let unpublished = Settlement { reason: "unpublished", ..verdict(9, Verdict::Retry { at: at(3) }) };
    let retries = vec![verdict(7, Verdict::Retry { at: at(8) }), verdict(8, Verdict::Retry { at: at(6) }), unpublished];
    scene.commit(&claimed.lease, vec![], retries, at(0)).await.unwrap();
    scene.close(&claimed.lease, DeadLetterPolicy::Hold, at(0)).await.unwrap();
    let seen = outlook().await;
    assert_eq!((seen.open, seen.next_retry_at, seen.next_unpublished_at), (1, Some(at(6)), Some(at(3))));
}
