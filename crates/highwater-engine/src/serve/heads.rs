//! Keeps the plan up with the remote: new positions are fetched at once by the update workers, and planned a moment
//! later, so that the catch-up finds most of them stored.

use std::time::Duration;

use highwater_core::{Key, Position};

use super::{Service, queue::LiveKey};
use crate::{
    error::Result,
    planner::{self, Range},
};

/// How often the head is asked for although a feed tells of it; more often while it does not stand.
const ASK_EVERY: Duration = Duration::from_secs(30);
const ASK_EVERY_BLIND: Duration = Duration::from_secs(2);
/// The update workers have so long to fetch what is new before it is planned.
const FIRST_TO_LIVE: Duration = Duration::from_secs(1);
/// The newest are fetched at once; what a long absence leaves behind them is the catch-up's.
const LIVE_JUMP_MAX: u64 = 1_000;

impl Service {
    pub(super) async fn extend(&self) -> Result<()> {
        let mut heads = self.heads.subscribe();
        let planned = self.row(self.main()).await?.span;
        let mut known = (!planned.is_empty()).then_some(planned.end());
        let mut after = Duration::ZERO;
        loop {
            let heard = *heads.borrow_and_update();
            if let Some(head) = heard.filter(|head| known.is_none_or(|known| *head > known)) {
                self.reach_head(known, head).await?;
                known = Some(head);
                continue;
            }
            tokio::select! {
                biased;
                changed = heads.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                }
                () = self.ask_head(after) => {}
            }
            after = if self.pulse.view().is_connected() { ASK_EVERY } else { ASK_EVERY_BLIND };
        }
    }

    async fn reach_head(&self, known: Option<Position>, head: Position) -> Result<()> {
        self.main().stream.heard_head(head);
        self.pulse.note(|pulse| pulse.head = Some(head));
        if let Some(known) = known {
            self.fetch_new(known, head);
            self.engine.world.clock.sleep(FIRST_TO_LIVE).await;
        }
        self.plan_up_to(head).await
    }

    /// Sooner if the feed names what lies beyond the head we know.
    async fn ask_head(&self, after: Duration) {
        tokio::select! {
            biased;
            () = self.beyond_head.notified() => {}
            () = self.engine.world.clock.sleep(after) => {}
        }
        let stream = &self.main().stream;
        match self.engine.source.head(&stream.spec.name, &self.control_call()).await {
            Ok(head) => self.raise_head(head),
            Err(failure) => {
                tracing::debug!(%failure, "the head is not known");
                self.engine.world.clock.sleep(FIRST_TO_LIVE).await;
            }
        }
    }

    pub(super) fn raise_head(&self, head: Position) {
        self.heads.send_if_modified(|known| {
            let is_news = known.is_none_or(|known| known < head);
            if is_news {
                *known = Some(head);
            }
            is_news
        });
    }

    fn fetch_new(&self, known: Position, head: Position) {
        let newest = head.minus(LIVE_JUMP_MAX.min(self.queue.room() as u64));
        let stream = &self.main().stream.spec.name;
        let new = (known.max(newest).0..head.0).map(|id| LiveKey { stream: stream.clone(), key: Key::Number(id) });
        self.queue.enter_first(new.collect(), self.engine.now());
    }

    pub(super) async fn plan_up_to(&self, head: Position) -> Result<()> {
        let followed = self.main();
        let row = self.row(followed).await?;
        let range = Range::default();
        let wanted = range.resolve(followed.stream.spec.origin, head);
        if !wanted.is_empty() {
            planner::extend(&self.engine, &followed.stream, &row, wanted, &range).await?;
            followed.news.notify_one();
        }
        Ok(())
    }
}
