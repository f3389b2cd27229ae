//! Keeps account of every moment in which nobody listened: a window is opened when the feed is lost, and ends when it is
//! back and the pass that covers it is laid. The store closes it when that pass has sealed.

use std::time::Duration;

use futures_util::future::BoxFuture;
use highwater_core::{
    Event, Failure, Position, RescanReason, Span, Timestamp, WindowId,
    planted::{Bug, planted},
};
use highwater_store::{EndWindow, Heard, NewWindow, RescanPlan};
use tokio::sync::mpsc;

use super::{Service, listener::FeedNews, settings::SHORT_BLINDNESS};
use crate::error::Result;

/// A new mirror waits so long for the feed before it begins, so that nothing is fetched unheard.
const FIRST_PATIENCE: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_secs(2);
const NOTE_EVERY: Duration = Duration::from_secs(2);
/// What is told is noted at once, but for what comes so soon after the last.
const NOTE_APART: Duration = Duration::from_millis(500);

/// The window that has not ended.
#[derive(Clone, Copy)]
struct Blind {
    window: WindowId,
    opened_at: Timestamp,
}

/// What is known once the feed is back: when that was, where the head is, and from where on to look again.
type Cover = (Timestamp, Position, Position);

impl Service {
    /// Whether anything may have changed unheard before this process began to listen.
    pub(super) async fn blind_before(&self) -> Result<Option<Timestamp>> {
        let (engine, stream) = (&self.engine, &self.main().stream);
        let state = engine.steady(|| engine.store.live_state(&stream.id)).await?;
        if state.heard_until.is_some() {
            return Ok(state.heard_until);
        }
        let row = self.row(self.main()).await?;
        if row.span.is_empty() {
            return Ok(None);
        }
        let first = engine.steady(|| engine.store.first_run_at(&engine.name, None)).await?;
        Ok(Some(first.unwrap_or(engine.now())))
    }

    /// Returns when the plan may be extended: at once, unless everything is new and the feed is about to stand.
    pub(super) async fn first_heard(&self, blind_before: Option<Timestamp>) {
        if blind_before.is_none() {
            tokio::select! {
                biased;
                () = self.told_anything.notified() => {}
                () = self.engine.world.clock.sleep(FIRST_PATIENCE) => {}
            }
        }
    }

    pub(super) async fn keep_windows(
        &self,
        blind_before: Option<Timestamp>,
        news: &mut mpsc::Receiver<FeedNews>,
    ) -> Result<()> {
        let mut blind = match blind_before {
            Some(since) => Some(self.open_window(since, "nobody was listening").await?),
            None => self.blind_from_the_start(news).await?,
        };
        let mut back_at = blind.is_none().then(|| self.engine.now());
        let mut covering: Option<BoxFuture<'_, Cover>> = None;
        loop {
            if let (Some(blind), Some(at), None) = (blind, back_at, &covering) {
                covering = Some(Box::pin(self.cover(blind, at)));
            }
            tokio::select! {
                biased;
                heard = news.recv() => match heard {
                    None => return Ok(()),
                    Some(FeedNews::Back { at }) => back_at = Some(at),
                    Some(FeedNews::Lost { since }) => {
                        (back_at, covering) = (None, None);
                        if blind.is_none() {
                            blind = Some(self.open_window(since, "the feed was lost").await?);
                        }
                    }
                },
                cover = awaited(&mut covering) => {
                    if let Some(blind) = blind.take() {
                        self.end_window(blind, cover).await?;
                    }
                }
            }
        }
    }

    /// A new mirror: blind only if the feed does not stand by the time that something is fetched.
    async fn blind_from_the_start(&self, news: &mut mpsc::Receiver<FeedNews>) -> Result<Option<Blind>> {
        let now = self.engine.now();
        tokio::select! {
            biased;
            heard = news.recv() => match heard {
                Some(FeedNews::Back { .. }) | None => Ok(None),
                Some(FeedNews::Lost { since }) => Ok(Some(self.open_window(since, "the feed was lost").await?)),
            },
            () = self.engine.world.clock.sleep(FIRST_PATIENCE) => {
                Ok(Some(self.open_window(now, "the feed does not stand yet").await?))
            }
        }
    }

    async fn open_window(&self, opened_at: Timestamp, reason: &str) -> Result<Blind> {
        let window = NewWindow {
            stream: self.main().stream.id.clone(),
            opened_at,
            reason: reason.into(),
            worker: self.owner.clone(),
            now: self.engine.now(),
        };
        let id = self.engine.steady(|| self.engine.store.open_window(&window)).await?;
        self.engine.emit(Event::BlindSince { at: opened_at });
        let state = self.engine.steady(|| self.engine.store.live_state(&window.stream)).await?;
        let opened_at = state.windows.iter().find(|open| open.id == id).map_or(opened_at, |open| open.opened_at);
        Ok(Blind { window: id, opened_at })
    }

    /// Asks the remote until it says what is needed to end the window.
    async fn cover(&self, blind: Blind, back_at: Timestamp) -> Cover {
        let rescan = &self.settings.rescan;
        let lasted = back_at.since(blind.opened_at);
        let short = rescan.short_window.min(rescan.window);
        let window = if lasted < SHORT_BLINDNESS { short } else { rescan.window };
        loop {
            match self.reach(blind.opened_at.minus(window)).await {
                Ok((head, from)) => return (back_at, head, from),
                Err(failure) => {
                    tracing::debug!(%failure, "what a blind window may have missed is not known yet");
                    self.engine.world.clock.sleep(RETRY).await;
                }
            }
        }
    }

    /// The head, and where what is younger than `since` begins.
    pub(super) async fn reach(&self, since: Timestamp) -> Result<(Position, Position), Failure> {
        let (source, stream) = (&self.engine.source, &self.main().stream);
        let head = source.head(&stream.spec.name, &self.control_call()).await?;
        stream.heard_head(head);
        self.raise_head(head);
        let from = source.position_at(&stream.spec.name, since, &self.control_call()).await?;
        Ok((head, from))
    }

    async fn end_window(&self, blind: Blind, (ended_at, head, from): Cover) -> Result<()> {
        // So that the pass reaches the head: a window does not wait for what a first catch-up has yet to fetch.
        self.plan_up_to(head).await?;
        let stream = &self.main().stream;
        let row = self.row(self.main()).await?;
        let span = Span::new(from.min(head), head).intersect(row.span);
        let rescan = RescanPlan {
            stream: stream.id.clone(),
            reason: RescanReason::Blind,
            span,
            segment_size: stream.policy.segment_size,
            now: self.engine.now(),
        };
        let end = EndWindow { window: blind.window, ended_at, head, worker: self.owner.clone(), rescan };
        self.engine.steady(|| self.engine.store.end_window(&end)).await?;
        self.engine.emit(Event::RescanBegan { reason: RescanReason::Blind, span });
        self.main().news.notify_one();
        Ok(())
    }

    /// Notes how far all that was told is stored, and what is not: a process that dies has been blind since then, and
    /// leaves the rest to the next.
    pub(super) async fn note_heard(&self) -> Result<()> {
        let clock = &self.engine.world.clock;
        let (mut noted, mut told) = (None, Vec::new());
        loop {
            tokio::select! {
                biased;
                () = self.told_keys.notified() => {}
                () = clock.sleep(NOTE_EVERY) => {}
            }
            let Some(until) = self.heard_until() else { continue };
            let heard = self.heard(until);
            if Some(until) > noted || heard.told != told {
                self.engine.steady(|| self.engine.store.heard(&heard)).await?;
                (noted, told) = (Some(until), heard.told);
            }
            clock.sleep(NOTE_APART).await;
        }
    }

    pub(super) fn heard(&self, until: Timestamp) -> Heard {
        let stream = self.main().stream.id.clone();
        let names = self.streams.iter().map(|followed| &followed.stream.spec.name);
        let told = names.map(|name| (name.clone(), self.queue.keys_of(name))).collect();
        Heard { stream, until, told, worker: self.owner.clone(), now: self.engine.now() }
    }

    pub(super) fn heard_until(&self) -> Option<Timestamp> {
        let last = *self.last_event.lock().expect("no code panics while it holds this lock");
        let eldest = self.queue.eldest().filter(|_| !planted(Bug::CursorPastQueue));
        last.map(|last| eldest.map_or(last, |eldest| eldest.min(last)))
    }
}

/// The output of an optional future, which is then gone; never, when there is none.
async fn awaited<T>(future: &mut Option<BoxFuture<'_, T>>) -> T {
    match future {
        Some(running) => {
            let output = running.await;
            *future = None;
            output
        }
        None => std::future::pending().await,
    }
}
