//! Looks again at what may still change: on a schedule, slowly over everything if that is wished for; and sees to it
//! that passes and windows end when their segments are sealed.

use std::time::Duration;

use highwater_core::{Event, Moment, Position, RescanReason, Span, Timestamp};
use highwater_store::{LiveState, RescanPlan, StreamRow};

use super::Service;
use crate::error::Result;

/// While something is open, and otherwise.
const LOOK_SOON: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_secs(5);
/// Segments of the slow pass that are laid at a time.
const HISTORY_SEGMENTS: u64 = 10;
const COMPACT_EVERY: Duration = Duration::from_secs(600);

/// When things are due.
struct Agenda {
    /// Of the first service on this store.
    began_at: Timestamp,
    history_at: Moment,
    compact_at: Moment,
}

impl Service {
    pub(super) async fn look_again(&self) -> Result<()> {
        let clock = &self.engine.world.clock;
        let engine = &self.engine;
        // However often it is started anew meanwhile: passes are so far apart from the first time on.
        let first = engine.steady(|| engine.store.first_run_at(&engine.name, Some("serve"))).await?;
        let mut agenda = Agenda {
            began_at: first.unwrap_or(engine.now()),
            history_at: clock.moment(),
            compact_at: clock.moment() + COMPACT_EVERY,
        };
        loop {
            self.settle().await?;
            let stream = &self.main().stream.id;
            let state = self.engine.steady(|| self.engine.store.live_state(stream)).await?;
            self.schedule(&state, &agenda).await?;
            self.go_through_history(&state, &mut agenda).await?;
            self.compact(&mut agenda).await?;
            let is_open = !state.windows.is_empty() || !state.rescans.is_empty();
            let pause = if is_open { LOOK_SOON } else { LOOK.min(self.settings.rescan.every) };
            clock.sleep(pause).await;
        }
    }

    async fn settle(&self) -> Result<()> {
        let engine = &self.engine;
        for followed in &self.streams {
            let settled = engine.steady(|| engine.store.settle_live(&followed.stream.id, engine.now())).await?;
            for rescan in settled.rescans {
                engine.emit(Event::RescanSealed { rescan });
            }
            for window in settled.windows {
                engine.emit(Event::BlindWindowClosed { window });
            }
        }
        let now = engine.world.clock.moment();
        self.pulse.note(|pulse| pulse.last_sound = Some(now));
        Ok(())
    }

    async fn schedule(&self, state: &LiveState, agenda: &Agenda) -> Result<()> {
        let rescan = &self.settings.rescan;
        let last = state.last_scheduled_at.unwrap_or(agenda.began_at);
        let is_open = state.rescans.iter().any(|open| open.reason == RescanReason::Scheduled);
        let now = self.engine.now();
        if is_open || now.since(last) < rescan.every {
            return Ok(());
        }
        match self.reach(now.minus(rescan.window)).await {
            Ok((head, from)) => {
                let row = self.row(self.main()).await?;
                let span = Span::new(from.min(head), head).intersect(row.span);
                self.lay(RescanReason::Scheduled, span).await
            }
            Err(failure) => {
                tracing::debug!(%failure, "a pass is due, and the remote does not say how far it goes");
                Ok(())
            }
        }
    }

    /// A part at a time, so spread that all of them take the time that was wished for.
    async fn go_through_history(&self, state: &LiveState, agenda: &mut Agenda) -> Result<()> {
        let Some(period) = self.settings.rescan.history else { return Ok(()) };
        let now = self.engine.world.clock.moment();
        let is_open = state.rescans.iter().any(|open| open.reason == RescanReason::History);
        if is_open || now < agenda.history_at {
            return Ok(());
        }
        let row = self.row(self.main()).await?;
        let part = HISTORY_SEGMENTS * self.main().stream.policy.segment_size;
        let span = next_part(&row, state.history_upto, part);
        if span.is_empty() {
            return Ok(());
        }
        let parts = row.frontier.0.abs_diff(row.span.start().0).div_ceil(part).max(1);
        agenda.history_at = now + period / u32::try_from(parts).unwrap_or(u32::MAX);
        self.lay(RescanReason::History, span).await
    }

    async fn lay(&self, reason: RescanReason, span: Span) -> Result<()> {
        let stream = &self.main().stream;
        let plan = RescanPlan {
            stream: stream.id.clone(),
            reason,
            span,
            segment_size: stream.policy.segment_size,
            now: self.engine.now(),
        };
        self.engine.steady(|| self.engine.store.begin_rescan(&plan)).await?;
        self.engine.emit(Event::RescanBegan { reason, span });
        self.main().news.notify_one();
        Ok(())
    }

    /// A live mirror plans a handful of positions at a time; their segments are joined when they are history.
    async fn compact(&self, agenda: &mut Agenda) -> Result<()> {
        let engine = &self.engine;
        if engine.world.clock.moment() < agenda.compact_at {
            return Ok(());
        }
        agenda.compact_at = engine.world.clock.moment() + COMPACT_EVERY;
        for followed in &self.streams {
            let size = followed.stream.policy.segment_size;
            while engine.steady(|| engine.store.compact(&followed.stream.id, size)).await? > 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}

/// Behind the frontier only, and from the origin again when that is reached.
fn next_part(row: &StreamRow, upto: Option<Position>, part: u64) -> Span {
    let start = upto.filter(|upto| *upto < row.frontier).unwrap_or(row.span.start()).max(row.span.start());
    Span::new(start, start.plus(part).min(row.frontier).max(start))
}

#[cfg(test)]
mod tests {
    use highwater_core::StreamId;

    use super::*;

    #[test]
    fn the_slow_pass_goes_up_to_the_frontier_and_begins_again() {
        let id = StreamId { source: "hn".parse().unwrap(), stream: "items".parse().unwrap() };
        let span = Span::new(Position(5), Position(100));
        let row = StreamRow { id, axis: "id".into(), span, frontier: Position(42), stored: 0 };
        let mut upto = None;
        let mut starts = Vec::new();
        for _ in 0..4 {
            let part = next_part(&row, upto, 20);
            starts.push((part.start().0, part.end().0));
            upto = Some(part.end());
        }
        assert_eq!(starts, [(5, 25), (25, 42), (5, 25), (25, 42)]);
    }
}
