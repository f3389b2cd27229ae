//! Lists of names that grow with the rows that name them.

use highwater_core::{Key, Position, Record, StreamId, Value};

use super::scene::{Lab, Scene, at, span};
use super::{ITEMS, item};
use crate::{CollectNames, Collected, ErrorKind, NamesIn};

/// A scene with a stream of items, and the stream of those who wrote them.
async fn listing(lab: Lab) -> (Scene, StreamId) {
    let scene = Scene::planned(lab, 100, 30_100, 30_000).await;
    let users = StreamId { stream: "users".parse().unwrap(), ..scene.stream.clone() };
    scene.store().open_stream(&users, "name").await.unwrap();
    (scene, users)
}

fn by(id: i64, name: Value) -> Record {
    let mut record = item(id, "", &[]);
    record.body.values[2] = name;
    record
}

fn text(name: &str) -> Value {
    Value::Text(name.into())
}

async fn listed(scene: &Scene, users: &StreamId, start: i64, end: i64) -> Vec<Key> {
    scene.store().listed(users, span(start, end)).await.unwrap()
}

pub async fn names_are_listed_in_the_order_in_which_they_are_found(lab: Lab) {
    let (scene, users) = listing(lab).await;
    assert_eq!(scene.store().listed_end(&users).await.unwrap(), Position(1));
    for names in [&["zoe", "Ann", "zoe", "10"][..], &["bob", "Ann"], &[], &["ann", "bob", "007"]] {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        scene.store().note_names(&users, &names).await.unwrap();
    }
    let all = ["zoe", "Ann", "10", "bob", "ann", "007"].map(Key::from);
    assert_eq!(listed(&scene, &users, 1, 99).await, all);
    assert_eq!(listed(&scene, &users, 3, 5).await, all[2..4]);
    assert_eq!(scene.store().listed_end(&users).await.unwrap(), Position(7));
    assert_eq!(listed(&scene, &scene.stream, 1, 99).await, [], "another stream has another list");
    let unknown = StreamId { stream: "others".parse().unwrap(), ..users };
    let refused = scene.store().note_names(&unknown, &["ann".to_owned()]).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Refused);
}

pub async fn a_list_grows_by_rows_that_were_not_looked_at(lab: Lab) {
    let (scene, users) = listing(lab).await;
    let rows = [
        by(100, text("zoe")),
        by(101, Value::Null),
        by(102, text("ann")),
        by(103, text("zoe")),
        by(104, text("")),
        by(10_099, text("bob")),
        by(10_100, text("ann")),
        by(10_101, text("eve")),
        by(20_150, text("kim")),
    ];
    scene.tell(rows.to_vec(), at(0)).await;
    scene.store().note_names(&users, &["bob".to_owned()]).await.unwrap();
    let collect = |until| CollectNames {
        stream: users.clone(),
        from: scene.stream.clone(),
        table: &ITEMS,
        column: "by",
        until: Position(until),
    };
    let step = async |until| scene.store().collect_names(&collect(until)).await.unwrap();
    let found = |upto, new_names| Some(Collected { upto: Position(upto), new_names });
    assert_eq!(step(20_120).await, found(10_100, 2));
    assert_eq!(listed(&scene, &users, 1, 99).await, ["bob", "zoe", "ann"].map(Key::from));
    assert_eq!(step(20_120).await, found(20_100, 1));
    assert_eq!(step(20_120).await, found(20_120, 0));
    assert_eq!(step(20_120).await, None);
    assert_eq!(step(20_000).await, None, "never back");
    assert_eq!(step(20_200).await, found(20_200, 1));
    assert_eq!(listed(&scene, &users, 1, 99).await, ["bob", "zoe", "ann", "eve", "kim"].map(Key::from));
    let cursor = "SELECT live_cursor FROM ingest_streams WHERE stream = 'users'";
    assert_eq!(scene.query(cursor).await, ["20200"]);
}

pub async fn the_names_of_a_span_are_told_once(lab: Lab) {
    let (scene, _) = listing(lab).await;
    let names = ["zoe", "ann", "Bob", "ann", "10"];
    scene.tell((100..).zip(names).map(|(id, name)| by(id, text(name))).collect(), at(0)).await;
    let ask = |start, end| NamesIn { table: &ITEMS, column: "by", span: span(start, end) };
    assert_eq!(scene.store().names_in(&ask(0, 200)).await.unwrap(), ["10", "Bob", "ann", "zoe"]);
    assert_eq!(scene.store().names_in(&ask(101, 104)).await.unwrap(), ["Bob", "ann"]);
}
