//! The generated items: every shape is there, is valid JSON and replays.

use std::collections::{BTreeMap, HashSet};

use serde_json::value::RawValue;

use super::*;

const ITEMS: u64 = 20_000;

fn bodies(preset: Preset, seed: Seed) -> Vec<String> {
    let sim = HnSim::new(World::generated(seed, ITEMS), preset.plan());
    (1..=ITEMS).map(|id| String::from_utf8(sim.world().item(id).unwrap().to_vec()).unwrap()).collect()
}

/// Raw values, because half a surrogate pair is JSON but no Unicode text.
fn fields(body: &str) -> BTreeMap<String, Box<RawValue>> {
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

#[test]
fn every_item_is_valid_json_with_its_id_and_sorted_keys() {
    for (body, id) in bodies(Preset::Calm, Seed(1)).iter().zip(1..) {
        let fields = fields(body);
        assert_eq!(fields["id"].get(), id.to_string());
        let sorted = serde_json::to_string(&fields).unwrap();
        assert_eq!(*body, sorted, "compact, keys in order, none twice");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    assert_eq!(bodies(Preset::Calm, Seed(1)), bodies(Preset::Calm, Seed(1)));
    let (one, two) = (bodies(Preset::Calm, Seed(1)), bodies(Preset::Calm, Seed(2)));
    let same = one.iter().zip(&two).filter(|(one, two)| one == two).count();
    assert!(same < 10, "{same}");
}

#[test]
fn sizes_are_like_the_real_ones() {
    let mut sizes: Vec<usize> = bodies(Preset::None, Seed(1)).iter().map(String::len).collect();
    sizes.sort_unstable();
    let mean = sizes.iter().sum::<usize>() / sizes.len();
    let at = |percent: usize| sizes[sizes.len() * percent / 100];
    // Measured on 5,679 real items: mean 454, median 311, p95 about 1,200, p99 2,300.
    assert!((400..510).contains(&mean), "mean {mean}");
    assert!((260..360).contains(&at(50)), "median {}", at(50));
    assert!((1_000..1_500).contains(&at(95)), "p95 {}", at(95));
    assert!((1_800..2_800).contains(&at(99)), "p99 {}", at(99));
}

/// A shape by its name and how to tell it.
type Shape = (&'static str, fn(&str, &BTreeMap<String, Box<RawValue>>) -> bool);

fn is(fields: &BTreeMap<String, Box<RawValue>>, key: &str, value: &str) -> bool {
    fields.get(key).is_some_and(|found| found.get() == value)
}

const ORDINARY: [Shape; 11] = [
    ("live story", |_, f| is(f, "type", "\"story\"") && f.contains_key("title") && f.contains_key("url")),
    ("story with text", |_, f| is(f, "type", "\"story\"") && f.contains_key("text")),
    ("dead story", |_, f| {
        let gone = ["title", "url", "text", "descendants"].iter().all(|key| !f.contains_key(*key));
        is(f, "type", "\"story\"") && is(f, "dead", "true") && f.contains_key("by") && gone
    }),
    ("dead comment", |_, f| is(f, "text", "\"[dead]\"") && is(f, "dead", "true")),
    ("flagged comment", |_, f| is(f, "text", "\"[flagged]\"") && is(f, "dead", "true")),
    ("deleted story", |_, f| is(f, "deleted", "true") && is(f, "type", "\"story\"") && !f.contains_key("by")),
    ("deleted comment", |_, f| is(f, "deleted", "true") && f.contains_key("parent") && !f.contains_key("text")),
    ("dead and deleted", |_, f| is(f, "deleted", "true") && is(f, "dead", "true")),
    ("job", |_, f| is(f, "type", "\"job\"") && f.contains_key("url")),
    ("poll", |_, f| is(f, "type", "\"poll\"") && f.contains_key("parts")),
    ("poll option", |_, f| is(f, "type", "\"pollopt\"") && f.contains_key("poll")),
];

const ODD: [Shape; 14] = [
    ("id and type only", |_, f| f.len() == 2),
    ("descendants -1", |_, f| is(f, "descendants", "-1")),
    ("empty url", |_, f| is(f, "url", "\"\"")),
    ("empty text", |_, f| is(f, "text", "\"\"")),
    ("NUL in the text", |body, _| body.contains(r"\u0000")),
    ("lone surrogate", |body, _| body.contains(r"\ud83d ")),
    ("deleted as a list", |_, f| is(f, "deleted", "[true]")),
    ("dead as a list", |_, f| is(f, "dead", "[]")),
    ("no time", |_, f| !f.contains_key("time") && f.len() > 2),
    ("future time", |_, f| f.get("time").is_some_and(|time| time.get() > "1470000000")),
    ("kids as an object", |_, f| f.get("kids").is_some_and(|kids| kids.get().starts_with("{\"0\":"))),
    ("extra field", |_, f| f.contains_key("zz_rank")),
    ("nested extra field", |_, f| f.contains_key("annotations")),
    ("long url", |_, f| f.get("url").is_some_and(|url| url.get().len() == 6_598 + 2)),
];

fn count(shapes: &[Shape], preset: Preset) -> Vec<(&'static str, usize)> {
    let mut counts: Vec<_> = shapes.iter().map(|shape| (shape.0, 0)).collect();
    for body in bodies(preset, Seed(1)) {
        let fields = fields(&body);
        for (count, shape) in counts.iter_mut().zip(shapes) {
            count.1 += usize::from(shape.1(&body, &fields));
        }
    }
    counts
}

#[test]
fn ordinary_shapes_appear_under_every_plan() {
    for preset in [Preset::None, Preset::Calm] {
        let counts = count(&ORDINARY, preset);
        assert!(counts.iter().all(|(_, count)| *count > 2), "{counts:?}");
    }
}

#[test]
fn odd_shapes_appear_rarely_and_only_by_plan() {
    let none = count(&ODD, Preset::None);
    assert!(none.iter().all(|(_, count)| *count == 0), "{none:?}");
    let calm = count(&ODD, Preset::Calm);
    assert!(calm.iter().all(|(_, count)| (1..100).contains(count)), "{calm:?}");
}

#[test]
fn threads_hang_together() {
    let bodies = bodies(Preset::None, Seed(1));
    let values: Vec<Value> = bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    let mut listed = HashSet::new();
    for (value, id) in values.iter().zip(1u64..) {
        for kid in value["kids"].as_array().into_iter().flatten().filter_map(Value::as_u64) {
            assert_eq!(values[kid as usize - 1]["parent"], id);
            assert!(listed.insert(kid));
        }
    }
    let comments = values.iter().filter(|value| value["type"] == "comment").count();
    assert_eq!(listed.len(), comments, "every comment is in its parent's kids");
    assert!(values.windows(2).all(|pair| pair[0]["time"].as_u64() <= pair[1]["time"].as_u64()));
}
