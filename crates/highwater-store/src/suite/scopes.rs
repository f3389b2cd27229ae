//! Several mailboxes in one table: each sees and changes only its own rows.

use std::sync::Arc;

use highwater_core::{Key, KeySet, Record, StreamId};

use super::{
    scene::{Lab, Scene, at},
    tables::mail::{ANN, ZOE, label, message},
};
use crate::{Commit, Page};

/// The same ids in both, beside one of each alone.
fn both() -> Vec<Record> {
    vec![
        message(&ANN, "7", "t", &["A"]),
        message(&ZOE, "7", "t", &["Z"]),
        message(&ANN, "18c", "t", &["A"]),
        message(&ZOE, "0", "t", &["Z"]),
        message(&ZOE, "19d", "t", &["Z"]),
    ]
}

pub async fn mailboxes_with_the_same_ids_see_their_own_rows(lab: Lab) {
    let (scene, _) = Scene::with_mail(lab, both()).await;
    let store = scene.store();
    let asked = KeySet::List(["7", "18c", "0", "19d", "x"].map(Key::from).to_vec());
    for (table, own) in [(&ANN, ["18c", "7"].as_slice()), (&ZOE, &["0", "19d", "7"])] {
        let own: Vec<_> = own.iter().map(|key| Key::from(*key)).collect();
        let known = store.known(&scene.stream, table, &asked).await.unwrap();
        assert_eq!(known.stored, own.iter().cloned().collect());
        let mut keys = Vec::new();
        let mut after = None;
        while let Some(row) = store.rows(table, Page { after, limit: 1 }).await.unwrap().pop() {
            let page = Page { after: keys.last().cloned(), limit: 1 };
            let columns = store.columns(table, &["label_ids", "body_plain", "id"], page).await.unwrap();
            let values = [7, 12, 0].map(|place: usize| row.body.values[place].clone());
            assert_eq!(columns, [(row.key.clone(), values.to_vec())]);
            after = Some(row.key.clone());
            keys.push(row.key);
        }
        assert_eq!(keys, own, "page by page");
    }
    assert_eq!(scene.threads().await, ["m1-t 2 A", "m10-t 3 Z"]);
}

pub async fn the_rows_of_a_mailbox_are_counted_alone(lab: Lab) {
    let (scene, _) = Scene::with_mail(lab, both()).await;
    assert_eq!(scene.row().await.stored, 5);
    let other = StreamId { source: "post".parse().unwrap(), ..scene.stream.clone() };
    scene.store().open_stream(&other, "time").await.unwrap();
    scene.store().recount(&scene.stream, &ANN).await.unwrap();
    scene.store().recount(&other, &ZOE).await.unwrap();
    let stored: Vec<_> = scene.store().streams().await.unwrap().iter().map(|row| row.stored).collect();
    assert_eq!(stored, [2, 3]);
}

pub async fn what_is_said_of_a_message_is_not_said_of_its_namesake(lab: Lab) {
    let (scene, lease) = Scene::with_mail(lab, both()).await;
    let marked = Record { tag: Some("mark".into()), ..message(&ANN, "7", "t", &["A"]) };
    scene.commit(&lease, vec![marked], vec![], at(1)).await.unwrap();
    let seven = KeySet::List(vec![Key::from("7")]);
    assert_eq!(scene.store().tags(&ANN, &seven).await.unwrap().len(), 1);
    assert_eq!(scene.store().tags(&ZOE, &seven).await.unwrap().len(), 0);
    scene.commit_edits(&lease, vec![(Key::from("7"), &ZOE, vec![label("X")])], at(2)).await;
    assert_eq!(scene.labels(&ANN).await, ["18c A", "7 A"]);
    assert_eq!(scene.labels(&ZOE).await, ["0 Z", "19d Z", "7 X,Z"]);
    let unchanged = vec![(Key::from("7"), &ANN), (Key::from("0"), &ZOE), (Key::from("7"), &ZOE)];
    let commit = Commit { unchanged, now: at(9), asked_at: at(1), ..scene.commit_of(&lease, vec![], vec![]) };
    let counts = scene.store().commit(Arc::new(commit)).await.unwrap();
    assert_eq!((counts.unchanged, counts.behind), (2, 1), "what was edited since is not confirmed");
    let fetched =
        "SELECT id FROM mail_messages WHERE last_fetched_at = (SELECT max(last_fetched_at) FROM mail_messages)
                   ORDER BY id";
    assert_eq!(scene.query(fetched).await, ["m1-7", "m10-0"]);
}
