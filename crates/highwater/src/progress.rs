//! What a long run shows while it works: counters fed by events, read on a tick. A bar on a terminal, plain lines
//! elsewhere.

mod copy;
mod index;
mod line;
mod moves;
mod steady;

use std::{
    collections::VecDeque,
    io::IsTerminal,
    sync::{
        Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use highwater_core::{Event, Moment, Observer};
use highwater_engine::Engine;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(crate) use copy::draw as draw_copy;
pub(crate) use index::draw as draw_index;
pub(crate) use line::Line;
pub(crate) use moves::draw as draw_moves;

/// Notices kept between two ticks; the oldest gives way.
const NOTICES_MAX: usize = 16;

/// Counters of one run. Events only add; whoever draws only reads.
#[derive(Default)]
pub(crate) struct Progress {
    pub(super) origin: AtomicI64,
    pub(super) frontier: AtomicI64,
    pub(super) target: AtomicI64,
    /// Objects there are; none where that is what positions tell.
    pub(super) expected: AtomicU64,
    /// Keys that were settled when the run began,
    pub(super) settled_before: AtomicU64,
    /// and those settled since.
    pub(super) settled: AtomicU64,
    /// Keys this run has done something for, also when they were settled before.
    pub(super) done: AtomicU64,
    pub(super) retrying: AtomicU64,
    pub(super) dead: AtomicU64,
    /// What is worth a line of its own and has not been shown; the mutex is held for a few instructions.
    notices: Mutex<VecDeque<String>>,
}

impl Observer for Progress {
    fn notify(&self, event: &Event) {
        match event {
            Event::RunStarted { origin, frontier, target, settled, expected, .. } => {
                self.expected.store(expected.unwrap_or(0), Ordering::Relaxed);
                let since = self.settled.load(Ordering::Relaxed);
                self.settled_before.store(settled.saturating_sub(since), Ordering::Relaxed);
                self.origin.store(origin.0, Ordering::Relaxed);
                self.frontier.store(frontier.0, Ordering::Relaxed);
                self.target.store(target.0, Ordering::Relaxed);
            }
            Event::Committed { batch, .. } => {
                let settled = batch.new + batch.missing + batch.excluded + batch.dead;
                self.settled.fetch_add(settled, Ordering::Relaxed);
                self.done.fetch_add(settled + batch.changed + batch.unchanged, Ordering::Relaxed);
                self.retrying.fetch_add(batch.retrying, Ordering::Relaxed);
                self.dead.fetch_add(batch.dead, Ordering::Relaxed);
            }
            Event::Closed { frontier, .. } => {
                self.frontier.fetch_max(frontier.0, Ordering::Relaxed);
            }
            other => self.notice(other),
        }
        log(event);
    }
}

impl Progress {
    fn notice(&self, event: &Event) {
        let text = match event {
            Event::OutageConfirmed { kind, .. } => {
                let kind = kind.map_or("no answer", |kind| kind.as_str());
                format!("the source is out ({kind}); waiting for it")
            }
            Event::OutageOver => "the source answers again".into(),
            Event::HeadFailed { kind, .. } => format!("the source does not answer yet ({kind}); trying again"),
            Event::Bridged { gap } => {
                let (first, last) = (gap.start(), gap.end().minus(1));
                format!("{first} to {last} lie between that and what is mirrored, and are fetched as well")
            }
            Event::StoreTrouble { error } => format!("the store cannot write: {error}; trying again"),
            Event::StoreHealed => "the store writes again".into(),
            Event::Alert(change) if change.send => change.to_string(),
            Event::Stopping => "stopping: committing what is in hand".into(),
            _ => return,
        };
        let mut notices = self.notices.lock().expect("no code panics while it holds this lock");
        // Many workers meet the same trouble at once.
        notices.retain(|earlier| *earlier != text);
        notices.push_back(text);
        if notices.len() > NOTICES_MAX {
            notices.pop_front();
        }
    }

    fn take_notices(&self) -> VecDeque<String> {
        std::mem::take(&mut *self.notices.lock().expect("no code panics while it holds this lock"))
    }
}

/// For who asked for more: what has no line of its own.
pub(crate) fn log(event: &Event) {
    match event {
        Event::DeadLetter { key, reason } => tracing::info!(%key, reason, "dead letter"),
        Event::KeyFailed { key, kind, attempts, .. } => tracing::debug!(%key, %kind, attempts, "failed"),
        Event::Closed { segment, span, status, frontier } => {
            tracing::debug!(%segment, %span, %status, %frontier, "segment closed");
        }
        Event::JobSplit { segment, keys } => {
            tracing::warn!("{keys} keys of segment {segment} fail together, and are tried in halves");
        }
        Event::JobStalled { segment, keys } => {
            tracing::warn!("{keys} keys of segment {segment} showed no sign of life, and are begun anew");
        }
        Event::WorkerPanicked { segment } => tracing::warn!("a worker panicked on segment {segment}; it is begun anew"),
        Event::LeaseLost { segment } => tracing::warn!("segment {segment} is somebody else's now"),
        Event::OutageSuspected { .. } => tracing::info!(?event),
        _ => {}
    }
}

/// Prints what was noticed since the last tick: a run may end before the next.
pub(crate) fn tell_rest(progress: &Progress, engine: &Engine) {
    for notice in progress.take_notices() {
        crate::out::complain(&format!("{}: {notice}", engine.name));
    }
}

/// Draws until dropped. Silent when told to be quiet.
pub(crate) async fn draw(progress: &Progress, engine: &Engine, quiet: bool) {
    if quiet {
        return std::future::pending().await;
    }
    let began = engine.world.clock.moment();
    if has_bar() {
        draw_bar(progress, engine, began).await;
    } else {
        draw_lines(progress, engine, began).await;
    }
}

fn has_bar() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
    let style =
        ProgressStyle::with_template("{bar:24.cyan/blue} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style);
    bar
}

async fn draw_bar(progress: &Progress, engine: &Engine, began: Moment) {
    const TICK: Duration = Duration::from_millis(200);
    let bar = bar();
    let _clear = ClearOnDrop(&bar);
    let mut line = Line::new(began);
    loop {
        engine.world.clock.sleep(TICK).await;
        progress.take_notices().into_iter().for_each(|notice| bar.println(notice));
        let shown = line.read(progress, engine);
        bar.set_position((shown.share * 1000.0) as u64);
        bar.set_message(shown.to_string());
    }
}

struct ClearOnDrop<'a>(&'a ProgressBar);

impl Drop for ClearOnDrop<'_> {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

async fn draw_lines(progress: &Progress, engine: &Engine, began: Moment) {
    const TICK: Duration = Duration::from_millis(500);
    const TICKS_A_LINE: u32 = 8;
    let mut line = Line::new(began);
    for tick in 1u32.. {
        engine.world.clock.sleep(TICK).await;
        tell_rest(progress, engine);
        if tick.is_multiple_of(TICKS_A_LINE) {
            crate::out::complain(&format!("{}: {}", engine.name, line.read(progress, engine)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_between_two_looks_are_all_kept_and_none_twice() {
        let progress = Progress::default();
        for event in [Event::OutageOver, Event::StoreHealed, Event::OutageOver, Event::Stopping] {
            progress.notify(&event);
        }
        let notices = progress.take_notices();
        assert_eq!(
            notices,
            ["the store writes again", "the source answers again", "stopping: committing what is in hand"]
        );
        assert!(progress.take_notices().is_empty());
    }
}
