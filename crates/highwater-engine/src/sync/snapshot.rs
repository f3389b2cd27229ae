//! Catching up with a remote that is mirrored as a whole: all its streams are seen as they are at one time, or later. A
//! round that an earlier run began and did not end is gone on with; otherwise everything is looked at anew.

use std::time::Duration;

use highwater_core::{Event, Position, Purpose, SegmentStatus, Span, Timestamp};
use highwater_sources::Density;
use highwater_store::{Plan, StreamRow};

use super::{Run, Worked};
use crate::{
    Engine,
    dispatcher::{Dispatcher, DrainEnd, Scope},
    error::Result,
};

/// What an interrupted round has found is good enough for so long; after that a new one is begun.
const GOOD_FOR: i64 = 3600;
/// Two rounds in the same second are told apart by waiting for the next.
const WAIT_MAX: i64 = 2;

/// The time as of which all streams are to be seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    at: Position,
    /// When this run began it, to the millisecond; none if another did.
    began: Option<Timestamp>,
}

impl Round {
    pub(super) async fn of(engine: &Engine) -> Result<Round> {
        let specs = engine.source.streams().iter().filter(|spec| matches!(spec.density, Density::Snapshot(_)));
        let ours: Vec<_> = specs.map(|spec| engine.stream_id(spec)).collect();
        if ours.is_empty() {
            return Ok(Round { at: Position(0), began: None });
        }
        let rows = engine.steady(|| engine.store.streams()).await?;
        let rows: Vec<_> = rows.into_iter().filter(|row| !row.span.is_empty() && ours.contains(&row.id)).collect();
        match rows.iter().map(|row| row.span.end().0).max() {
            Some(newest) if newest + GOOD_FOR > seconds(engine) && is_interrupted(engine, &rows, newest).await? => {
                Ok(Round { at: Position(newest), began: None })
            }
            newest => Ok(Round::begun(engine, newest.unwrap_or(0)).await),
        }
    }

    async fn begun(engine: &Engine, newest: i64) -> Round {
        let next = seconds(engine).max(newest + 1);
        if (1..=WAIT_MAX).contains(&(next - seconds(engine))) {
            let left = next.saturating_mul(1000) - engine.now().as_millis();
            engine.world.clock.sleep(Duration::from_millis(u64::try_from(left).unwrap_or(0))).await;
        }
        Round { at: Position(next), began: Some(engine.now()) }
    }
}

/// Whether somebody has begun a round and not come to its end, or is at it.
async fn is_interrupted(engine: &Engine, rows: &[StreamRow], newest: i64) -> Result<bool> {
    for row in rows {
        let counts = engine.steady(|| engine.store.counts(&row.id)).await?;
        let open = counts.segments_in(SegmentStatus::Pending) + counts.segments_in(SegmentStatus::InProgress);
        if open > 0 || row.span.end().0 < newest {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) async fn work(run: &Run<'_>, dispatcher: &mut Dispatcher) -> Result<Worked> {
    let row = run.open().await?;
    run.stream.cut_by(u64::MAX >> 1);
    if let Some(began) = run.round.began {
        run.stream.began_round(began);
    }
    run.tell_start(&row, run.round.at).await?;
    let end = dispatcher.drain(Scope::AtHand).await?;
    if end != DrainEnd::Done {
        return Ok(Worked { end, batch: dispatcher.totals, newest: None });
    }
    if row.span.is_empty() || row.span.end() < run.round.at {
        plan(run, row.span).await?;
        run.tell_start(&run.open().await?, run.round.at).await?;
    }
    let end = dispatcher.drain(Scope::Patient).await?;
    Ok(Worked { end, batch: dispatcher.totals, newest: None })
}

/// One segment, whatever its length.
async fn plan(run: &Run<'_>, present: Span) -> Result<()> {
    let engine = run.engine;
    let start = if present.is_empty() { run.round.at.minus(1) } else { present.end() };
    let span = Span::new(start, run.round.at);
    let plan =
        Plan { stream: &run.stream.id, purpose: Purpose::Catchup, span, segment_size: run.stream.segment_size() };
    engine.steady(|| engine.store.plan(plan.clone())).await?;
    engine.emit(Event::Planned { stream: run.stream.id.clone(), span, segments: 1 });
    Ok(())
}

fn seconds(engine: &Engine) -> i64 {
    engine.now().as_millis().div_euclid(1000)
}
