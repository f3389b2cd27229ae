//! Rows that are computed from others: threads from messages.

use std::sync::Arc;

use highwater_core::{Edit, Key, Value};

use super::{
    post::time,
    scene::{Lab, Scene, at},
    tables::mail::{ANN, label, message},
};
use crate::{Commit, Page};

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

pub async fn a_thread_that_its_messages_do_not_make_is_found_and_made_anew(lab: Lab) {
    let messages = ["t", "u", "v", "w"].map(|thread| message(&ANN, thread, thread, &["A"])).to_vec();
    let (scene, _) = Scene::with_mail(lab, messages).await;
    assert_eq!(scene.misderived(10).await, [""; 0]);
    for damage in [
        "UPDATE mail_threads SET message_count = 9 WHERE id = 'm1-t'",
        "DELETE FROM mail_threads WHERE id = 'm1-u'",
        "UPDATE mail_messages SET thread_id = 'm1-x' WHERE thread_id = 'm1-v'",
        "UPDATE mail_threads SET label_ids = NULL WHERE id = 'm1-w'",
    ] {
        scene.query(damage).await;
    }
    for limit in 1..=6 {
        assert_eq!(scene.misderived(limit).await, ["m1-t", "m1-u", "m1-v", "m1-w", "m1-x"], "{limit} at a time");
    }
    let groups = ["m1-t", "m1-u", "m1-v", "m1-w", "m1-x"].map(String::from);
    scene.store().rederive(&scene.stream, &ANN, &groups, at(1)).await.unwrap();
    assert_eq!(scene.misderived(10).await, ["m1-v"], "nothing is left of it to be made from");
    assert_eq!(scene.threads().await, ["m1-t 1 A", "m1-u 1 A", "m1-v 1 A", "m1-w 1 A", "m1-x 1 A"]);
}

impl Scene {
    /// Groups whose row is not what their rows make, found so many at a time.
    async fn misderived(&self, limit: u32) -> Vec<String> {
        let (mut wrong, mut after) = (Vec::new(), None);
        loop {
            let looked = self.store().misderived(&ANN, Page { after, limit }).await.unwrap();
            wrong.extend(looked.wrong);
            if looked.last.is_none() {
                return wrong;
            }
            after = looked.last;
        }
    }
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
