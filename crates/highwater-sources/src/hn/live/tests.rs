//! Events of every form against what they tell, and random writes against a tree that is really kept.

use std::collections::{BTreeMap, BTreeSet};

use highwater_core::{Key, Position};
use proptest::prelude::*;

use super::*;

fn stream(name: &str) -> StreamName {
    name.parse().unwrap()
}

fn updates() -> Topic {
    Topic::Updates { items: stream("items"), users: stream("users") }
}

fn told(topic: &Topic, name: &str, data: &str) -> Result<Told, FailureKind> {
    topic.told(&Event { name: name.into(), data: data.into() }).map_err(|failure| failure.kind)
}

fn write(path: &str, data: &str) -> String {
    format!(r#"{{"path":"{path}","data":{data}}}"#)
}

/// What an update tells, in words.
fn keys(name: &str, path: &str, data: &str) -> Vec<String> {
    match told(&updates(), name, &write(path, data)) {
        Ok(Told::Changed(changed)) => changed.iter().map(|(stream, key)| format!("{stream} {key}")).collect(),
        Ok(Told::Alive) => Vec::new(),
        other => panic!("{name} {path} {data}: {other:?}"),
    }
}

#[test]
fn everything_written_counts_as_changed_in_whatever_form_it_comes() {
    for (name, path, data, expected) in [
        ("put", "/", r#"{"items":[3,4,3],"profiles":["pg"]}"#, &["items 3", "items 4", "items 3", "users pg"][..]),
        ("put", "/", r#"{"items":{"0":1,"7":2}}"#, &["items 1", "items 2"]),
        ("put", "/", r#"{"items":{"-Nx":1},"new":[9]}"#, &["items 1"]),
        ("put", "/items", "[5,6]", &["items 5", "items 6"]),
        ("put", "/items", "5", &["items 5"]),
        ("put", "/items/3", "5", &["items 5"]),
        ("put", "items/3/", "5", &["items 5"]),
        ("put", "/profiles", r#"{"2":"a","9":"123"}"#, &["users a", "users 123"]),
        ("put", "/profiles/0", r#""a""#, &["users a"]),
        ("patch", "/", r#"{"items":[1],"profiles":{"0":"b"}}"#, &["items 1", "users b"]),
        ("patch", "/", r#"{"items/3":1,"/profiles/0":"b","items/4":null}"#, &["items 1", "users b"]),
        ("patch", "/items", r#"{"3":1,"4":"2","5":7.0}"#, &["items 1", "items 2", "items 7"]),
        ("patch", "/profiles", r#"{"3":"c"}"#, &["users c"]),
    ] {
        assert_eq!(keys(name, path, data), expected, "{name} {path} {data}");
    }
}

#[test]
fn what_names_nothing_is_a_sign_of_life() {
    for (name, path, data) in [
        ("put", "/", "null"),
        ("put", "/", "5"),
        ("put", "/", r#"{"items":null,"profiles":null}"#),
        ("put", "/items", "null"),
        ("put", "/items/3", "null"),
        ("put", "/items/3", "[1]"),
        ("put", "/items/3/x", "1"),
        ("put", "/new", "[1]"),
        ("put", "/items", r#"[0,-1,1.5,"x","007",true,[1],{"a":1},99999999999999999999]"#),
        ("put", "/profiles", r#"["","..","a/b","\u0000",7,null,{},"\ud800"]"#),
        ("patch", "/", "null"),
        ("patch", "/", "{}"),
        ("patch", "/items/3", r#"{"x":1}"#),
    ] {
        assert_eq!(keys(name, path, data), [""; 0], "{name} {path} {data}");
    }
    for name in ["keep-alive", "rules_debug", "message", ""] {
        assert_eq!(told(&updates(), name, "null"), Ok(Told::Alive), "{name}");
    }
}

#[test]
fn the_head_is_told_by_a_number_in_the_only_place_there_is() {
    let topic = Topic::MaxItem { items: stream("items") };
    let head = |head| Ok(Told::Head { stream: stream("items"), head: Position(head) });
    for (name, path, data, expected) in [
        ("put", "/", "41", head(42)),
        ("put", "", "\"41\"", head(42)),
        ("put", "/", "null", Ok(Told::Alive)),
        ("put", "/x", "41", Ok(Told::Alive)),
        ("patch", "/", r#"{"x":41}"#, Ok(Told::Alive)),
        ("put", "/", "0", Err(FailureKind::Malformed)),
        ("put", "/", "[41]", Err(FailureKind::Malformed)),
        ("put", "/", "9223372036854775807", Err(FailureKind::Malformed)),
    ] {
        assert_eq!(told(&topic, name, &write(path, data)), expected, "{name} {path} {data}");
    }
    assert_eq!(told(&topic, "keep-alive", "null"), Ok(Told::Alive));
}

#[test]
fn a_feed_that_ends_or_makes_no_sense_is_given_up() {
    for topic in [updates(), Topic::MaxItem { items: stream("items") }] {
        assert_eq!(told(&topic, "cancel", "null"), Err(FailureKind::Denied));
        assert_eq!(told(&topic, "auth_revoked", "credential is no longer valid"), Err(FailureKind::Denied));
        for data in
            ["", "null", "{", "[]", r#"{"path":"/"}"#, r#"{"data":1}"#, r#"{"path":1,"data":1}"#, "{}x", "\u{0}"]
        {
            for name in ["put", "patch"] {
                assert_eq!(told(&topic, name, data), Err(FailureKind::Malformed), "{name} {data}");
            }
        }
        assert_eq!(told(&topic, "patch", &write("/", "5")), Err(FailureKind::Malformed));
    }
}

#[test]
fn no_depth_is_too_deep() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(keys("put", "/items", &format!("[1,{deep},2]")), ["items 1", "items 2"]);
    assert_eq!(keys("put", "/", &deep), [""; 0]);
}

/// A place in Firebase: nothing, a value, or other places.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(i64),
    Node(BTreeMap<String, Tree>),
}

impl Tree {
    fn set(&mut self, path: &[&str], value: Option<Tree>) {
        let Some((name, rest)) = path.split_first() else {
            *self = value.unwrap_or(Tree::Node(BTreeMap::new()));
            return;
        };
        if let Tree::Leaf(_) = self {
            *self = Tree::Node(BTreeMap::new());
        }
        let Tree::Node(below) = self else { unreachable!("just made") };
        match (rest, value) {
            ([], None) => drop(below.remove(*name)),
            ([], Some(value)) => drop(below.insert((*name).into(), value)),
            (rest, value) => below.entry((*name).into()).or_insert(Tree::Node(BTreeMap::new())).set(rest, value),
        }
    }

    fn below(&self, name: &str) -> Option<&Tree> {
        match self {
            Tree::Node(below) => below.get(name),
            Tree::Leaf(_) => None,
        }
    }

    /// The values right below.
    fn leaves(&self) -> BTreeSet<i64> {
        match self {
            Tree::Leaf(_) => BTreeSet::new(),
            Tree::Node(below) => {
                below.values().filter_map(|tree| if let Tree::Leaf(id) = tree { Some(*id) } else { None }).collect()
            }
        }
    }
}

/// The shape of a write; its ids are counted up, so that each is written once.
#[derive(Clone, Debug)]
enum Shape {
    Id,
    Null,
    List(Vec<Shape>),
    Object(Vec<(String, Shape)>),
}

impl Shape {
    fn fill(&self, next: &mut i64) -> (String, Option<Tree>) {
        match self {
            Shape::Null => ("null".into(), None),
            Shape::Id => {
                *next += 1;
                let json = if *next % 3 == 0 { format!("\"{next}\"") } else { next.to_string() };
                (json, Some(Tree::Leaf(*next)))
            }
            Shape::List(list) => {
                let members: Vec<_> =
                    list.iter().enumerate().map(|(n, shape)| (n.to_string(), shape.clone())).collect();
                let (jsons, tree) = fill_all(&members, next);
                (format!("[{}]", jsons.join(",")), Some(tree))
            }
            Shape::Object(members) => {
                let (jsons, tree) = fill_all(members, next);
                let named = members.iter().zip(jsons).map(|((name, _), json)| format!("\"{name}\":{json}"));
                (format!("{{{}}}", named.collect::<Vec<_>>().join(",")), Some(tree))
            }
        }
    }
}

fn fill_all(members: &[(String, Shape)], next: &mut i64) -> (Vec<String>, Tree) {
    let mut tree = Tree::Node(BTreeMap::new());
    let jsons = members.iter().map(|(name, shape)| {
        let (json, value) = shape.fill(next);
        tree.set(&[name], value);
        json
    });
    (jsons.collect(), tree)
}

fn names() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["items", "profiles", "0", "3", "7", "new"]).prop_map(str::to_owned)
}

fn shapes() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![4 => Just(Shape::Id), 1 => Just(Shape::Null)];
    leaf.prop_recursive(3, 20, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Shape::List),
            prop::collection::btree_map(names(), inner, 0..4)
                .prop_map(|members| Shape::Object(members.into_iter().collect())),
        ]
    })
}

/// A path of up to three names, and what is put there or, by paths of up to two names, patched below.
type Op = (Vec<String>, Result<Shape, BTreeMap<Vec<String>, Shape>>);

fn ops() -> impl Strategy<Value = Op> {
    let paths = |least, most| prop::collection::vec(names(), least..=most);
    let patch = prop::collection::btree_map(paths(1, 2), shapes(), 0..4);
    let items = prop::collection::vec(Just(Shape::Id), 0..5)
        .prop_map(|list| Shape::Object(vec![("items".into(), Shape::List(list))]));
    prop_oneof![
        (paths(0, 3), shapes().prop_map(Ok)),
        (paths(0, 2), patch.prop_map(Err)),
        (Just(Vec::new()), items.prop_map(Ok)),
    ]
}

/// Applies the operation to the tree, and gives the event that tells of it.
fn apply((path, what): &Op, tree: &mut Tree, next: &mut i64) -> (&'static str, String) {
    let at: Vec<&str> = path.iter().map(String::as_str).collect();
    let place = format!("/{}", path.join("/"));
    match what {
        Ok(shape) => {
            let (json, value) = shape.fill(next);
            tree.set(&at, value);
            ("put", write(&place, &json))
        }
        Err(patch) => {
            let members = patch.iter().map(|(below, shape)| {
                let (json, value) = shape.fill(next);
                let whole: Vec<&str> = at.iter().copied().chain(below.iter().map(String::as_str)).collect();
                tree.set(&whole, value);
                format!("\"{}\":{json}", below.join("/"))
            });
            ("patch", write(&place, &format!("{{{}}}", members.collect::<Vec<_>>().join(","))))
        }
    }
}

proptest! {
    #[test]
    fn every_id_whose_place_was_written_is_told(ops in prop::collection::vec(ops(), 1..12)) {
        let (mut tree, mut next) = (Tree::Node(BTreeMap::new()), 0);
        for op in ops {
            let (known, before) = (next, tree.below("items").map(Tree::leaves).unwrap_or_default());
            let (name, data) = apply(&op, &mut tree, &mut next);
            let told = match told(&updates(), name, &data) {
                Ok(Told::Changed(changed)) => changed,
                Ok(Told::Alive) => Vec::new(),
                other => panic!("{name} {data}: {other:?}"),
            };
            let told: BTreeSet<i64> = told.iter().filter(|(stream, _)| stream.as_str() == "items").filter_map(|(_, key)| key.number()).collect();
            let after = tree.below("items").map(Tree::leaves).unwrap_or_default();
            let new: BTreeSet<i64> = after.difference(&before).copied().collect();
            prop_assert!(told.is_superset(&new), "{} {}: {:?} is not all of {:?}", name, data, told, new);
            prop_assert!(told.iter().all(|id| (known + 1..=next).contains(id)), "{} {}: {:?}", name, data, told);
        }
    }

    #[test]
    fn no_data_can_panic(data in "[\\[\\]{}\":,/a-z0-9\\\\]{0,40}", path in "[/a-z0-9]{0,8}") {
        for name in ["put", "patch"] {
            told(&updates(), name, &data).ok();
            told(&updates(), name, &write(&path, &data)).ok();
        }
    }

    #[test]
    fn only_keys_that_can_be_asked_for_are_told(name in any::<String>()) {
        let json = serde_json::Value::from(name.as_str()).to_string();
        if let Ok(Told::Changed(changed)) = told(&updates(), "put", &write("/profiles/0", &json)) {
            prop_assert_eq!(&changed, &[(stream("users"), Key::from(name.as_str()))]);
            prop_assert!(super::super::user::is_name(&super::super::user::name(&changed[0].1)));
        }
    }
}
