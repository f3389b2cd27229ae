//! Who may write for a segment, and what is handed out when.

use highwater_core::{DeadLetterPolicy, Position, Purpose, SegmentStatus, Verdict};

use super::scene::{Lab, Scene, TTL, at, span, verdict, worker};
use super::{ITEMS, item};
use crate::{Claimed, Commit, ErrorKind, Wanted};

pub async fn a_late_commit_is_fenced_off(lab: Lab) {
    let scene = Scene::planned(lab, 1, 11, 10).await;
    let old = scene.claim_one(at(0)).await;
    let new = scene.claim("other", 1, at(60)).await.remove(0);
    let late = scene.commit(&old.lease, vec![item(1, "late", &[])], vec![verdict(2, Verdict::Dead)], at(61)).await;
    assert_eq!(late.unwrap_err().kind, ErrorKind::Fenced);
    assert_eq!(scene.close(&old.lease, DeadLetterPolicy::Pass, at(61)).await.unwrap_err().kind, ErrorKind::Fenced);
    assert_eq!((scene.stored(1).await, scene.exceptions().await, scene.row().await.stored), (None, vec![], 0));
    assert_eq!(scene.ledger_events().await, [""; 0]);
    scene.finish(&new, at(62)).await;
    let again = scene.commit(&new.lease, vec![item(1, "later", &[])], vec![], at(63)).await;
    assert_eq!(again.unwrap_err().kind, ErrorKind::Fenced, "a closed segment takes nothing");
}

pub async fn a_silent_segment_is_taken_over_after_its_ttl(lab: Lab) {
    let scene = Scene::planned(lab, 1, 11, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    assert_eq!(scene.store().heartbeat(std::slice::from_ref(&lease), at(30)).await.unwrap(), []);
    assert_eq!(scene.claim("other", 1, at(89)).await, []);
    let taken = scene.claim("other", 1, at(30) + TTL).await.remove(0);
    assert_eq!((taken.lease.owner, taken.lease.epoch.0, taken.attempts), (worker("other"), 2, 1));
    assert_eq!(scene.store().heartbeat(&[lease], at(91)).await.unwrap(), [taken.lease.segment]);
}

pub async fn a_released_segment_keeps_what_is_committed(lab: Lab) {
    let scene = Scene::planned(lab, 1, 11, 10).await;
    let claimed = scene.claim_one(at(0)).await;
    let half = |cursor| Commit {
        cursor: Some(Position(cursor)),
        ..scene.commit_of(&claimed.lease, vec![item(1, "a", &[]), item(2, "b", &[])], vec![])
    };
    scene.store().commit(half(6).into()).await.unwrap();
    scene.store().commit(half(3).into()).await.unwrap();
    scene.store().release(std::slice::from_ref(&claimed.lease)).await.unwrap();
    let late = scene.commit(&claimed.lease, vec![item(3, "c", &[])], vec![], at(1)).await;
    assert_eq!(late.unwrap_err().kind, ErrorKind::Fenced);
    let again = scene.claim_one(at(2)).await;
    assert_eq!((again.cursor, again.attempts, again.lease.epoch.0), (Some(Position(6)), 1, 2));
    scene.store().release(&[claimed.lease]).await.unwrap();
    assert_eq!(scene.claim("other", 1, at(3)).await, [], "an old lease releases nothing");
}

pub async fn rows_are_counted_once_whether_their_segment_is_at_work_or_not(lab: Lab) {
    let scene = Scene::planned(lab, 0, 20, 10).await;
    let claimed = scene.claim("worker", 2, at(0)).await;
    for one in &claimed {
        scene.store_all_but(one, &[3], at(1)).await;
    }
    scene.tell(vec![item(3, "told", &[])], at(1)).await;
    let counts = "SELECT stored, (SELECT sum(uncounted) FROM ingest_segments) FROM ingest_streams";
    assert_eq!((scene.row().await.stored, scene.query(counts).await), (20, vec!["1|19".into()]));
    scene.query("DELETE FROM hn_items WHERE id = 15").await;
    scene.store().recount(&scene.stream, &ITEMS).await.unwrap();
    assert_eq!(scene.row().await.stored, 19);
    scene.close(&claimed[0].lease, DeadLetterPolicy::Hold, at(2)).await.unwrap();
    assert_eq!(scene.row().await.stored, 19);
    scene.store().release(&[claimed[1].lease.clone()]).await.unwrap();
    assert_eq!((scene.row().await.stored, scene.query(counts).await), (19, vec!["19|0".into()]));
    let again = scene.claim_one(at(3)).await;
    scene.finish(&again, at(4)).await;
    assert_eq!((scene.row().await.stored, scene.query(counts).await), (20, vec!["20|0".into()]));
}

pub async fn due_retries_go_first_then_the_abandoned_then_the_lowest(lab: Lab) {
    let scene = Scene::planned(lab, 0, 40, 10).await;
    let claimed = scene.claim("dead", 4, at(0)).await;
    let waiting = &claimed[3];
    scene.store_all_but(waiting, &[35], at(0)).await;
    scene.commit(&waiting.lease, vec![], vec![verdict(35, Verdict::Retry { at: at(70) })], at(0)).await.unwrap();
    let closed = scene.close(&waiting.lease, DeadLetterPolicy::Hold, at(0)).await.unwrap();
    assert_eq!(closed.status, SegmentStatus::RetryWait);
    scene.store().release(&[claimed[0].lease.clone(), claimed[1].lease.clone()]).await.unwrap();
    let starts = |claimed: &[Claimed]| claimed.iter().map(|c| c.span.start().0).collect::<Vec<_>>();
    assert_eq!(scene.claim_of("new", 9, Wanted::Due, at(69)).await, []);
    let due = scene.claim_of("new", 9, Wanted::Due, at(70)).await;
    assert_eq!(starts(&due), [30], "neither what was abandoned nor what nobody has begun");
    scene.store().release(&[due[0].lease.clone()]).await.unwrap();
    assert_eq!(starts(&scene.claim("new", 3, at(70)).await), [30, 20, 0]);
    assert_eq!(starts(&scene.claim("new", 9, at(70)).await), [10]);
}

pub async fn neither_what_is_new_nor_what_is_looked_at_again_waits_for_the_other(lab: Lab) {
    let scene = Scene::planned(lab, 0, 60, 10).await;
    scene.plan(Purpose::Rescan, 20, 60, 10).await.unwrap();
    let claimed = async |limit| {
        let claimed = scene.claim("worker", limit, at(0)).await;
        claimed.iter().map(|one| (one.purpose, one.span.start().0)).collect::<Vec<_>>()
    };
    use Purpose::{Catchup, Rescan};
    assert_eq!(claimed(1).await, [(Rescan, 20)]);
    assert_eq!(claimed(1).await, [(Catchup, 0)]);
    assert_eq!(claimed(3).await, [(Catchup, 10), (Rescan, 30), (Rescan, 40)]);
    assert_eq!(claimed(2).await, [(Catchup, 20), (Rescan, 50)]);
    assert_eq!(claimed(9).await, [(Catchup, 30), (Catchup, 40), (Catchup, 50)]);
    scene.plan(Rescan, 0, 20, 10).await.unwrap();
    assert_eq!(claimed(9).await, [(Rescan, 0), (Rescan, 10)], "nothing is kept free for what is not there");
}

pub async fn only_what_is_due_is_handed_out(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let first = scene.claim_one(at(0)).await;
    assert_eq!(first.due, []);
    scene.store_all_but(&first, &[3, 4, 5], at(0)).await;
    let settlements = vec![
        verdict(3, Verdict::Retry { at: at(5) }),
        verdict(4, Verdict::Retry { at: at(9) }),
        verdict(5, Verdict::Missing),
    ];
    scene.commit(&first.lease, vec![], settlements, at(0)).await.unwrap();
    scene.close(&first.lease, DeadLetterPolicy::Hold, at(0)).await.unwrap();
    assert_eq!(scene.claim("worker", 1, at(4)).await, []);
    let again = scene.claim_one(at(5)).await;
    assert_eq!((again.due.len(), again.due[0].key.number(), again.cursor), (1, Some(3), Some(Position(10))));
    assert_eq!(again.span, span(0, 10));
    scene.store().release(&[again.lease]).await.unwrap();
    assert_eq!(scene.claim_one(at(9)).await.due.len(), 2, "given back, it waits for its retries as before");
}
