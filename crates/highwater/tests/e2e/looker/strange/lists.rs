//! Lists that leave something out, are cut short, or have rows that say too little.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::{
    Strange, ids,
    world::{World, named, query},
};
use crate::support::Reply;

#[test]
fn dashboards_that_only_pages_show_are_stored() {
    let mut world = World::default().with_dashboards(12);
    world.unlisted = ids([7, 12]);
    let desk = Strange::new(world, "types = ['dashboards']\n");
    for _ in 0..2 {
        desk.sync().exits(0);
        assert_eq!(desk.live("dashboards"), ids(1..=12));
    }
}

#[test]
fn looks_that_only_their_folder_shows_are_stored() {
    let mut world = World::default().with_looks(6);
    world.unlisted = ids([3, 6]);
    let desk = Strange::new(world, "types = ['looks']\n");
    for _ in 0..2 {
        desk.sync().exits(0);
        assert_eq!(desk.live("looks"), ids(1..=6));
    }
}

#[test]
fn short_pages_with_hidden_rows_are_read_to_the_end() {
    let mut world = World::default().with_dashboards(60);
    for id in ids(1..=60) {
        world.trash("dashboards", &id);
    }
    world.limit_max = Some(10);
    // No ten rows in a row are all hidden: an empty page is the end.
    world.hidden = ids((11..=18).chain(31..=38));
    let seen = &ids(1..=60) - &world.hidden;
    let desk = Strange::new(world, "types = ['dashboards']\n");
    desk.sync().exits(0);
    assert_eq!(desk.deleted("dashboards"), seen);
    desk.verify().exits(0);
}

#[test]
fn a_list_whose_rows_never_rest_is_not_called_complete() {
    let desk = Strange::new(World::default().with("alerts", named(30)), "types = ['alerts']\n");
    let asked = AtomicUsize::new(0);
    desk.stage.rule(move |ask, _| {
        // Each look at a page moves the last alert to the front.
        let mut alerts = named(30);
        alerts.rotate_right(asked.fetch_add(usize::from(ask.path == "alerts/search"), Ordering::Relaxed) % 30);
        let page = || alerts.into_iter().skip(ask.number("offset").unwrap_or(0)).take(10).collect::<Vec<_>>();
        (ask.path == "alerts/search").then(|| Reply::ok(json!(page()).to_string()))
    });
    desk.sync().exits(3);
    assert!(!desk.is_complete("alerts"));
    assert!(desk.live("alerts").len() >= 10, "{:?}", desk.live("alerts"));
    desk.stage.rule(|_, _| None);
    desk.sync().exits(0);
    assert_eq!(desk.live("alerts"), ids(1..=30));
}

#[test]
fn a_limit_that_was_not_asked_for_hides_nothing() {
    let mut world = World::default().with("alerts", named(10)).with("users", named(10)).with("groups", named(10));
    world.limit_usual = Some(2);
    let desk = Strange::new(world, "types = ['alerts', 'users', 'groups']\n");
    desk.sync().exits(0);
    for kind in ["alerts", "users", "groups"] {
        assert_eq!(desk.live(kind), ids(1..=10), "{kind}");
    }
    let members = desk.body("groups", "1")["users"].as_array().unwrap().len();
    assert_eq!(members, 10);
}

#[test]
fn a_limit_that_is_refused_is_not_asked_for() {
    let mut world = World::default().with_dashboards(12);
    world.trash("dashboards", "3");
    let desk = Strange::new(world, "types = ['dashboards']\n");
    desk.stage.rule(|ask, _| ask.number("limit").is_some_and(|limit| limit > 500).then(|| Reply::status(422)));
    desk.sync().exits(0);
    assert_eq!(desk.live("dashboards"), &ids(1..=12) - &ids([3]));
    assert_eq!(desk.deleted("dashboards"), ids([3]));
}

#[test]
fn a_row_without_an_id_costs_no_other() {
    let mut world = World::default().with("themes", named(3));
    world.put("themes", json!({"id": null, "name": "default"}));
    let desk = Strange::new(world, "types = ['themes']\n");
    desk.sync().exits(3);
    assert_eq!(desk.live("themes"), ids(1..=3));
}

#[test]
fn a_query_that_only_a_schedule_names_is_stored() {
    for types in ["types = ['scheduled_plans', 'queries']\n", ""] {
        let mut world = World::granted().with("scheduled_plans", named(3)).with("queries", vec![query("sq1")]);
        world.object("scheduled_plans", "1")["query_id"] = "sq1".into();
        let desk = Strange::new(world, types);
        desk.sync().exits(0);
        assert!(desk.live("queries").contains("sq1"), "{types:?}");
    }
}
