//! What each path answers when nothing goes wrong.

use std::io::{Read, Write};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use super::*;
use crate::answer::{AcceptEncoding, ContentEncoding};

const START: Duration = Duration::ZERO;

#[test]
fn items_profiles_and_lists_agree() {
    let sim = sim(6_000, "");
    assert_eq!(good(ask(&sim, "/v0/maxitem.json", START)), "6000");
    let top = json(ask(&sim, "/v0/topstories.json", START));
    assert_eq!(top.as_array().unwrap().len(), 500);
    for id in top.as_array().unwrap() {
        let story = json(item(&sim, id.as_u64().unwrap(), START));
        assert!(story["type"] != "comment" && story["title"].is_string(), "{story}");
        let name = story["by"].as_str().unwrap();
        let user = json(ask(&sim, &format!("/v0/user/{name}.json"), START));
        assert_eq!(user["id"], name);
        assert!(user["submitted"].as_array().unwrap().contains(id));
    }
    for (list, sign) in [("ask", "Ask HN: "), ("show", "Show HN: ")] {
        let ids = json(ask(&sim, &format!("/v0/{list}stories.json"), START));
        let titles = ids.as_array().unwrap().iter().map(|id| json(item(&sim, id.as_u64().unwrap(), START)));
        assert!(titles.count() > 20 && !ids[0].is_null());
        let first = json(item(&sim, ids[0].as_u64().unwrap(), START));
        assert!(first["title"].as_str().unwrap().starts_with(sign));
    }
    let jobs = json(ask(&sim, "/v0/jobstories.json", START));
    assert_eq!(json(item(&sim, jobs[0].as_u64().unwrap(), START))["type"], "job");
}

#[test]
fn updates_name_recent_items_and_known_profiles() {
    let sim = sim(5_000, "");
    let updates = json(ask(&sim, "/v0/updates.json", START));
    let items: Vec<u64> = updates["items"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert!(items.len() > 20 && items.iter().all(|id| (3_000..=5_000).contains(id)), "{items:?}");
    for name in updates["profiles"].as_array().unwrap() {
        let user = json(ask(&sim, &format!("/v0/user/{}.json", name.as_str().unwrap()), START));
        assert_eq!(user["id"], *name);
    }
}

#[test]
fn what_does_not_exist_is_null() {
    let sim = sim(100, "");
    for path in [
        "/v0/item/0.json",
        "/v0/item/101.json",
        "/v0/item/-1.json",
        "/v0/user/nobody.json",
        "/v0/jobsstories.json",
        "/",
    ] {
        assert_eq!(good(ask(&sim, path, START)), "null", "{path}");
    }
    let Reply::Full(page) = ask(&sim, "/_sim/nothing", START) else { panic!() };
    assert_eq!(page.status, StatusCode::NOT_FOUND);
}

#[test]
fn small_worlds_answer_every_path() {
    for items in [0, 1, 2, 65] {
        let sim = sim(items, Preset::Chaos.text());
        for path in ["maxitem", "updates", "topstories", "item/1", "item/2"] {
            ask(&sim, &format!("/v0/{path}.json"), Duration::from_secs(100));
        }
    }
}

#[test]
fn pretty_and_gzip_are_the_same_item() {
    let sim = sim(1_000, "[body]\ngzip = true");
    let id = (1..).find(|id| sim.world().item(*id).unwrap().len() > 400).unwrap();
    let pretty = good(ask(&sim, &format!("/v0/item/{id}.json?print=pretty"), START));
    assert!(pretty.starts_with(b"{\n  \"by\" : \"") && pretty.ends_with(b"\n}\n"));
    let plain = json(item(&sim, id, START));
    assert_eq!(serde_json::from_slice::<Value>(&pretty).unwrap(), plain);

    let target = format!("/v0/item/{id}.json");
    let request = SimRequest::get(&target).accepting(AcceptEncoding::Gzip);
    let Reply::Full(zipped) = sim.answer(&request, START).reply else { panic!() };
    assert_eq!(zipped.headers.encoding, ContentEncoding::Gzip);
    let mut unzipped = Vec::new();
    GzDecoder::new(&zipped.body[..]).read_to_end(&mut unzipped).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&unzipped).unwrap(), plain);
}

#[test]
fn real_items_are_served_from_a_file_plain_or_gzip() {
    let lines =
        "{\"by\":\"a\",\"id\":70,\"title\":\"T\",\"type\":\"story\"}\n{\"id\":71,\"parent\":70,\"type\":\"comment\"}\n";
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(lines.as_bytes()).unwrap();
    for content in [lines.as_bytes().to_vec(), gzip.finish().unwrap()] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        let sim = HnSim::new(World::from_jsonl(Seed(1), file.path()).unwrap(), FaultPlan::default());
        assert_eq!(good(ask(&sim, "/v0/maxitem.json", START)), "71");
        assert_eq!(good(item(&sim, 71, START)), lines.lines().nth(1).unwrap());
        assert_eq!(good(item(&sim, 69, START)), "null");
        assert_eq!(json(ask(&sim, "/v0/newstories.json", START)), serde_json::json!([70]));
        assert_eq!(json(ask(&sim, "/v0/user/a.json", START))["submitted"], serde_json::json!([70]));
        assert_eq!(sim.expected(69), Expected::Missing);
    }
}

#[test]
fn maxitem_runs_ahead_of_the_bodies() {
    let sim = sim(1_000, "[head]\nlag_ids = 5\nlag_ms = 2000\nbehind = 10\nevery_ms = 1000");
    let at = Duration::from_millis;
    assert_eq!(good(ask(&sim, "/v0/maxitem.json", at(0))), "990");
    assert_eq!(good(item(&sim, 986, at(1_999))), "null");
    assert_ne!(good(item(&sim, 985, at(0))), "null");
    assert_ne!(good(item(&sim, 986, at(2_000))), "null");
    assert_eq!(good(item(&sim, 1_000, at(2_000))), "null");
    assert_ne!(good(item(&sim, 1_000, at(60_000))), "null");
    let report = sim.stats().report();
    assert_eq!([report.unpublished, report.ids_repeated], [2, 0]);
}
