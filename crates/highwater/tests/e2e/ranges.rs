//! Which ids a sync takes on, and how many requests that costs.

use serde_json::Value as Json;

use crate::support::{Database, Home, Sim, assert_mirrors};

const LIMITS: &str = "rate = \"unlimited\"\nsegment = 100";

struct Scene {
    sim: Sim,
    home: Home,
}

impl Scene {
    fn new() -> Scene {
        let sim = Sim::start(1000, "none");
        let home = Home::new(&sim.url(), LIMITS);
        Scene { sim, home }
    }

    /// Syncs, and says how many items were asked for and what the mirror then covers, as people count.
    fn sync(&self, args: &[&str]) -> (u64, i64, i64) {
        let before = self.sim.item_requests();
        self.home.run(&[&["sync", "hn"], args].concat()).exits(0);
        let status = self.home.status();
        let number = |name: &str| status[name].as_i64().unwrap();
        assert_eq!((number("frontier"), &status["complete"]), (number("target"), &Json::Bool(true)));
        (self.sim.item_requests() - before, number("origin"), number("target") - 1)
    }
}

#[test]
fn a_range_is_inclusive_lowers_the_origin_and_ends_at_the_head() {
    let scene = Scene::new();
    assert_eq!(scene.sync(&["--from", "401", "--to", "600"]), (200, 401, 600));
    assert_mirrors(&scene.home.database(), &scene.sim, 401, 600);
    assert_eq!(scene.sync(&["--from", "401", "--to", "600"]), (0, 401, 600));
    assert_eq!(scene.sync(&["--from", "450", "--to", "500"]), (0, 401, 600));
    assert_eq!(scene.sync(&["--last", "50", "--to", "620"]), (20, 401, 620));
    assert_eq!(scene.sync(&["--from", "391", "--to", "400"]), (10, 391, 620));
    assert_eq!(scene.sync(&[]), (380, 391, 1000));
    assert_eq!(scene.sync(&["--from", "700"]), (0, 391, 1000));
    assert_eq!(scene.sync(&["--from", "0", "--to", "5000"]), (390, 1, 1000));
    assert_mirrors(&scene.home.database(), &scene.sim, 1, 1000);
    scene.home.run(&["verify", "hn"]).exits(0);
}

#[test]
fn the_last_ids_alone_are_a_whole_mirror_of_them() {
    let scene = Scene::new();
    assert_eq!(scene.sync(&["--last", "130"]), (130, 871, 1000));
    assert_eq!(scene.sync(&[]), (0, 871, 1000), "later syncs go on from there");
    assert_mirrors(&scene.home.database(), &scene.sim, 871, 1000);
}

#[test]
fn a_date_is_found_among_the_times_of_the_items() {
    let scene = Scene::new();
    scene.home.run(&["sync", "hn"]).exits(0);
    // Times of the simulator never go back, so that the first item of a moment is the lowest that is not older.
    let sql = "SELECT strftime('%Y-%m-%dT%H:%M:%SZ', time, 'unixepoch') FROM hn_items WHERE id = 700";
    let date: String = scene.home.database().one(sql);
    let fresh = Home::new(&scene.sim.url(), LIMITS);
    let before = scene.sim.item_requests();
    fresh.run(&["sync", "hn", "--since", &date]).exits(0);
    let asked = scene.sim.item_requests() - before - 301;
    assert!((1..=30).contains(&asked), "{asked} requests to find a date");
    assert_mirrors(&fresh.database(), &scene.sim, 700, 1000);

    fresh.run(&["sync", "hn", "--since", "2006-10-01"]).exits(0);
    assert_eq!(fresh.status()["origin"], 1, "a date before the first item is the beginning");
    assert_mirrors(&fresh.database(), &scene.sim, 1, 1000);
}

#[test]
fn a_range_beyond_the_newest_id_is_nothing_to_do() {
    let scene = Scene::new();
    for range in [["--from", "1001"], ["--from", "999999999"], ["--since", "2024-02-29"]] {
        let done = scene.home.run(&["sync", "hn", range[0], range[1]]).exits(0);
        assert_eq!(done.out, "hn/items: nothing to do: the range asked for is empty, the newest id is 1000\n");
    }
    assert_eq!(scene.home.run(&["status", "--json"]).exits(0).json()["sources"], Json::Array(Vec::new()));
    let outcomes = scene.home.database().all::<String>("SELECT DISTINCT outcome FROM ingest_runs");
    assert_eq!(outcomes, ["complete"]);

    assert_eq!(scene.sync(&["--from", "401", "--to", "600"]), (200, 401, 600));
    assert_eq!(scene.sync(&["--from", "1001"]), (0, 401, 600), "an empty range adds nothing");
    let done = scene.home.run(&["sync", "hn", "--from", "1001", "--json"]).exits(0).json();
    assert_eq!(done["streams"][0]["outcome"], "nothing to do");
    assert_eq!(scene.sync(&[]), (400, 401, 1000));
}

#[test]
fn force_fetches_again_and_counts_what_differed() {
    let scene = Scene::new();
    assert_eq!(scene.sync(&[]), (1000, 1, 1000));
    let fetched = "SELECT count(*) FROM hn_items WHERE last_fetched_at > first_seen_at";
    assert_eq!(scene.home.database().one::<i64>(fetched), 0);
    Database::meddle(&scene.home.path("highwater.db"), "UPDATE hn_items SET by = 'nobody' WHERE id IN (210, 220, 400)");
    let before = scene.sim.item_requests();
    let args = ["sync", "hn", "--force", "--from", "201", "--to", "300", "--json"];
    let run = scene.home.run(&args).exits(0).json()["streams"][0]["run"].clone();
    assert_eq!((&run["refetched"], &run["differed"], &run["new"]), (&100.into(), &2.into(), &0.into()));
    assert_eq!(scene.sim.item_requests() - before, 100);
    assert_eq!(scene.home.database().one::<i64>(fetched), 100, "only the range asked for is touched");
    assert_eq!(scene.home.database().all::<i64>("SELECT id FROM hn_items WHERE by = 'nobody'"), [400]);
    let versions = scene.home.database().all::<i64>("SELECT DISTINCT id FROM hn_item_versions ORDER BY id");
    assert_eq!(versions, [210, 220], "what was replaced is kept");
}
