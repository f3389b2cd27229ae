//! One broken key cannot stop the rest: a key whose handling panics, and one whose answer never comes.

use std::{future::pending, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use highwater_core::Failure;
use highwater_engine::{Ending, EngineError};
use highwater_sources::{Request, Response, Transport};

use crate::{
    oracle,
    run::{LifeEnd, Stage},
    scenario::Scenario,
};

/// The end of the paths that do harm.
const POISON: &str = "/item/42.json";
const ALL: &str = ".json";
const LIFE: Duration = Duration::from_secs(24 * 3600);

#[derive(Clone, Copy)]
enum Harm {
    Panic,
    Silence,
}

struct Poisoned {
    inner: Arc<dyn Transport>,
    paths: &'static str,
    harm: Harm,
}

impl Transport for Poisoned {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Failure>> {
        let is_item = request.path.contains("/item/");
        match (is_item && request.path.ends_with(self.paths), self.harm) {
            (false, _) => self.inner.send(request),
            (true, Harm::Panic) => panic!("on purpose"),
            (true, Harm::Silence) => Box::pin(pending()),
        }
    }
}

/// Every key but the poisonous one is stored, and that one is a dead letter that says why.
fn isolate(harm: Harm, reason: &str) {
    let mut stage = Stage::new(&Scenario::small());
    let poison = |inner| Arc::new(Poisoned { inner, paths: POISON, harm }) as Arc<dyn Transport>;
    let LifeEnd::Ended(result) = stage.live(LIFE, &|store| store, &poison) else { panic!("the run does not end") };
    let report = result.unwrap().remove(0);
    assert!(matches!(report.ending, Ending::Incomplete(_)), "{:?}", report.ending);
    assert_eq!(oracle::dead_letters(&stage.database()), [("42".to_owned(), reason.to_owned())]);
    oracle::check_frontier(&stage.database());
    assert_eq!(report.status.stored, 118, "120 items without the missing one and the poisonous one");
}

#[test]
fn a_key_that_makes_workers_panic_is_isolated() {
    isolate(Harm::Panic, "internal");
}

#[test]
fn a_key_that_stalls_is_isolated() {
    isolate(Harm::Silence, "timeout");
}

/// Nothing works any more: that is told, and not taken for the fault of a thousand keys.
#[test]
fn workers_that_all_panic_end_the_run() {
    let mut stage = Stage::new(&Scenario { items: 700, ..Scenario::small() });
    let poison = |inner| Arc::new(Poisoned { inner, paths: ALL, harm: Harm::Panic }) as Arc<dyn Transport>;
    let LifeEnd::Ended(result) = stage.live(LIFE, &|store| store, &poison) else { panic!("the run does not end") };
    assert!(matches!(result, Err(EngineError::WorkersDie { .. })), "{result:?}");
    oracle::check_frontier(&stage.database());
    stage.finish();
}
