//! Catching up with a remote that keeps a record of its changes: the record is followed from before the first listing
//! on, also while the rest is fetched, and everything is compared once when that is done.

use highwater_core::BatchCounts;
use highwater_sources::Changes;
use highwater_store::LedgerEntry;
use serde_json::json;

use super::{Force, Run, SyncRequest, Worked};
use crate::{
    dispatcher::{Dispatcher, DrainEnd, Scope},
    error::Result,
    follow::{Follower, Why},
};

/// Rounds in which a mailbox may change faster than it is mirrored; what is left is told the next time.
const ROUNDS: u32 = 5;

/// Leaves with the reason if a step could not be done.
macro_rules! step {
    ($dispatcher:expr, $step:expr) => {
        match $step {
            Ok(done) => done,
            Err(end) => return Ok(Worked { end, batch: $dispatcher.totals, newest: None }),
        }
    };
}

pub(super) async fn work(
    run: &Run<'_>,
    changes: &dyn Changes,
    dispatcher: &mut Dispatcher,
    request: &SyncRequest,
) -> Result<Worked> {
    let follower = Follower { engine: run.engine, stream: &run.stream, changes };
    let kind = if run.open().await?.span.is_empty() { "full" } else { "incremental" };
    note(run, "SYNC_STARTED", json!({ "type": kind })).await?;
    let worked = catch_up(run, &follower, dispatcher, request).await?;
    if request.force == Force::Refetch {
        let (engine, stream) = (run.engine, &run.stream);
        engine.steady(|| engine.store.recount(&stream.id, stream.spec.table)).await?;
    }
    let BatchCounts { new, changed, missing, excluded, dead, .. } = worked.batch;
    let outcome = if worked.end == DrainEnd::Done { "done" } else { "stopped" };
    let counts = json!({ "type": kind, "outcome": outcome, "new": new, "changed": changed, "missing": missing,
        "excluded": excluded, "dead_letters": dead });
    note(run, "SYNC_COMPLETED", counts).await?;
    Ok(worked)
}

async fn note(run: &Run<'_>, event_type: &'static str, payload: serde_json::Value) -> Result<()> {
    let stream = &run.stream.id;
    let entry = LedgerEntry {
        at: run.engine.now(),
        event_type,
        source: stream.source.clone(),
        entity_type: "stream",
        entity_id: stream.stream.to_string(),
        payload,
        actor: "highwater sync".into(),
    };
    Ok(run.engine.steady(|| run.engine.store.append_ledger(&entry)).await?)
}

async fn catch_up(
    run: &Run<'_>,
    follower: &Follower<'_>,
    dispatcher: &mut Dispatcher,
    request: &SyncRequest,
) -> Result<Worked> {
    step!(dispatcher, follower.pin().await?);
    let mut told = follower.reconsider().await?;
    told += step!(dispatcher, follower.news().await?);
    let range = step!(dispatcher, run.locate(request.range).await?);
    let head = step!(dispatcher, follower.plan(&range).await?);
    run.tell_start(&run.open().await?, head).await?;
    let mut forced = request.force == Force::Refetch;
    let mut end = DrainEnd::Done;
    for _ in 0..ROUNDS {
        let before = dispatcher.totals;
        end = drain(follower, dispatcher).await?;
        if end != DrainEnd::Done {
            break;
        }
        let is_quiet = told == 0 && dispatcher.totals == before;
        told = 0;
        if forced {
            told += step!(dispatcher, follower.compare(Why::Forced).await?);
        } else if follower.followed().await?.reconciled_at.is_none() {
            told += step!(dispatcher, follower.compare(Why::Complete).await?);
        } else if is_quiet {
            break;
        }
        forced = false;
        told += step!(dispatcher, follower.news().await?);
        if told == 0 {
            break;
        }
    }
    Ok(Worked { end, batch: dispatcher.totals, newest: None })
}

/// Works, and follows the record meanwhile.
async fn drain(follower: &Follower<'_>, dispatcher: &mut Dispatcher) -> Result<DrainEnd> {
    let (clock, tell) = (follower.engine.world.clock.clone(), dispatcher.news());
    let following = async {
        loop {
            clock.sleep(follower.engine.settings.follow_every).await;
            match follower.news().await {
                Ok(Ok(0)) => {}
                Ok(Ok(_)) => tell.notify_one(),
                // Why it ends is seen by the work itself; what was not told now is told the next time.
                Ok(Err(_)) => {}
                Err(error) => return error,
            }
        }
    };
    tokio::select! {
        biased;
        end = dispatcher.drain(Scope::Patient) => end,
        error = following => Err(error),
    }
}
