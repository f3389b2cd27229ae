//! For every n of a small run: the nth call fails, once or from then on; the next process puts everything right.

use std::{sync::Arc, time::Duration};

use highwater_engine::{Ending, EngineError};

use crate::{
    failing::{FailingStore, FailingTransport, Fuse, Lasting},
    oracle,
    run::{LifeEnd, Stage},
    scenario::Scenario,
};

const LIFE: Duration = Duration::from_secs(3600);

/// Plays the small run with each n until n lies behind its last call.
fn for_every_n(lasting: Lasting, play: impl Fn(&mut Stage, &Arc<Fuse>)) {
    for nth in 0.. {
        let fuse = Fuse::new(nth, lasting);
        let mut stage = Stage::new(&Scenario::small());
        play(&mut stage, &fuse);
        oracle::check_frontier(&stage.database());
        stage.finish();
        if !fuse.was_reached() {
            assert!(nth > 10, "the run made hardly any calls");
            return;
        }
    }
}

fn with_failing_store(stage: &mut Stage, fuse: &Arc<Fuse>) -> LifeEnd {
    let fail = |inner| Arc::new(FailingStore { inner, fuse: fuse.clone() }) as Arc<dyn highwater_store::Store>;
    stage.live(LIFE, &fail, &|transport| transport)
}

fn with_failing_remote(stage: &mut Stage, fuse: &Arc<Fuse>) -> LifeEnd {
    let fail =
        |inner| Arc::new(FailingTransport { inner, fuse: fuse.clone() }) as Arc<dyn highwater_sources::Transport>;
    stage.live(LIFE, &|store| store, &fail)
}

#[test]
fn one_failing_store_call_is_waited_out() {
    for_every_n(Lasting::Once, |stage, fuse| match with_failing_store(stage, fuse) {
        LifeEnd::Ended(Ok(reports)) => assert_eq!(reports[0].ending, Ending::Complete),
        LifeEnd::Ended(Err(error)) => panic!("{error}"),
        LifeEnd::Killed => panic!("the run does not end"),
    });
}

#[test]
fn a_store_that_stays_broken_ends_the_run_and_loses_nothing() {
    for_every_n(Lasting::FromThenOn, |stage, fuse| match with_failing_store(stage, fuse) {
        LifeEnd::Ended(Ok(_)) => assert!(!fuse.was_reached()),
        LifeEnd::Ended(Err(error)) => assert!(matches!(error, EngineError::Store(_)), "{error:?}"),
        LifeEnd::Killed => panic!("the run does not end"),
    });
}

#[test]
fn one_failing_request_is_tried_again() {
    for_every_n(Lasting::Once, |stage, fuse| match with_failing_remote(stage, fuse) {
        LifeEnd::Ended(Ok(reports)) => assert_eq!(reports[0].ending, Ending::Complete),
        LifeEnd::Ended(Err(error)) => panic!("{error}"),
        LifeEnd::Killed => panic!("the run does not end"),
    });
}

#[test]
fn a_remote_that_goes_away_buries_nothing() {
    for_every_n(Lasting::FromThenOn, |stage, fuse| {
        match with_failing_remote(stage, fuse) {
            LifeEnd::Ended(Ok(_)) | LifeEnd::Ended(Err(EngineError::Remote(_))) => {}
            LifeEnd::Ended(Err(error)) => panic!("{error}"),
            LifeEnd::Killed => panic!("the run does not end"),
        }
        let dead = oracle::in_state(&stage.database(), "dead_letter");
        assert!(dead <= 2, "{dead} keys were buried by an outage");
    });
}
