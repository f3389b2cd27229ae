//! Everything that goes wrong at the other end, and how each ends.

use super::{
    desk::{Desk, FAST},
    mirror::{assert_instance, assert_types},
};
use crate::support::Sim;

fn desk(plan: &str) -> Desk {
    Desk::new(Sim::looker_planned(150, plan), &format!("{FAST}attempts = 3\njob = 20\n"))
}

#[test]
fn pages_and_lists_that_fail_once_cost_nothing() {
    for fault in ["500", "502", "504", "html", "cut-json", "truncated", "429", "429-retry-after"] {
        let desk = desk(&format!(
            "[[script]]\npath = \"/dashboards/search\"\nreplies = [\"{fault}\"]\n\
             [[script]]\npath = \"/dashboards\"\nreplies = [\"{fault}\"]\n"
        ));
        desk.configure("sqlite:highwater.db", &format!("types = ['dashboards']\n{FAST}"));
        desk.sync().exits(0);
        let all = desk.sim.looker_truth()["types"]["dashboards"].as_object().unwrap().len() as i64;
        assert_eq!(desk.database().one::<i64>("SELECT count(*) FROM looker_content"), all, "{fault}");
    }
}

#[test]
fn an_object_that_never_answers_is_one_dead_letter_and_costs_no_other() {
    let desk = desk("[[script]]\ntype = \"dashboards\"\nids = [\"17\"]\nthen = \"500\"\nin_lists = true\n");
    desk.sync().exits(3);
    // What it refers to cannot be known.
    assert_types(&desk.database(), &desk.sim, &[("dashboards", "17")], |kind| !kind.ends_with("queries"));
    let letters = desk.home.run(&["dead-letters", "list", "bi", "--json"]).exits(0).json();
    let letters = letters["dead_letters"].as_array().unwrap().clone();
    assert_eq!(letters.len(), 1);
    assert_eq!(
        (&letters[0]["stream"], &letters[0]["key"], &letters[0]["reason"]),
        (&"dashboards".into(), &"17".into(), &"server".into())
    );
    assert_eq!(desk.stream("dashboards")["complete"], false);
    assert_eq!(desk.stream("looks")["complete"], true);
    desk.home.run(&["dead-letters", "replay", "bi", "--quiet"]).exits(0);
    desk.sync().exits(3);
}

#[test]
fn a_page_that_always_fails_is_taken_apart() {
    let desk = desk("[[script]]\npath = \"/dashboards/search\"\noffset = 39\nthen = \"500\"\n");
    desk.sync().exits(0);
    assert_instance(&desk.database(), &desk.sim, &[]);
}

#[test]
fn a_storm_is_weathered() {
    let desk = Desk::new(Sim::looker(150, "storm"), &format!("{FAST}job = 20\n"));
    desk.sync().exits(0);
    desk.sync().exits(0);
    assert_eq!(desk.sim.stats()["requests_in_closed_period"], 0);
}

#[test]
fn tokens_that_end_in_mid_run_are_renewed_by_one() {
    let desk = desk("[login]\nrevoke_every = 15\n[latency]\nfixed_ms = 5\n");
    desk.sync().exits(0);
    assert_instance(&desk.database(), &desk.sim, &[]);
    let stats = desk.sim.stats();
    let (logins, calls) = (stats["logins"].as_u64().unwrap(), desk.calls());
    assert!(logins > 2 && logins <= calls / 10 + 2, "{logins} logins for {calls} calls");
}

#[test]
fn what_may_not_be_seen_is_named_and_never_taken_for_deleted() {
    let desk = desk("");
    desk.sync().exits(0);
    desk.sim.act("forbid?type=boards");
    desk.sim.act("forbid?type=themes&status=404");
    desk.sim.act("hide?type=roles&id=1");
    let done = desk.home.run(&["sync", "bi"]).exits(3);
    assert!(done.out.contains("bi/boards") && done.out.contains("incomplete"), "{}", done.out);
    let deleted = "SELECT count(*) FROM looker_content WHERE content_type IN ('boards', 'themes') AND deleted_at >
        (SELECT min(started_at) FROM ingest_runs)";
    assert_eq!(desk.database().one::<i64>(deleted), 0);
    for kind in ["boards", "themes"] {
        let stream = desk.stream(kind);
        assert_eq!((&stream["forbidden"], &stream["complete"]), (&1.into(), &false.into()), "{kind}");
    }
    let shown = desk.home.run(&["status", "bi"]).exits(0).out;
    assert!(shown.lines().any(|line| line.starts_with("bi/boards") && line.contains("forbidden")), "{shown}");
    desk.sim.act("allow?type=boards");
    desk.sim.act("allow?type=themes");
    desk.sim.act("show?type=roles&id=1");
    desk.sync().exits(0);
    assert_instance(&desk.database(), &desk.sim, &[]);
}

#[test]
fn an_object_that_is_listed_and_may_not_be_seen_is_named() {
    let desk = desk("[[script]]\ntype = \"explores\"\nshare = 0.3\nthen = \"404\"\n");
    desk.sync().exits(3);
    let reasons = "SELECT DISTINCT reason FROM ingest_exceptions WHERE stream = 'explores'";
    assert_eq!(desk.database().all::<String>(reasons), ["forbidden"]);
}
