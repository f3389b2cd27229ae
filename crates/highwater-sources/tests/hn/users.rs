//! Users, by name.

use std::sync::atomic::Ordering;

use highwater_core::{FailureKind, Key, Position, Span, Timestamp, Value};
use highwater_sources::{Density, Fetched, Following, Source};

use crate::{World, world};

const USERS: usize = 1;

async fn fetch(world: &World, name: &str) -> Fetched {
    let answers = world.hn.fetch(&world.hn.streams()[USERS].name, &[Key::from(name)], &world.call).await.unwrap();
    let [answer] = answers.try_into().unwrap();
    assert_eq!(answer.key, Key::from(name));
    answer.fetched
}

#[tokio::test]
async fn users_are_named_in_items_and_left_to_serve() {
    let world = world([]);
    let [items, users] = world.hn.streams() else { panic!("two streams") };
    assert_eq!((items.name.as_str(), items.follows), ("items", Following::Sync));
    assert_eq!((users.name.as_str(), users.follows, users.table.name), ("users", Following::Serve, "hn_users"));
    let Density::Named(named) = users.density else { panic!("{:?}", users.density) };
    assert_eq!((named.stream, named.table.name, named.column), ("items", "hn_items", "by"));
    assert!(named.table.position(named.column).is_some());
}

#[tokio::test]
async fn a_user_is_asked_for_by_name_and_stored_as_it_is() {
    let answers = [
        ("/v0/user/pg.json", 200, r#"{"id":"pg","karma":7,"submitted":[1,2]}"#),
        ("/v0/user/123.json", 200, r#"{"id":"123","created":5}"#),
        ("/v0/user/a%20b.json", 200, r#"{"id":"a b"}"#),
    ];
    for name in ["pg", "123", "a b"] {
        let Fetched::Found(record) = fetch(&world(answers), name).await else { panic!("{name}") };
        assert_eq!((record.key, record.table.name), (Key::from(name), "hn_users"));
        assert_eq!(record.body.values[0], Value::Text(name.into()));
    }
}

#[tokio::test]
async fn what_an_answer_means_for_a_name() {
    let one = async |status, body| fetch(&world([("/v0/user/pg.json", status, body)]), "pg").await;
    assert!(matches!(one(200, "null").await, Fetched::Absent));
    use FailureKind as K;
    for (status, body, kind) in [
        (200, r#"{"id":"PG"}"#, K::WrongIdentity),
        (200, r#"{"karma":1}"#, K::WrongIdentity),
        (200, r#"{"id":["pg"]}"#, K::WrongIdentity),
        (200, r#"{"id":"p"#, K::Malformed),
        (200, "[]", K::Malformed),
        (401, "", K::Denied),
        (404, "", K::NotFound),
        (500, "", K::Server),
    ] {
        match one(status, body).await {
            Fetched::Failed(failure) => assert_eq!(failure.kind, kind, "{status} {body}"),
            other => panic!("{status} {body}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_name_that_would_ask_for_something_else_is_not_asked_for() {
    let world = world([]);
    for name in ["../item/1", "..", "", "a\nb"] {
        assert!(matches!(fetch(&world, name).await, Fetched::Excluded { .. }), "{name:?}");
    }
    assert_eq!(world.table.requests.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn the_remote_has_no_list_of_users() {
    let world = world([("/v0/maxitem.json", 200, "41")]);
    let users = &world.hn.streams()[USERS].name;
    let span = Span::new(Position(1), Position(9));
    let at = Timestamp::from_millis(0);
    assert_eq!(world.hn.head(users, &world.call).await.unwrap_err().kind, FailureKind::Internal);
    assert_eq!(world.hn.position_at(users, at, &world.call).await.unwrap_err().kind, FailureKind::Internal);
    assert_eq!(world.hn.discover(users, span, &world.call).await.unwrap_err().kind, FailureKind::Internal);
    let other = "other".parse().unwrap();
    assert_eq!(world.hn.fetch(&other, &[], &world.call).await.unwrap_err().kind, FailureKind::Internal);
    assert_eq!(world.table.requests.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_user_may_be_the_canary() {
    let world =
        world([("/v0/user/pg.json", 500, ""), ("/v0/user/a.json", 200, "null"), ("/v0/maxitem.json", 200, "41")]);
    let users = &world.hn.streams()[USERS].name;
    let probe = async |name: Option<&str>| {
        let key = name.map(Key::from);
        world.hn.probe(users, key.as_ref()).await.map_err(|failure| failure.kind)
    };
    assert_eq!(probe(Some("pg")).await, Err(FailureKind::Server));
    assert_eq!(probe(Some("a")).await, Ok(()));
    assert_eq!(probe(None).await, Ok(()));
}
