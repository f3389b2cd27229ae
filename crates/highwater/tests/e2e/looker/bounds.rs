//! Calls are counted, foretold and bounded.

use super::{
    desk::{Desk, FAST},
    mirror::assert_instance,
};
use crate::support::Sim;

#[test]
fn a_run_stops_before_it_makes_a_call_too_many_and_goes_on_the_next_time() {
    let desk = Desk::new(Sim::looker(120, "none"), &format!("max_calls = 150\n{FAST}job = 20\n"));
    let mut runs = 0;
    loop {
        let before = desk.calls();
        let done = desk.sync();
        runs += 1;
        let spent = desk.calls() - before;
        assert!(spent <= 150, "{spent} calls");
        match done.status.code() {
            Some(0) => break,
            Some(3) => assert!(runs < 40, "no end: {}", done.out),
            _ => drop(done.exits(3)),
        }
    }
    assert!(runs > 1);
    assert_instance(&desk.database(), &desk.sim, &[]);
}

#[test]
fn a_month_has_its_bound_over_runs() {
    let desk =
        Desk::new(Sim::looker(40, "none"), &format!("types = ['folders', 'users']\nmax_calls_month = 10\n{FAST}"));
    desk.sync().exits(0);
    let first = desk.calls();
    while desk.sync().status.code() == Some(0) {}
    assert_eq!(desk.calls(), 10);
    assert!(first < 10);
    let why = desk.home.run(&["sync", "bi"]).exits(3).out;
    assert!(why.contains("max_calls_month"), "{why}");
    assert_eq!(desk.calls(), 10);
}

#[test]
fn what_only_looks_counts_for_the_month_as_well() {
    let keys = format!("types = ['folders', 'users']\nmax_calls_month = 20\n{FAST}");
    let desk = Desk::new(Sim::looker(40, "none"), &keys);
    desk.sync().exits(0);
    let looks = [["sync", "bi", "--plan"].as_slice(), &["verify", "bi"]];
    for look in looks.iter().cycle().take(20) {
        let done = desk.home.run(look);
        if done.status.code() != Some(0) {
            done.exits(3).complains(&["max_calls_month"]);
        }
    }
    assert_eq!(desk.calls(), 20);
    assert_eq!(desk.sim.stats()["tokens_live"], 0, "signed off");
}

#[test]
fn a_plan_is_what_a_sync_takes_and_makes_only_the_lists() {
    let types = "types = ['dashboards', 'folders', 'looks', 'users', 'scheduled_plans', 'groups']\n";
    let desk = Desk::new(Sim::looker(250, "none"), &format!("{types}{FAST}"));
    let plan = desk.home.run(&["sync", "bi", "--plan", "--json"]).exits(0).json();
    let plan = &plan["plan"][0];
    let lists = desk.calls();
    assert_eq!(plan["calls_made"].as_u64(), Some(lists));
    assert_eq!(desk.asked("/dashboards/:dashboard_id") + desk.asked("/looks/:look_id"), 0);
    assert!(desk.home.run(&["sync", "bi", "--plan"]).exits(0).out.contains("calls for"));
    let before = desk.calls();
    desk.sync().exits(0);
    let (took, said) = (desk.calls() - before, plan["total"].as_u64().unwrap());
    assert!(took.abs_diff(said) * 10 <= said, "{said} calls were foretold, {took} were made");
    assert_eq!(plan["calls"]["query"].as_u64(), Some(2), "schedules are listed twice");
}
