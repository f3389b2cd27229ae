//! Which objects lists show, in which order, and how they are cut into pages.

use std::collections::BTreeSet;

use super::{Bench, still};

#[test]
fn pages_of_dashboards_are_whole_and_true() {
    let bench = Bench::new(250, "");
    let (truth, mut seen) = (bench.truth("dashboards"), BTreeSet::new());
    for (deleted, offset) in [false, true].into_iter().flat_map(|deleted| (0..4).map(move |page| (deleted, page * 100)))
    {
        let page = bench.get(&format!("/dashboards/search?deleted={deleted}&sorts=id&limit=100&offset={offset}"));
        for body in page.as_array().unwrap() {
            let id = body["id"].as_str().unwrap();
            let truth = &truth[id];
            assert_eq!(truth["deleted"], deleted, "{id}");
            assert_eq!(still(body.clone()), still(truth["body"].clone()), "{id}");
            assert!(seen.insert(id.to_owned()), "{id} twice");
        }
    }
    assert_eq!(seen.len(), 250);
}

#[test]
fn a_dashboard_weighs_what_the_plan_says() {
    let bench = Bench::new(100, "");
    let page = bench.get("/dashboards/search?limit=100").to_string();
    let each = page.len() / bench.true_ids("dashboards", false).len();
    assert!((3_300..3_600).contains(&each), "{each}");
}

#[test]
fn the_census_of_dashboards_is_short_and_has_those_of_lookml() {
    let bench = Bench::new(60, "");
    let all: BTreeSet<String> = bench.set("/dashboards?fields=id");
    let lookml = bench.true_ids("lookml_dashboards", false);
    assert!(!lookml.is_empty() && lookml.iter().all(|id| id.contains("::")));
    assert_eq!(all, &bench.true_ids("dashboards", false) | &lookml);
    assert_eq!(bench.set("/dashboards/lookml/search"), lookml);
    let first = &bench.get("/dashboards")[0];
    assert!(
        first["title"].is_string() && first.get("updated_at").is_none() && first.get("dashboard_elements").is_none()
    );
}

#[test]
fn without_sorts_the_order_is_another_one_each_time() {
    let bench = Bench::new(100, "");
    let (one, other) = (bench.ids("/dashboards/search"), bench.ids("/dashboards/search"));
    assert_ne!(one, other);
    assert_eq!(one.iter().collect::<BTreeSet<_>>(), other.iter().collect::<BTreeSet<_>>());
    let sorted = bench.ids("/dashboards/search?sorts=id");
    assert!(sorted.is_sorted_by_key(|id| id.parse::<u64>().unwrap()));
    let text = Bench::new(100, "[list]\nids = 'text'").ids("/dashboards/search?sorts=id");
    assert!(text.is_sorted() && text != sorted);
    let titles = bench.get("/dashboards/search?sorts=title%20desc&fields=title");
    assert!(titles.as_array().unwrap().is_sorted_by(|one, other| one["title"].as_str() >= other["title"].as_str()));
}

#[test]
fn searches_filter() {
    let bench = Bench::new(80, "");
    let some = bench.get("/looks/search?sorts=id&limit=1")[0].clone();
    let (id, folder) = (some["id"].as_str().unwrap(), some["folder_id"].as_str().unwrap());
    assert_eq!(bench.ids(&format!("/looks/search?id={id}")), [id]);
    let in_folder = bench.get(&format!("/looks/search?folder_id={folder}"));
    assert!(in_folder.as_array().unwrap().iter().all(|look| look["folder_id"] == folder));
    let title = some["title"].as_str().unwrap().to_lowercase();
    let word = title.split(' ').next().unwrap();
    assert!(bench.ids(&format!("/looks/search?title={word}%25")).contains(&id.to_owned()));
    assert_eq!(bench.ids("/looks/search?title=nothing&id=nothing&filter_or=true"), [""; 0]);
    assert_eq!(bench.ids("/users?ids=1,3&sorts=id"), ["1", "3"]);
}

#[test]
fn looks_have_their_queries_where_looker_shows_them() {
    let bench = Bench::new(60, "");
    let listed = bench.get("/looks/search?sorts=id&limit=1")[0].clone();
    assert!(listed["query_id"].is_string() && listed.get("query").is_none());
    let (id, folder) = (listed["id"].as_str().unwrap(), listed["folder_id"].as_str().unwrap());
    let alone = bench.get(&format!("/looks/{id}"));
    assert_eq!(alone["query"]["slug"], listed["query_id"]);
    let of_folder = bench.get(&format!("/folders/{folder}/looks"));
    let found = of_folder.as_array().unwrap().iter().find(|look| look["id"] == id).unwrap();
    assert_eq!(still(found.clone()), still(alone));
    let all: BTreeSet<String> = bench.true_ids("folders", false);
    let gathered: BTreeSet<String> =
        all.iter().flat_map(|folder| bench.ids(&format!("/folders/{folder}/looks"))).collect();
    assert_eq!(gathered, bench.true_ids("looks", false));
}

#[test]
fn own_plans_and_alerts_are_shown_unless_all_are_asked_for() {
    let bench = Bench::new(200, "");
    for (own, all, kind) in [
        ("/scheduled_plans", "/scheduled_plans?all_users=true", "scheduled_plans"),
        ("/alerts/search", "/alerts/search?all_owners=true", "alerts"),
    ] {
        assert_eq!(bench.set(all), bench.true_ids(kind, false));
        let own = bench.set(own);
        assert!(!own.is_empty() && own.len() < bench.true_ids(kind, false).len() / 2, "{kind}");
    }
}

#[test]
fn some_models_are_listed_only_on_request() {
    let bench = Bench::new(10, "");
    let names = |path: &str| -> BTreeSet<String> {
        bench.get(path).as_array().unwrap().iter().map(|model| model["name"].as_str().unwrap().to_owned()).collect()
    };
    let usual = names("/lookml_models");
    assert!(!usual.contains("system__activity") && usual.contains("empty_model"));
    assert!(!names("/lookml_models?exclude_empty=true").contains("empty_model"));
    assert_eq!(
        names("/lookml_models?include_internal=true&include_self_service=true"),
        bench.true_ids("lookml_models", false)
    );
}

#[test]
fn what_is_hidden_makes_pages_short_or_closes_the_gap() {
    for (sieve, lengths) in [("before", [3, 3]), ("after", [2, 3])] {
        let bench = Bench::new(20, &format!("[instance]\ntrash = 0\n[list]\nsieve = '{sieve}'"));
        bench.tell("hide", &super::order("dashboards", "2"));
        let page = |offset| bench.ids(&format!("/dashboards/search?sorts=id&limit=3&offset={offset}")).len();
        assert_eq!([page(0), page(3)], lengths, "{sieve}");
        assert_eq!(bench.status("/dashboards/2"), 404);
        assert_eq!(bench.truth("dashboards")["2"]["hidden"], true);
    }
}

#[test]
fn metadata_and_grants_are_found_from_the_roots() {
    let bench = Bench::new(60, "");
    let mut left: Vec<String> = bench
        .get("/folders")
        .as_array()
        .unwrap()
        .iter()
        .filter(|folder| folder["parent_id"].is_null())
        .map(|folder| folder["content_metadata_id"].as_str().unwrap().to_owned())
        .collect();
    let boards = bench.truth("boards");
    left.extend(boards.values().map(|board| board["body"]["content_metadata_id"].as_str().unwrap().to_owned()));
    let (mut found, mut grants) = (BTreeSet::new(), BTreeSet::new());
    while let Some(id) = left.pop() {
        let metadata = bench.get(&format!("/content_metadata/{id}"));
        if metadata["inherits"] == false {
            grants.extend(bench.ids(&format!("/content_metadata_access?content_metadata_id={id}")));
        }
        left.extend(bench.ids(&format!("/content_metadata?parent_id={id}")));
        assert!(found.insert(id));
    }
    assert_eq!(found, bench.true_ids("content_metadata", false));
    assert_eq!(grants, bench.true_ids("content_access", false));
}
