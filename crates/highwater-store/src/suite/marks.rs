//! The marks by which the remote knows bodies.

use highwater_core::{Key, KeySet, Record};

use super::scene::{Lab, Scene, at, span};
use super::{ITEMS, USERS, item, user};

fn marked(record: Record, tag: &str) -> Record {
    Record { tag: Some(tag.into()), ..record }
}

async fn mark(scene: &Scene) -> Option<String> {
    let keys = KeySet::List(vec![Key::Number(1)]);
    scene.store().tags(&ITEMS, &keys).await.unwrap().remove(&Key::Number(1))
}

pub async fn a_mark_stands_for_the_body_in_its_row(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let lease = scene.claim_one(at(0)).await.lease;
    let steps = [
        (marked(item(1, "a", &[2, 3]), "one"), Some("one")),
        (item(1, "a", &[2, 3]), Some("one")),
        (marked(item(1, "a", &[2, 3]), "two"), Some("two")),
        (item(1, "a", &[3, 2]), Some("two")),
        (marked(item(1, "a", &[2, 3]), "three"), Some("three")),
        (item(1, "b", &[2, 3]), None),
        (marked(item(1, "b", &[2, 3]), "four"), Some("four")),
        (marked(item(1, "c", &[2, 3]), "five"), Some("five")),
    ];
    // A mark that is new is taken at the same second, too.
    for (second, (record, expected)) in [1, 2, 2, 3, 4, 5, 5, 6].into_iter().zip(steps) {
        let shown = format!("{:?} at {second}", record.tag);
        scene.commit(&lease, vec![record], vec![], at(second)).await.unwrap();
        assert_eq!(mark(&scene).await.as_deref(), expected, "{shown}");
    }
    scene.tell(vec![item(1, "d", &[])], at(7)).await;
    assert_eq!(mark(&scene).await, None, "no mark outlives its body");
}

pub async fn marks_are_told_by_range_and_by_name(lab: Lab) {
    let scene = Scene::planned(lab, 0, 10, 10).await;
    let records = vec![
        marked(item(2, "", &[]), "i2"),
        item(3, "", &[]),
        marked(item(8, "", &[]), "i8"),
        marked(user("ann", 1), "u1"),
        marked(user("10", 1), "u2"),
    ];
    scene.tell(records, at(0)).await;
    let list = KeySet::List([8, 4, 3, 2, 2].map(Key::Number).to_vec());
    for keys in [KeySet::Range(span(2, 9)), list] {
        let tags = scene.store().tags(&ITEMS, &keys).await.unwrap();
        assert!(tags.into_iter().eq([(Key::Number(2), "i2".into()), (Key::Number(8), "i8".into())]));
    }
    assert_eq!(scene.store().tags(&ITEMS, &KeySet::Range(span(3, 8))).await.unwrap().len(), 0);
    let names = KeySet::List(["ann", "10", "zoe"].map(Key::from).to_vec());
    let tags = scene.store().tags(&USERS, &names).await.unwrap();
    assert!(tags.into_iter().eq([(Key::from("10"), "u2".into()), (Key::from("ann"), "u1".into())]));
}
