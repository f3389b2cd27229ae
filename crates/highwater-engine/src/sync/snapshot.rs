//! Catching up with a remote that is mirrored as a whole: what an earlier run began is finished, or everything is looked
//! at anew.

use std::time::Duration;

use highwater_core::{Position, Purpose, SegmentStatus, Span};
use highwater_store::Plan;

use super::{Run, Worked};
use crate::{
    dispatcher::{Dispatcher, DrainEnd, Scope},
    error::Result,
};

/// What an interrupted run has found is good enough for so long; after that everything is looked at again when it is
/// finished.
const GOOD_FOR: Duration = Duration::from_secs(3600);
/// Two runs in the same second are told apart by waiting for the next.
const WAIT_MAX: i64 = 2;

pub(super) async fn work(run: &Run<'_>, dispatcher: &mut Dispatcher) -> Result<Worked> {
    let row = run.open().await?;
    run.stream.cut_by(u64::MAX >> 1);
    let interrupted = is_interrupted(run).await?;
    let now = seconds(run);
    run.tell_start(&row, Position(now)).await?;
    let end = dispatcher.drain(Scope::AtHand).await?;
    if end != DrainEnd::Done {
        return Ok(Worked { end, batch: dispatcher.totals, newest: None });
    }
    let good_for = i64::try_from(GOOD_FOR.as_secs()).unwrap_or(i64::MAX);
    if !interrupted || row.span.end().0.saturating_add(good_for) < now {
        plan(run, row.span).await?;
        run.tell_start(&run.open().await?, Position(now)).await?;
    }
    let end = dispatcher.drain(Scope::Patient).await?;
    Ok(Worked { end, batch: dispatcher.totals, newest: None })
}

/// Whether somebody has begun a snapshot and not come to its end, or is at it.
async fn is_interrupted(run: &Run<'_>) -> Result<bool> {
    let engine = run.engine;
    let counts = engine.steady(|| engine.store.counts(&run.stream.id)).await?;
    Ok(counts.segments_in(SegmentStatus::Pending) + counts.segments_in(SegmentStatus::InProgress) > 0)
}

/// One segment, which ends now.
async fn plan(run: &Run<'_>, present: Span) -> Result<()> {
    let engine = run.engine;
    let end = if present.is_empty() { seconds(run) } else { seconds(run).max(present.end().0 + 1) };
    let ahead = end - seconds(run);
    if (1..=WAIT_MAX).contains(&ahead) {
        let until = end.saturating_mul(1000) - engine.now().as_millis();
        engine.world.clock.sleep(Duration::from_millis(u64::try_from(until).unwrap_or(0))).await;
    }
    let start = if present.is_empty() { Position(end - 1) } else { present.end() };
    let span = Span::new(start, Position(end));
    let plan =
        Plan { stream: &run.stream.id, purpose: Purpose::Catchup, span, segment_size: run.stream.segment_size() };
    engine.steady(|| engine.store.plan(plan.clone())).await?;
    engine.emit(highwater_core::Event::Planned { stream: run.stream.id.clone(), span, segments: 1 });
    Ok(())
}

fn seconds(run: &Run<'_>) -> i64 {
    run.engine.now().as_millis().div_euclid(1000)
}
