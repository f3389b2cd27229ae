//! Servers in trouble: with some of what they are asked for, or with everything.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU32, Ordering},
};

use super::{
    Strange, ids,
    world::{World, lookml_dashboards, named},
};
use crate::support::Reply;

#[test]
fn a_dashboard_that_spoils_every_page_is_asked_for_by_itself() {
    let desk = Strange::new(World::default().with_dashboards(150), "types = ['dashboards']\n");
    desk.spoil_pages("false", "5");
    desk.sync().exits(0);
    assert_eq!(desk.live("dashboards"), ids(1..=150));
}

#[test]
fn trash_that_spoils_its_pages_costs_nothing_else() {
    let mut world = World::default().with_dashboards(20);
    for id in ids(15..=19) {
        world.trash("dashboards", &id);
    }
    let desk = Strange::new(world, "types = ['dashboards']\n");
    desk.spoil_pages("true", "18");
    desk.sync().exits(3);
    assert_eq!(desk.live("dashboards"), ids((1..=14).chain([20])));
    assert!(desk.deleted("dashboards").is_superset(&ids([15, 16, 17, 19])), "{:?}", desk.deleted("dashboards"));
}

#[test]
fn dashboards_of_lookml_can_be_had_without_their_pages() {
    let world = World::default().with("lookml_dashboards", lookml_dashboards(3));
    let desk = Strange::new(world, "types = ['lookml_dashboards']\n");
    desk.refuse(&["dashboards/lookml/search"], 500);
    desk.sync().exits(0);
    let all: BTreeSet<_> = ["m::d1", "m::d2", "m::d3"].map(str::to_owned).into();
    assert_eq!(desk.live("lookml_dashboards"), all);
}

#[test]
fn a_login_that_is_throttled_is_waited_for() {
    let desk = Strange::new(World::default().with("themes", named(3)), "types = ['themes']\n");
    let tries = AtomicU32::new(0);
    desk.stage.rule(move |ask, _| {
        let is_throttled = ask.path == "login" && tries.fetch_add(1, Ordering::Relaxed) < 4;
        is_throttled.then(|| Reply::status(429))
    });
    desk.sync().exits(0);
    assert_eq!(desk.live("themes"), ids(1..=3));
    assert!(desk.reasons("themes").is_empty());
}

#[test]
fn a_login_that_is_to_wait_for_longer_than_patience_ends_the_run() {
    let desk = Strange::new(World::default().with("themes", named(3)), "types = ['themes']\n");
    desk.stage.rule(|ask, _| {
        let reply = || Reply { headers: "Retry-After: 3600\r\n", ..Reply::status(429) };
        (ask.path == "login").then(reply)
    });
    let done = desk.sync().exits(3);
    assert_eq!(desk.stage.times("login"), 1, "{}", done.err);
    assert!(desk.reasons("themes").is_empty(), "nothing is wrong with the themes");
    desk.stage.rule(|_, _| None);
    desk.sync().exits(3);
    assert_eq!(desk.stage.times("login"), 1, "another run does not ask before that time either");
}

#[test]
fn a_server_that_is_down_is_not_asked_for_one_type_after_the_other() {
    let desk = Strange::new(World::granted().with_looks(5).with("themes", named(3)), "");
    desk.sync().exits(0);
    let before = desk.calls();
    desk.stage.rule(|ask, _| (ask.path != "login").then(|| Reply::status(502)));
    let done = desk.sync();
    assert_ne!(done.status.code(), Some(0), "{}", done.out);
    let spent = desk.calls() - before;
    assert!(spent < 100, "{spent} requests to a server that is down");
    let deleted = "SELECT count(*) FROM looker_content WHERE deleted_at IS NOT NULL";
    assert_eq!(desk.database().one::<i64>(deleted), 0);
}
