//! Rows that come by themselves, and those that come late.

use std::{sync::Arc, time::Duration};

use highwater_core::{
    AgeCounts, Ages, DeadLetterPolicy, ExceptionState, Key, Position, Record, SegmentStatus, Value, Verdict,
};

use super::scene::{Lab, Scene, at, verdict};
use super::{ITEMS, item};
use crate::{Commit, LiveCommit};

const VERSIONS: &str = "SELECT id, body ->> 'text' FROM hn_item_versions ORDER BY version";

pub async fn an_answer_that_took_long_does_not_undo_what_the_feed_told(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    scene.tell(vec![item(1, "told", &[7])], at(5)).await;
    let records = vec![item(1, "old", &[8]), item(2, "old", &[])];
    let late = Commit { now: at(9), asked_at: at(4), ..scene.commit_of(&lease, records, vec![]) };
    let counts = scene.store().commit(Arc::new(late.clone())).await.unwrap();
    assert_eq!((counts.new, counts.changed, counts.unchanged, counts.behind), (1, 0, 0, 1));
    let row = scene.stored(1).await.unwrap();
    assert_eq!((row.body, row.last_fetched_at), (item(1, "told", &[7]).body, at(5)));
    assert_eq!(scene.stored(2).await.unwrap().body, item(2, "old", &[]).body);
    assert_eq!(scene.query(VERSIONS).await, [""; 0]);

    let asked_since = Commit { asked_at: at(5), records: vec![item(1, "newer", &[8])], ..late };
    assert_eq!(scene.store().commit(Arc::new(asked_since)).await.unwrap().changed, 1);
    assert_eq!(scene.stored(1).await.unwrap().body, item(1, "newer", &[8]).body);
    assert_eq!(scene.query(VERSIONS).await, ["1|told"]);
}

pub async fn an_answer_to_the_feed_that_took_long_does_not_undo_what_came_meanwhile(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    scene.commit(&lease, vec![item(1, "newer", &[7])], vec![], at(5)).await.unwrap();
    let records = vec![item(1, "old", &[8]), item(2, "old", &[])];
    let late = LiveCommit { stream: scene.stream.clone(), now: at(9), asked_at: at(4), records, unchanged: vec![] };
    let done = scene.store().commit_live(Arc::new(late.clone())).await.unwrap();
    assert_eq!((done.batch.new, done.batch.behind, done.behind), (1, 1, [Key::Number(1)].into()));
    assert_eq!(scene.stored(1).await.unwrap().body, item(1, "newer", &[7]).body);
    let asked_again = LiveCommit { asked_at: at(5), records: vec![item(1, "newest", &[])], ..late };
    assert_eq!(scene.store().commit_live(Arc::new(asked_again)).await.unwrap().batch.changed, 1);
    assert_eq!(scene.query(VERSIONS).await, ["1|newer"]);
}

/// Somebody's clock was an hour ahead when it was stored.
pub async fn a_row_from_the_future_outruns_nothing(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let both = |text| vec![item(1, text, &[]), item(2, text, &[])];
    scene.commit(&lease, both("ahead"), vec![], at(3_600)).await.unwrap();
    let told = scene.tell(vec![item(1, "told", &[])], at(5)).await;
    assert_eq!((told.batch.changed, told.behind), (1, [].into()));
    let fetched = scene.commit(&lease, vec![item(2, "fetched", &[])], vec![], at(6)).await.unwrap();
    assert_eq!((fetched.changed, fetched.behind), (1, 0));
    assert_eq!(scene.query(VERSIONS).await, ["1|ahead", "2|ahead"]);

    let late = Commit { now: at(9), asked_at: at(4), ..scene.commit_of(&lease, both("late"), vec![]) };
    assert_eq!(scene.store().commit(Arc::new(late)).await.unwrap().behind, 2, "rows are dated anew");
}

/// The remote says that a body is still the one whose mark it was shown; the row has another by now.
pub async fn a_body_that_is_no_longer_there_cannot_be_confirmed(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    scene.commit(&lease, vec![item(1, "a", &[]), item(2, "a", &[])], vec![], at(1)).await.unwrap();
    scene.tell(vec![item(1, "told", &[]), item(2, "a", &[])], at(5)).await;
    let unchanged = vec![(Key::Number(1), &ITEMS), (Key::Number(2), &ITEMS)];
    let look = Commit { now: at(9), asked_at: at(4), unchanged, ..scene.commit_of(&lease, vec![], vec![]) };
    let counts = scene.store().commit(Arc::new(look)).await.unwrap();
    assert_eq!((counts.unchanged, counts.behind), (1, 1));
    let fetched = async |id| scene.stored(id).await.unwrap().last_fetched_at;
    assert_eq!((fetched(1).await, fetched(2).await), (at(5), at(9)));
}

/// Who dies before it has asked again leaves everything to the next one.
pub async fn what_is_behind_stays_unsettled_and_holds_the_cursor(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    scene.tell(vec![item(1, "told", &[])], at(5)).await;
    scene.commit(&lease, vec![], vec![verdict(1, Verdict::Retry { at: at(6) })], at(6)).await.unwrap();
    let books = async || {
        let cursor = scene.query("SELECT COALESCE(scan_cursor, -1) FROM ingest_segments").await;
        (cursor.concat(), scene.exceptions().await.len())
    };
    let (records, settlements) = (vec![item(1, "old", &[])], vec![verdict(1, Verdict::Stored)]);
    let look = scene.commit_of(&lease, records, settlements);
    let late = Commit { now: at(9), asked_at: at(4), cursor: Some(Position(3)), ..look };
    assert_eq!(scene.store().commit(Arc::new(late.clone())).await.unwrap().behind, 1);
    assert_eq!(books().await, ("-1".into(), 1));
    let again = Commit { asked_at: at(9), records: vec![item(1, "newer", &[])], ..late };
    assert_eq!(scene.store().commit(Arc::new(again)).await.unwrap().changed, 1);
    assert_eq!(books().await, ("3".into(), 0));
}

pub async fn what_came_in_beside_something_behind_is_counted(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    scene.commit(&lease, vec![item(3, "first", &[])], vec![], at(1)).await.unwrap();
    scene.tell(vec![item(1, "told", &[])], at(5)).await;
    let records = vec![item(1, "old", &[]), item(2, "new", &[]), item(3, "second", &[])];
    let late = Commit { now: at(9), asked_at: at(4), ..scene.commit_of(&lease, records, vec![]) };
    let counts = scene.store().commit(Arc::new(late)).await.unwrap();
    assert_eq!((counts.new, counts.changed, counts.behind), (1, 1, 1));
    assert_eq!(scene.query("SELECT stored_count, seen_count, changed_count FROM ingest_segments").await, ["2|1|1"]);
    assert_eq!(scene.row().await.stored, 3);
}

pub async fn the_feed_stores_rows_outside_segments(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let first = scene.tell(vec![item(30, "a", &[1]), item(4, "b", &[])], at(1)).await.batch;
    assert_eq!((first.new, first.changed, first.unchanged), (2, 0, 0));
    for expected in [(0, 1, 1), (0, 0, 2)] {
        let again = scene.tell(vec![item(4, "c", &[]), item(30, "a", &[1])], at(2)).await.batch;
        assert_eq!((again.new, again.changed, again.unchanged), expected);
    }
    assert_eq!(scene.query(VERSIONS).await, ["4|b"]);
    assert_eq!((scene.row().await.stored, scene.frontier().await), (2, 0));
    assert_eq!(scene.query("SELECT stored_count, seen_count, changed_count FROM ingest_segments").await, ["0|0|0"]);
    // The catch-up finds them, and seals over them.
    let claimed = scene.claim_one(at(3)).await;
    assert_eq!(scene.finish(&claimed, at(3)).await.frontier, Position(10));
    assert_eq!(scene.query("SELECT stored_count, seen_count, changed_count FROM ingest_segments").await, ["9|10|1"]);
}

pub async fn a_row_of_the_feed_ends_the_exception_of_its_key(lab: Lab) {
    let scene = Scene::planned(lab, 0, 20, 10).await;
    let claimed = scene.claim("worker", 2, at(0)).await;
    scene.store_all_but(&claimed[0], &[3, 4], at(0)).await;
    let settlements = vec![verdict(3, Verdict::Dead), verdict(4, Verdict::Dead)];
    scene.commit(&claimed[0].lease, vec![], settlements, at(0)).await.unwrap();
    scene.store_all_but(&claimed[1], &[14], at(0)).await;
    scene.commit(&claimed[1].lease, vec![], vec![verdict(14, Verdict::Missing)], at(0)).await.unwrap();
    for segment in &claimed {
        scene.close(&segment.lease, DeadLetterPolicy::Hold, at(0)).await.unwrap();
    }
    let segments = "SELECT status, unresolved_count FROM ingest_segments ORDER BY start_pos";
    assert_eq!(scene.query(segments).await, ["dead_letter|2", "sealed|0"]);

    scene.tell(vec![item(3, "late", &[]), item(14, "found", &[])], at(1)).await;
    assert_eq!(scene.exceptions().await.iter().map(|left| left.key.number()).collect::<Vec<_>>(), [Some(4)]);
    assert_eq!(scene.query(segments).await, ["pending|1", "sealed|0"], "somebody has to close it again");
    let again = scene.claim_one(at(2)).await;
    let closed = scene.close(&again.lease, DeadLetterPolicy::Hold, at(2)).await.unwrap();
    assert_eq!((closed.status, closed.frontier), (SegmentStatus::DeadLetter, Position(0)));
    scene.tell(vec![item(4, "late", &[])], at(3)).await;
    let again = scene.claim_one(at(4)).await;
    assert_eq!(scene.close(&again.lease, DeadLetterPolicy::Hold, at(4)).await.unwrap().frontier, Position(20));
}

pub async fn what_policy_keeps_out_stays_out(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    scene.commit(&lease, vec![], vec![verdict(3, Verdict::Excluded)], at(0)).await.unwrap();
    scene.tell(vec![item(3, "told", &[])], at(1)).await;
    assert_eq!(scene.exceptions().await[0].state, ExceptionState::Excluded);
}

pub async fn a_confirmed_body_moves_only_its_time(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    scene.commit(&lease, vec![item(1, "a", &[2]), item(2, "b", &[])], vec![], at(1)).await.unwrap();
    let unchanged = vec![(Key::Number(1), &ITEMS)];
    let commit = Commit { now: at(5), asked_at: at(5), unchanged, ..scene.commit_of(&lease, vec![], vec![]) };
    assert_eq!(scene.store().commit(Arc::new(commit)).await.unwrap().unchanged, 1);
    let times =
        async || (scene.stored(1).await.unwrap().last_fetched_at, scene.stored(2).await.unwrap().last_fetched_at);
    assert_eq!(times().await, (at(5), at(1)));
    for (now, expected) in [(at(7), at(7)), (at(6), at(7))] {
        let unchanged = vec![(Key::Number(2), &ITEMS), (Key::Number(9), &ITEMS)];
        let live = LiveCommit { stream: scene.stream.clone(), now, asked_at: now, records: vec![], unchanged };
        assert_eq!(scene.store().commit_live(Arc::new(live)).await.unwrap().batch.unchanged, 2);
        assert_eq!(times().await, (at(5), expected), "never back");
    }
    let row = scene.stored(1).await.unwrap();
    assert_eq!((row.row_check, row.body), (item(1, "a", &[2]).body.checksum(), item(1, "a", &[2]).body));
    assert_eq!(scene.query("SELECT count(*) FROM hn_items WHERE last_changed_at = first_seen_at").await, ["2"]);
    assert_eq!(scene.query(VERSIONS).await, [""; 0]);
}

/// An item made so many seconds after the beginning of the scene, or nobody knows when.
fn made(id: i64, text: &str, seconds: Option<i64>) -> Record {
    let mut record = item(id, text, &[]);
    record.body.values[3] = seconds.map_or(Value::Null, |seconds| Value::Int(at(seconds).as_millis() / 1000));
    record
}

pub async fn the_ages_of_changes_are_counted_once(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let told = |text: &str| -> Vec<Record> {
        let times = [Some(0), Some(-3_600), Some(500), None];
        (0..).zip(times).map(|(id, seconds)| made(id, text, seconds)).collect()
    };
    scene.commit(&lease, told("first"), vec![], at(1)).await.unwrap();
    let mut expected = AgeCounts::default();
    assert_eq!(scene.store().ages(&scene.stream).await.unwrap(), expected, "what is new has not changed");
    for _ in 0..2 {
        scene.commit(&lease, told("second"), vec![], at(100)).await.unwrap();
    }
    expected.add(Duration::from_secs(100));
    expected.add(Duration::from_secs(3_700));
    assert_eq!(scene.store().ages(&scene.stream).await.unwrap(), expected);
    let live = scene.tell(told("third"), at(200)).await;
    let mut more = Ages::default();
    more.add(Duration::from_secs(200));
    more.add(Duration::from_secs(3_800));
    assert_eq!((live.batch.changed, live.ages), (4, more));
    assert_eq!(more.sum, Duration::from_secs(4_000));
    expected.merge(&more.counts);
    assert_eq!(scene.store().ages(&scene.stream).await.unwrap(), expected);
    assert_eq!(scene.query("SELECT sum(changed) FROM ingest_ages WHERE stream = 'items'").await, ["4"]);
}

pub async fn a_story_is_told_from_its_first_score_to_its_last(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    for (second, score) in [(1, 1), (2, 7), (3, 7), (4, 90)] {
        let mut story = item(1, "", &[]);
        story.body.values[4] = Value::text(format!("story {score}"));
        story.body.values[6] = Value::Int(score);
        scene.tell(vec![story], at(second)).await;
    }
    let risen = "SELECT id, score, descendants IS NULL, title FROM hn_story_history ORDER BY seen_at";
    assert_eq!(scene.query(risen).await, ["1|1|1|story 1", "1|7|1|story 7", "1|90|1|story 90"]);
    let since = "SELECT count(*) FROM hn_story_history AS h JOIN hn_items AS i ON h.seen_at = i.last_changed_at
                 WHERE h.score = 90 AND h.score > 50";
    assert_eq!(scene.query(since).await, ["1"]);
    let first = "SELECT score FROM hn_story_history AS h WHERE h.seen_at = (SELECT first_seen_at FROM hn_items)";
    assert_eq!(scene.query(first).await, ["1"]);
}
