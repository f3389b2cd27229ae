//! `kill -9` while pages are read: finished ones are not asked for again.

use std::time::Duration;

use super::{
    desk::{Desk, FAST},
    mirror::{assert_instance, assert_types},
};
use crate::support::{Sim, until};

#[test]
fn finished_pages_are_not_fetched_again_after_a_kill() {
    let sim = Sim::looker_planned(1_000, "[latency]\nfixed_ms = 30\n");
    let desk = Desk::new(sim, &format!("types = ['dashboards']\n{FAST}in_flight = 2\njob = 20\n"));
    let pages = |desk: &Desk| desk.asked("/dashboards/search");
    for enough in [20, 35] {
        let mut running = desk.start();
        until("pages", Duration::from_secs(60), || (pages(&desk) >= enough || running.has_ended()).then_some(()));
        assert!(!running.has_ended(), "the kill came too late: {}", running.err());
        running.kill();
    }
    desk.sync().exits(0);
    let all = desk.sim.looker_truth()["types"]["dashboards"].as_object().unwrap().len() as i64;
    assert_eq!(desk.database().one::<i64>("SELECT count(*) FROM looker_content"), all);
    // 50 pages and those of the trash; each start lists the trash and looks at the order of ids, and what was in
    // flight or in no commit when it was killed is fetched again.
    let asked = pages(&desk);
    println!("{asked} pages of 1,000 dashboards after 2 kills");
    assert!(asked <= 90, "{asked} pages");
    assert!(desk.asked("/dashboards/:dashboard_id") <= 20);
}

#[test]
fn a_whole_instance_survives_kills() {
    let desk = Desk::new(Sim::looker_planned(150, "[latency]\nfixed_ms = 10\n"), &format!("{FAST}job = 10\n"));
    for enough in [30, 90, 150, 220] {
        let mut running = desk.start();
        until("calls", Duration::from_secs(60), || (desk.calls() >= enough || running.has_ended()).then_some(()));
        running.kill();
    }
    desk.sync().exits(0);
    assert_instance(&desk.database(), &desk.sim, &[]);
    desk.home.run(&["ledger", "bi", "--verify", "--quiet"]).exits(0);
}

#[test]
fn what_names_queries_is_not_read_again_after_a_kill() {
    let types = "types = ['dashboards', 'lookml_dashboards', 'looks', 'scheduled_plans', 'merge_queries', 'queries']\n";
    let sim = Sim::looker_planned(300, "[latency]\nfixed_ms = 20\n");
    let desk = Desk::new(sim, &format!("{types}{FAST}in_flight = 2\njob = 10\n"));
    let mut running = desk.start();
    let queries = |desk: &Desk| desk.asked("/queries/:query_id");
    until("queries", Duration::from_secs(60), || (queries(&desk) >= 5 || running.has_ended()).then_some(()));
    assert!(!running.has_ended(), "the kill came too late: {}", running.err());
    running.kill();
    let others = |desk: &Desk| {
        let stats = desk.sim.stats();
        let asked = stats["by_path"].as_object().unwrap().iter();
        let others = asked.filter(|(path, _)| path.starts_with("GET") && !path.starts_with("GET /queries/"));
        others.map(|(_, count)| count.as_u64().unwrap()).sum::<u64>()
    };
    let before = others(&desk);
    desk.sync().exits(0);
    assert_eq!(others(&desk), before, "only queries are left to be asked for");
    assert_types(&desk.database(), &desk.sim, &[], |kind| types.contains(&format!("'{kind}'")));
}
