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

/// After so long the end of an interrupted round is not all that is wanted: another one follows it.
const GOOD_FOR: i64 = 24 * 3600;
/// A round is one segment, whatever its length.
const SEGMENT_SIZE: u64 = u64::MAX >> 1;
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
            Some(newest) if is_interrupted(engine, &rows, newest).await? => {
                Ok(Round { at: Position(newest), began: None })
            }
            newest => Ok(Round::begun(engine, newest.unwrap_or(0)).await),
        }
    }

    /// Whether what it shows is of the past when it is done.
    pub(super) fn is_stale(self, engine: &Engine) -> bool {
        self.began.is_none() && self.at > Position(0) && self.at.0 + GOOD_FOR < seconds(engine)
    }

    /// Lays its segments in all streams, so that whoever finds some of them open knows that it is not at its end.
    pub(super) async fn lay(self, engine: &Engine) -> Result<()> {
        let specs = engine.source.streams().iter().filter(|spec| matches!(spec.density, Density::Snapshot(_)));
        for spec in specs.filter(|_| self.began.is_some()) {
            let id = engine.stream_id(spec);
            let row = engine.steady(|| engine.store.open_stream(&id, spec.axis)).await?;
            self.plan(engine, &row).await?;
        }
        Ok(())
    }

    async fn plan(self, engine: &Engine, row: &StreamRow) -> Result<()> {
        let start = if row.span.is_empty() { self.at.minus(1) } else { row.span.end() };
        if start >= self.at {
            return Ok(());
        }
        let span = Span::new(start, self.at);
        let plan =
            Plan { stream: &row.id, purpose: Purpose::Catchup, span, segment_size: SEGMENT_SIZE, bare_until: None };
        engine.steady(|| engine.store.plan(plan.clone())).await?;
        engine.emit(Event::Planned { stream: row.id.clone(), span, segments: 1 });
        Ok(())
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

/// Whether somebody has begun the newest round and not come to its end, or is at it. A stream that is behind was not
/// mirrored then.
async fn is_interrupted(engine: &Engine, rows: &[StreamRow], newest: i64) -> Result<bool> {
    for row in rows.iter().filter(|row| row.span.end().0 == newest) {
        let counts = engine.steady(|| engine.store.counts(&row.id)).await?;
        if counts.segments_in(SegmentStatus::Pending) + counts.segments_in(SegmentStatus::InProgress) > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) async fn work(run: &Run<'_>, dispatcher: &mut Dispatcher) -> Result<Worked> {
    let row = run.open().await?;
    run.stream.cut_by(SEGMENT_SIZE);
    if let Some(began) = run.round.began {
        run.stream.began_round(began);
    }
    run.tell_start(&row, run.round.at).await?;
    let end = dispatcher.drain(Scope::AtHand).await?;
    if end != DrainEnd::Done {
        return Ok(Worked { end, batch: dispatcher.totals, newest: None });
    }
    // It may be mirrored since after the round began.
    run.round.plan(run.engine, &row).await?;
    run.tell_start(&run.open().await?, run.round.at).await?;
    let end = dispatcher.drain(Scope::Patient).await?;
    Ok(Worked { end, batch: dispatcher.totals, newest: None })
}

fn seconds(engine: &Engine) -> i64 {
    engine.now().as_millis().div_euclid(1000)
}
