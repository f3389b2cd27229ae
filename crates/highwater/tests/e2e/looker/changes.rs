//! An instance that changes: between runs, and while its pages are read.

use super::{
    desk::{Desk, FAST},
    mirror::{assert_instance, assert_types, rows},
};
use crate::support::Sim;

fn key(kind: &str, id: &str) -> (String, String) {
    (kind.to_owned(), id.to_owned())
}

#[test]
fn what_changed_is_a_version_and_what_went_is_marked() {
    let desk = Desk::new(Sim::looker(60, "none"), FAST);
    desk.sync().exits(0);
    let database = desk.database();
    let folder: String = database.one("SELECT folder_id FROM looker_content WHERE content_type = 'looks' LIMIT 1");
    let theme: String =
        database.one("SELECT content_id FROM looker_content WHERE content_type = 'themes' ORDER BY content_id DESC");
    assert!(!folder.is_empty());
    desk.sim.act("edit?type=dashboards&id=7");
    desk.sim.act("delete?type=dashboards&id=8");
    desk.sim.act("purge?type=dashboards&id=9");
    desk.sim.act(&format!("purge?type=themes&id={theme}"));
    desk.sim.act("insert?type=looks&count=2");
    desk.sync().exits(0);
    assert_instance(&desk.database(), &desk.sim, &[]);
    let rows = rows(&desk.database());
    for (kind, id) in [("dashboards", "8"), ("dashboards", "9"), ("themes", theme.as_str())] {
        assert!(rows[&key(kind, id)].1, "{kind} {id}");
    }
    let versions = "SELECT content_id FROM looker_content_versions WHERE content_type = 'dashboards' ORDER BY 1";
    assert_eq!(desk.database().all::<String>(versions), ["7", "8"]);
    desk.sim.act("restore?type=dashboards&id=8");
    desk.sync().exits(0);
    assert_instance(&desk.database(), &desk.sim, &[]);
}

#[test]
fn content_that_is_edited_while_it_is_paged_is_mirrored_when_it_rests() {
    let plan = "[mutations]\nevery_requests = 3\nmost = 60\ntypes = [\"dashboards\", \"looks\", \"folders\"]\n";
    let types = "types = ['dashboards', 'looks', 'folders']\n";
    let desk = Desk::new(Sim::looker_planned(400, plan), &format!("{types}{FAST}job = 20\n"));
    desk.sync().exits(0);
    let truth = desk.sim.looker_truth();
    let rows = rows(&desk.database());
    for kind in ["dashboards", "looks"] {
        let lost = truth["types"][kind].as_object().unwrap().keys().filter(|id| !rows.contains_key(&key(kind, id)));
        // Only what came after its type was listed for the second time may be missing.
        assert!(lost.clone().count() < 20, "{kind}: {:?}", lost.collect::<Vec<_>>());
    }
    desk.sync().exits(0);
    desk.sync().exits(0);
    let are_meant = |kind: &str| ["dashboards", "looks", "folders"].contains(&kind);
    assert_types(&desk.database(), &desk.sim, &[], are_meant);
}

#[test]
fn a_row_deleted_between_two_pages_costs_no_other() {
    let plan = "[mutations]\nevery_requests = 6\nedit = 0\ninsert = 0\ntrash = 1\npurge = 1\nmost = 10\ntypes = [\"dashboards\"]\n";
    let desk =
        Desk::new(Sim::looker_planned(300, plan), &format!("types = ['dashboards']\n{FAST}in_flight = 1\njob = 20\n"));
    desk.sync().exits(0);
    let truth = desk.sim.looker_truth();
    let rows = rows(&desk.database());
    for id in truth["types"]["dashboards"].as_object().unwrap().keys() {
        assert!(rows.contains_key(&key("dashboards", id)), "dashboard {id} is lost");
    }
    assert!(desk.sim.stats()["mutations"].as_object().is_some_and(|mutations| !mutations.is_empty()));
}
