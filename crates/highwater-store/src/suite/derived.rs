//! Rows that are computed from others: threads from messages.

use std::sync::Arc;

use highwater_core::{Edit, Key, Value};

use super::{
    post::time,
    scene::{Lab, Scene, at},
    tables::mail::{ANN, label, message},
};
use crate::Commit;

pub async fn a_thread_follows_its_messages(lab: Lab) {
    let (scene, lease) = Scene::with_mail(lab, vec![message(&ANN, "5", "t", &["A"])]).await;
    assert_eq!(scene.threads().await, ["m1-t 1 A"]);
    let more = vec![message(&ANN, "3", "t", &["B", "A"]), message(&ANN, "4", "u", &[])];
    scene.commit(&lease, more.clone(), vec![], at(1)).await.unwrap();
    assert_eq!(scene.threads().await, ["m1-t 2 A,B", "m1-u 1 "]);
    scene.commit(&lease, more, vec![], at(1)).await.unwrap();
    assert_eq!(scene.threads().await, ["m1-t 2 A,B", "m1-u 1 "], "the same again adds nothing");
    scene.commit(&lease, vec![message(&ANN, "5", "t", &["C"])], vec![], at(2)).await.unwrap();
    assert_eq!(scene.threads().await, ["m1-t 2 A,B,C", "m1-u 1 "], "a message that changed");
    scene.commit_edits(&lease, vec![(Key::from("4"), &ANN, vec![label("D")])], at(3)).await;
    assert_eq!(scene.threads().await, ["m1-t 2 A,B,C", "m1-u 1 D"], "a message that was edited");
    let spans = "SELECT m.id FROM mail_messages AS m JOIN mail_threads AS t ON t.id = m.thread_id
                 WHERE m.sent_at IN (t.first_message_at, t.last_message_at) ORDER BY m.id";
    assert_eq!(scene.query(spans).await, ["m1-3", "m1-4", "m1-5"]);
    let seen = scene.noted().await.into_iter().filter(|line| line.starts_with("THREAD"));
    assert_eq!(seen.collect::<Vec<_>>(), ["THREAD_SEEN m1-t", "THREAD_SEEN m1-u"]);
}

pub async fn a_message_of_no_thread_is_of_none(lab: Lab) {
    let mut alone = message(&ANN, "1", "t", &[]);
    alone.body.values[2] = Value::Null;
    let (scene, lease) = Scene::with_mail(lab, vec![alone]).await;
    let commit = Commit {
        edits: vec![(Key::from("1"), &ANN, vec![label("A")]), (Key::from("unknown"), &ANN, vec![label("A")])],
        now: at(1),
        asked_at: at(1),
        ..scene.commit_of(&lease, vec![], vec![])
    };
    assert_eq!(scene.store().commit(Arc::new(commit)).await.unwrap().changed, 1, "it is changed all the same");
    assert_eq!((scene.labels(&ANN).await, scene.threads().await), (vec!["1 A".to_owned()], vec![]));
}

/// Edits of a commit: rows, checks, times and counts.
pub async fn a_row_that_was_edited_is_told_apart_from_one_that_was_not(lab: Lab) {
    let records = ["1", "2", "3"].map(|key| message(&ANN, key, "t", &["A"])).to_vec();
    let (scene, lease) = Scene::with_mail(lab, records).await;
    let gone = |seconds| Edit::Fill { column: "deleted_remotely_at", value: time(seconds) };
    let edits = |seconds| {
        vec![(Key::from("1"), &ANN, vec![label("A"), gone(seconds)]), (Key::from("2"), &ANN, vec![label("A")])]
    };
    scene.commit_edits(&lease, edits(7), at(7)).await;
    scene.commit_edits(&lease, edits(8), at(8)).await;
    let place = ANN.position("deleted_remotely_at").unwrap();
    let gone: Vec<_> = scene.mail(&ANN).await.iter().map(|row| row.body.values[place].clone()).collect();
    assert_eq!(gone, [time(7), Value::Null, Value::Null]);
    assert_eq!(scene.labels(&ANN).await, ["1 A", "2 A", "3 A"], "and all match their checks");
    let fetched: Vec<_> = scene.mail(&ANN).await.iter().map(|row| row.last_fetched_at).collect();
    assert_eq!(fetched, [at(8), at(8), at(0)], "what was told of counts as seen");
    let changed = "SELECT id FROM mail_messages WHERE last_changed_at > first_seen_at";
    assert_eq!(scene.query(changed).await, ["m1-1"]);
    assert_eq!(scene.query("SELECT changed_count FROM ingest_segments").await, ["1"]);
}

pub async fn an_edit_does_not_make_damage_sound(lab: Lab) {
    let (scene, lease) = Scene::with_mail(lab, vec![message(&ANN, "1", "t", &[])]).await;
    scene.query("UPDATE mail_messages SET subject = 'damaged'").await;
    scene.commit_edits(&lease, vec![(Key::from("1"), &ANN, vec![label("A")])], at(1)).await;
    let row = scene.mail(&ANN).await.remove(0);
    assert_ne!(row.row_check, row.body.checksum());
    scene.commit(&lease, vec![message(&ANN, "1", "t", &["A"])], vec![], at(2)).await.unwrap();
    assert_eq!(scene.labels(&ANN).await, ["1 A"], "what is fetched anew is");
}
