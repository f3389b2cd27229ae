//! The suite on PostgreSQL, each case in a schema of its own, and what only a server can show.

#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

#[path = "postgres/crowd.rs"]
mod crowd;
#[path = "postgres/doors.rs"]
mod doors;
#[path = "postgres/ground.rs"]
mod ground;
#[path = "postgres/mail.rs"]
mod mail;
#[path = "postgres/search.rs"]
mod search;
#[path = "postgres/wear.rs"]
mod wear;

use futures_util::future::BoxFuture;
use highwater_core::planted::{Bug, with_planted};
use highwater_store::{
    Execution,
    suite::{Lab, frontier, leases, rows},
};

use ground::Ground;

type Case = fn(Lab) -> BoxFuture<'static, ()>;

fn run(case: Case) {
    run_with(Execution::Blocking, case);
}

fn run_with(execution: Execution, case: Case) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut ground = Ground::new().await;
        ground.execution = execution;
        case(ground.lab().await).await;
        ground.leave().await;
    });
}

highwater_store::store_suite!(run);

/// A suite that finds nothing proves nothing: it must find each of the bugs a store can have.
#[test]
fn planted_bugs_are_found() {
    let found = |bug, case: Case| {
        let played = || with_planted(Some(bug), || run_with(Execution::Inline, case));
        assert!(std::panic::catch_unwind(played).is_err(), "{bug:?} went unnoticed");
    };
    found(Bug::FenceSkipped, |lab| Box::pin(leases::a_late_commit_is_fenced_off(lab)));
    found(Bug::TwoWorkersOneLease, |lab| Box::pin(leases::a_silent_segment_is_taken_over_after_its_ttl(lab)));
    found(Bug::FrontierOverGap, |lab| Box::pin(frontier::the_frontier_crosses_only_a_gap_free_prefix(lab)));
    found(Bug::KidsNotReplaced, |lab| Box::pin(rows::edges_that_are_gone_are_gone(lab)));
    found(Bug::StateBeforeData, |lab| Box::pin(rows::a_commit_broken_off_is_whole_or_absent(lab)));
}
