//! What is stored together with an object: rows beside its own, and lines of the ledger.

use std::sync::Arc;

use highwater_core::{Key, Value};

use super::{
    scene::{ALL, Lab, Scene, at},
    tables::mail::{ALL_MAIL, ANN, RAW, ZOE, message, with_bytes},
};
use crate::{Commit, Page};

/// The bytes beside messages, by the name of the message.
async fn bytes(scene: &Scene) -> Vec<(String, Vec<u8>)> {
    let page = Page { after: None, limit: ALL };
    let rows = scene.store().side_rows(&RAW, &ALL_MAIL, page).await.unwrap();
    let bytes = |row: Vec<Value>| match <[Value; 4]>::try_from(row).unwrap() {
        [Value::Text(id), Value::Bytes(bytes), ..] => (id.into(), bytes),
        other => panic!("{other:?}"),
    };
    rows.into_iter().map(bytes).collect()
}

pub async fn bytes_come_back_as_they_went_in(lab: Lab) {
    let all: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let contents = [("1", all), ("2", vec![]), ("3", vec![0, 0x5c, 0x78, 0xff])];
    let records = contents.iter().map(|(key, bytes)| with_bytes(message(&ANN, key, "t", &[]), bytes)).collect();
    let (scene, _) = Scene::with_mail(lab, records).await;
    let expected: Vec<_> = contents.into_iter().map(|(key, bytes)| (format!("m1-{key}"), bytes)).collect();
    assert_eq!(bytes(&scene).await, expected);
}

pub async fn what_belongs_to_an_object_is_stored_once_and_restored(lab: Lab) {
    let records = vec![message(&ANN, "1", "t", &[]), message(&ZOE, "1", "t", &[]), message(&ANN, "2", "t", &[])];
    let (scene, lease) = Scene::with_mail(lab, records.clone()).await;
    let whole = bytes(&scene).await;
    let beside = "SELECT id, message_id, filename, is_inline, size_bytes FROM mail_attachments ORDER BY id";
    let attached = ["m1-1-1|m1-1||0|4", "m1-2-1|m1-2||0|4", "m10-1-1|m10-1||0|5"];
    assert_eq!((whole.len(), scene.query(beside).await), (3, attached.map(String::from).to_vec()));
    let sizes = scene.store().sizes().await.unwrap();
    assert_eq!(sizes.blob_bytes, 5, "all have the same content, which is kept once");
    for damage in ["DELETE FROM mail_raw WHERE message_id = 'm1-1'", "UPDATE mail_raw SET sha256 = ''"] {
        scene.query(damage).await;
    }
    scene.query("DELETE FROM mail_attachments WHERE id <> 'm1-2-1'").await;
    let counts = scene.commit(&lease, records, vec![], at(1)).await.unwrap();
    assert_eq!((counts.unchanged, counts.changed), (3, 0), "the messages themselves are as they were");
    assert_eq!((bytes(&scene).await, scene.query(beside).await), (whole, attached.map(String::from).to_vec()));
    assert_eq!(scene.query("SELECT count(*) FROM mail_raw WHERE sha256 = '00ff'").await, ["3"]);
}

pub async fn what_is_not_believed_brings_nothing_along(lab: Lab) {
    let (scene, lease) = Scene::with_mail(lab, vec![message(&ANN, "1", "t", &["A"])]).await;
    scene.commit_edits(&lease, vec![(Key::from("1"), &ANN, vec![super::tables::mail::label("B")])], at(5)).await;
    let late = with_bytes(message(&ANN, "1", "t", &["C"]), b"other");
    let commit = Commit { now: at(6), asked_at: at(4), ..scene.commit_of(&lease, vec![late], vec![]) };
    assert_eq!(scene.store().commit(Arc::new(commit)).await.unwrap().behind, 1);
    assert_eq!(bytes(&scene).await, [("m1-1".to_owned(), b"m1-1".to_vec())]);
    assert_eq!(scene.labels(&ANN).await, ["1 A,B"]);
}

pub async fn an_object_is_noted_once_however_often_it_comes(lab: Lab) {
    let records = || vec![message(&ANN, "1", "t", &[]), message(&ANN, "2", "u", &[])];
    let (scene, lease) = Scene::with_mail(lab, records()).await;
    let once = ["MESSAGE_STORED m1-1", "MESSAGE_STORED m1-2", "THREAD_SEEN m1-t", "THREAD_SEEN m1-u"];
    assert_eq!(scene.noted().await, once);
    scene.commit(&lease, records(), vec![], at(0)).await.unwrap();
    scene.commit(&lease, vec![message(&ANN, "1", "t", &["changed"])], vec![], at(1)).await.unwrap();
    assert_eq!(scene.noted().await, once);
    assert_eq!(scene.ledger_events().await.len(), once.len(), "and the chain holds");
}
