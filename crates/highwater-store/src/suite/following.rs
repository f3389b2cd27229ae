//! Following a remote's record of changes: what it tells changes rows, or is fetched.

use std::sync::Arc;

use highwater_core::{ExceptionState, Otherwise, Purpose, SegmentStatus, Verdict};
use serde_json::json;

use super::{
    post::{MARK, judged, told, wanted},
    scene::{Lab, Scene, at},
    tables::mail::{ANN, label, message},
};
use crate::{Applied, Commit, Followed, LedgerEntry, MailboxId, Tidings};

const SPAM: Otherwise = Otherwise::Exclude { reason: "spam" };

pub async fn a_record_is_followed_from_the_first_mark(lab: Lab) {
    let scene = Scene::new(lab).await;
    let store = scene.store();
    let ann = MailboxId::new("default", "ann@example.com");
    store.open_mailbox(&ann, &scene.stream.source, at(0)).await.unwrap();
    assert_eq!(store.followed(&scene.stream).await.unwrap(), Followed::default());
    store.follow_from(&scene.stream, "7", Some(3)).await.unwrap();
    store.follow_from(&scene.stream, "9", Some(4)).await.unwrap();
    let first = Followed { upto: Some("7".into()), reconciled_at: None, expected: Some(3) };
    assert_eq!(store.followed(&scene.stream).await.unwrap(), first);
    assert_eq!(store.mailboxes().await.unwrap()[0].last_history_id, Some(7));
}

pub async fn what_was_told_changes_rows_and_what_is_derived(lab: Lab) {
    let records = ["1", "2"].map(|key| message(&ANN, key, "t", &["A"])).to_vec();
    let (scene, lease) = Scene::with_mail(lab, records).await;
    let tidings =
        || vec![told("1", vec![label("B")], Otherwise::Fetch), told("2", vec![label("A")], SPAM), wanted("1x")];
    assert_eq!(scene.apply(tidings(), at(5)).await, Applied { edited: 1, wanted: 1, ..Applied::default() });
    assert_eq!(scene.labels(&ANN).await, ["1 A,B", "2 A"]);
    assert_eq!(scene.threads().await, ["m1-t 2 A,B"]);
    let fetched: Vec<_> = scene.mail(&ANN).await.iter().map(|row| row.last_fetched_at).collect();
    assert_eq!(fetched, [at(5), at(5)]);
    let late =
        Commit { now: at(6), asked_at: at(4), ..scene.commit_of(&lease, vec![message(&ANN, "1", "t", &[])], vec![]) };
    assert_eq!(scene.store().commit(Arc::new(late)).await.unwrap().behind, 1, "it was asked for before");
    assert_eq!(scene.apply(tidings(), at(6)).await, Applied::default(), "the same again changes nothing");
    assert_eq!(scene.labels(&ANN).await, ["1 A,B", "2 A"]);
    let changed =
        "SELECT count(DISTINCT last_changed_at), count(*) FROM mail_messages WHERE last_changed_at > first_seen_at";
    assert_eq!(scene.query(changed).await, ["1|1"]);
}

pub async fn what_is_told_of_and_not_stored_is_fetched_at_once(lab: Lab) {
    let scene = Scene::of_mail(lab).await;
    let catchup = scene.claim_one(at(0)).await;
    let tidings =
        vec![wanted("1"), wanted("2"), told("3", vec![], SPAM), told("4", vec![label("A")], Otherwise::Ignore)];
    let applied = scene.apply(tidings, at(1)).await;
    assert_eq!(applied, Applied { wanted: 2, excluded: 1, ..Applied::default() });
    assert_eq!(scene.excepted().await, ["1 retry_wait told 0", "2 retry_wait told 0", "3 excluded spam 0"]);
    assert_eq!(scene.claim("early", 9, at(0)).await, [], "not before it was told");

    let claimed = scene.claim_one(at(1)).await;
    assert_eq!((claimed.purpose, claimed.rest().is_empty()), (Purpose::Rescan, true), "nothing is to be listed");
    assert_eq!(claimed.due.iter().map(|due| due.key.to_string()).collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(scene.query("SELECT unresolved_count FROM ingest_segments WHERE purpose = 'rescan'").await, ["2"]);
    let settled = vec![judged("1", Verdict::Stored), judged("2", Verdict::Missing)];
    scene.commit(&claimed.lease, vec![message(&ANN, "1", "t", &[])], settled, at(2)).await.unwrap();
    assert_eq!(scene.close_sparse(&claimed.lease, at(2)).await.status, SegmentStatus::Sealed);
    assert_eq!(scene.excepted().await, ["2 missing server 3", "3 excluded spam 0"]);
    assert_eq!((scene.frontier().await, scene.labels(&ANN).await.len()), (0, 1));
    scene.close_sparse(&catchup.lease, at(3)).await;
    assert_eq!(scene.frontier().await, 100);
    scene.assert_tiled().await;
}

/// What was left out, not found, tried and given up, in a segment that is done with it or not.
pub async fn what_is_told_again_comes_back_unless_it_is_tried_or_given_up(lab: Lab) {
    let scene = Scene::of_mail(lab).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let verdicts = vec![
        judged("excluded", Verdict::Excluded),
        judged("missing", Verdict::Missing),
        judged("retrying", Verdict::Retry { at: at(50) }),
        judged("spam", Verdict::Retry { at: at(50) }),
        judged("dead", Verdict::Dead),
    ];
    scene.commit(&lease, vec![], verdicts, at(0)).await.unwrap();
    assert_eq!(scene.close_sparse(&lease, at(0)).await.status, SegmentStatus::RetryWait);
    let mut tidings = ["excluded", "missing", "retrying", "dead"].map(wanted).to_vec();
    tidings.push(told("spam", vec![], SPAM));
    assert_eq!(scene.apply(tidings, at(1)).await, Applied { wanted: 2, excluded: 1, ..Applied::default() });
    let expected = [
        "dead dead_letter server 3",
        "excluded retry_wait told 0",
        "missing retry_wait told 0",
        "retrying retry_wait told 3",
        "spam excluded spam 0",
    ];
    assert_eq!(scene.excepted().await, expected);
    let first_seen: Vec<_> = scene.exceptions().await.iter().map(|exception| exception.first_seen_at).collect();
    assert_eq!(first_seen, [at(0); 5]);
    let unresolved = "SELECT purpose, unresolved_count, status FROM ingest_segments ORDER BY purpose";
    assert_eq!(scene.query(unresolved).await, ["catchup|2|pending", "rescan|2|retry_wait"]);
    let due = |claimed: crate::Claimed| claimed.due.into_iter().map(|due| due.key.to_string()).collect::<Vec<_>>();
    let claimed: Vec<_> = scene.claim("worker", 9, at(1)).await.into_iter().map(due).collect();
    assert_eq!(claimed, [vec!["excluded", "missing"], vec![]], "what waits goes on waiting");
}

/// An answer is on its way when the record tells of the key.
pub async fn what_is_told_while_it_is_tried_is_tried_again(lab: Lab) {
    let scene = Scene::of_mail(lab).await;
    scene.apply(["1", "2", "3"].map(wanted).to_vec(), at(1)).await;
    let lease = scene.claim_one(at(1)).await.lease;
    assert_eq!(
        scene.apply(vec![told("1", vec![label("B")], Otherwise::Fetch), wanted("2")], at(3)).await,
        Applied::default()
    );
    let records = || vec![message(&ANN, "1", "t", &["A"]), message(&ANN, "3", "t", &["A"])];
    let settled = || vec![judged("1", Verdict::Stored), judged("2", Verdict::Missing), judged("3", Verdict::Stored)];
    let commit = |asked, now| Commit { now, asked_at: asked, ..scene.commit_of(&lease, records(), settled()) };
    let counts = scene.store().commit(Arc::new(commit(at(2), at(4)))).await.unwrap();
    assert_eq!((counts.new, counts.missing), (2, 0), "what came is stored");
    assert_eq!(scene.excepted().await, ["1 retry_wait told 0", "2 retry_wait told 0"], "but is not all there is");
    assert_eq!(scene.close_sparse(&lease, at(4)).await.status, SegmentStatus::RetryWait);

    let lease = scene.claim("worker", 1, at(4)).await.remove(0).lease;
    let again = Commit { lease: lease.clone(), ..commit(at(4), at(5)) };
    assert_eq!(scene.store().commit(Arc::new(again)).await.unwrap().missing, 1);
    assert_eq!(scene.excepted().await, ["2 missing server 3"]);
    assert_eq!(scene.close_sparse(&lease, at(5)).await.status, SegmentStatus::Sealed);
}

pub async fn news_of_years_take_few_segments(lab: Lab) {
    let scene = Scene::of_mail(lab).await;
    let catchup = scene.claim_one(at(0)).await;
    scene.close_sparse(&catchup.lease, at(0)).await;
    scene.apply(vec![wanted("open")], at(1)).await;
    scene.claim_one(at(1)).await;
    for day in 2..10 {
        let key = day.to_string();
        scene.apply(vec![wanted(&key), told(&format!("spam {key}"), vec![], SPAM)], at(day)).await;
        let claimed = scene.claim_one(at(day)).await;
        assert_eq!(claimed.due.iter().map(|due| due.key.to_string()).collect::<Vec<_>>(), [key.as_str()]);
        scene
            .commit(&claimed.lease, vec![message(&ANN, &key, "t", &[])], vec![judged(&key, Verdict::Stored)], at(day))
            .await
            .unwrap();
        assert_eq!(scene.close_sparse(&claimed.lease, at(day)).await.status, SegmentStatus::Sealed);
    }
    let segments = "SELECT purpose, status FROM ingest_segments ORDER BY purpose, status";
    assert_eq!(scene.query(segments).await, ["catchup|sealed", "rescan|in_progress", "rescan|sealed"]);
    assert_eq!(scene.labels(&ANN).await.len(), 8);
    assert_eq!(scene.excepted().await.len(), 9, "what is left out, and what is being tried");
    scene.assert_tiled().await;
}

pub async fn the_place_in_the_record_moves_with_the_last_piece(lab: Lab) {
    let (scene, _) = Scene::with_mail(lab, vec![message(&ANN, "1", "t", &[])]).await;
    let store = scene.store();
    scene.apply(vec![wanted("2")], at(1)).await;
    assert_eq!(store.followed(&scene.stream).await.unwrap().upto.as_deref(), Some(MARK));
    let entry = LedgerEntry {
        at: at(2),
        event_type: "RECONCILED",
        source: scene.stream.source.clone(),
        entity_type: "stream",
        entity_id: "messages".into(),
        payload: json!({}),
        actor: "highwater".into(),
    };
    let last = Arc::new(Tidings {
        upto: Some("200".into()),
        entries: vec![entry],
        is_reconciled: true,
        ..scene.tidings(vec![wanted("3"), told("1", vec![label("A")], Otherwise::Ignore)], at(2))
    });
    let applied = Applied { edited: 1, wanted: 1, ..Applied::default() };
    assert_eq!(store.apply(last.clone()).await.unwrap(), applied);
    let followed = Followed { upto: Some("200".into()), reconciled_at: Some(at(2)), expected: None };
    assert_eq!(store.followed(&scene.stream).await.unwrap(), followed);
    let before = (scene.noted().await, scene.excepted().await, scene.labels(&ANN).await);
    assert_eq!(before.0.iter().filter(|line| *line == "RECONCILED messages").count(), 1);

    let late = Applied { is_late: true, ..Applied::default() };
    assert_eq!(store.apply(last).await.unwrap(), late, "once more");
    let other = Tidings {
        upto: Some("300".into()),
        is_reconciled: true,
        ..scene.tidings(vec![wanted("4"), told("1", vec![label("B")], SPAM)], at(3))
    };
    assert_eq!(store.apply(Arc::new(other)).await.unwrap(), late, "from where it is no longer followed");
    assert_eq!(store.followed(&scene.stream).await.unwrap(), followed);
    assert_eq!((scene.noted().await, scene.excepted().await, scene.labels(&ANN).await), before);
    assert_eq!(scene.query("SELECT count(*) FROM ingest_segments").await, ["3"], "a segment for each piece");
    let retrying = scene.store().counts(&scene.stream).await.unwrap().exceptions_in(ExceptionState::RetryWait);
    assert_eq!(retrying, 2);

    for (start, end, reconciled_at) in [(100, 110, Some(at(2))), (-10, 0, None)] {
        scene.plan(Purpose::Catchup, start, end, 10).await.unwrap();
        let followed = store.followed(&scene.stream).await.unwrap();
        assert_eq!(followed.reconciled_at, reconciled_at, "what is older than all before was never compared");
    }
}
