//! Every object of every type, asked for alone.

use serde_json::json;

use super::{Bench, still};

#[test]
fn every_object_can_be_had_alone_and_is_the_truth() {
    let bench = Bench::new(40, "");
    let truth = bench.sim.truth(bench.now);
    for (kind, objects) in truth["types"].as_object().unwrap() {
        assert!(!objects.as_object().unwrap().is_empty(), "there are {kind}");
        for (id, entry) in objects.as_object().unwrap() {
            let path = match kind.as_str() {
                "content_access" => continue,
                "lookml_dashboards" => format!("/dashboards/{}", id.replace(':', "%3A")),
                "explores" => format!("/lookml_models/{}", id.replace("::", "/explores/")),
                kind => format!("/{kind}/{id}"),
            };
            let mut body = bench.get(&path);
            if kind == "folders" {
                let members = body.as_object_mut().unwrap();
                assert!(members.remove("looks").is_some() && members.remove("dashboards").is_some());
            }
            assert_eq!(still(body), still(entry["body"].clone()), "{path}");
        }
    }
}

#[test]
fn values_move_by_themselves() {
    let bench = Bench::new(5, "");
    let (one, other) = (bench.get("/users/1"), bench.get("/users/1"));
    assert_ne!(one, other);
    assert_eq!(still(one), still(other));
}

#[test]
fn fields_pick_within_what_is_shown() {
    let bench = Bench::new(20, "[instance]\ntrash = 0");
    let body = bench.get("/dashboards/7?fields=id,dashboard_elements(id,query(model)),folder(id),nothing");
    assert_eq!(body["id"], "7");
    assert_eq!(body.as_object().unwrap().len(), 3);
    assert_eq!(body["dashboard_elements"][0].as_object().unwrap().len(), 2);
    assert!(body["dashboard_elements"][0]["query"]["model"].is_string());
    assert_eq!(bench.get("/folders/1?fields=name"), json!({ "name": "Shared" }));
}

#[test]
fn members_of_groups_and_roles_are_told_from_both_sides() {
    let bench = Bench::new(60, "");
    for (kind, of) in [("groups", "group_ids"), ("roles", "role_ids")] {
        for (id, entry) in bench.truth(kind) {
            let users = bench.get(&format!("/{kind}/{id}/users"));
            let users = users.as_array().unwrap();
            assert!(users.iter().all(|user| user[of].as_array().unwrap().contains(&json!(id))), "{kind} {id}");
            assert_eq!(users.len(), entry["members"]["users"].as_array().unwrap().len(), "{kind} {id}");
            let groups = bench.ids(&format!("/{kind}/{id}/groups")).len();
            assert_eq!(groups, entry["members"]["groups"].as_array().unwrap().len(), "{kind} {id}");
        }
    }
    assert!(bench.get("/groups/1/users?limit=3&offset=2&sorts=id")[0]["id"] == "3");
}

#[test]
fn elements_and_lookml_can_be_had_without_their_dashboards() {
    let bench = Bench::new(20, "[instance]\ntrash = 0");
    let elements = bench.get("/dashboards/3/dashboard_elements");
    assert_eq!(still(elements.clone()), still(bench.get("/dashboards/3")["dashboard_elements"].clone()));
    assert_eq!(still(bench.get("/dashboard_elements/search?dashboard_id=3")), still(elements));
    let id = bench.ids("/dashboards/lookml/search")[0].clone();
    assert!(bench.get(&format!("/dashboards/lookml/{id}"))["lookml"].as_str().unwrap().contains("- dashboard:"));
}
