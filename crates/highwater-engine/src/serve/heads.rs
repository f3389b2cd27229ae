//! Keeps the plan up with the remote: new positions are fetched at once by the update workers, and planned a moment
//! later, so that the catch-up finds most of them stored.

use std::time::Duration;

use highwater_core::{Key, Position};

use super::{Service, queue::LiveKey};
use crate::{
    error::Result,
    planner::{self, Range},
};

/// How often the head is asked for although a feed tells of it; more often while none does.
const ASK_EVERY: Duration = Duration::from_secs(30);
const ASK_EVERY_BLIND: Duration = Duration::from_secs(5);
/// The update workers have so long to fetch what is new before it is planned.
const FIRST_TO_LIVE: Duration = Duration::from_secs(1);
/// More new positions than this at once are left to the catch-up.
const LIVE_JUMP_MAX: u64 = 1_000;

impl Service {
    pub(super) async fn extend(&self) -> Result<()> {
        let mut heads = self.heads.subscribe();
        let mut known: Option<Position> = None;
        loop {
            let heard = *heads.borrow_and_update();
            if let Some(head) = heard.filter(|head| known.is_none_or(|known| *head > known)) {
                self.main().stream.heard_head(head);
                self.pulse.note(|pulse| pulse.head = Some(head));
                if let Some(known) = known {
                    self.fetch_new(known, head);
                    self.engine.world.clock.sleep(FIRST_TO_LIVE).await;
                }
                self.plan_up_to(head).await?;
                known = Some(head);
                continue;
            }
            let every = if known.is_some() && self.pulse.view().connected { ASK_EVERY } else { ASK_EVERY_BLIND };
            tokio::select! {
                biased;
                changed = heads.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                }
                () = self.ask_head(if known.is_none() { Duration::ZERO } else { every }) => {}
            }
        }
    }

    async fn ask_head(&self, after: Duration) {
        self.engine.world.clock.sleep(after).await;
        let stream = &self.main().stream;
        match self.engine.source.head(&stream.spec.name, &self.control_call()).await {
            Ok(head) => {
                self.heads.send_if_modified(|known| {
                    let is_news = known.is_none_or(|known| known < head);
                    if is_news {
                        *known = Some(head);
                    }
                    is_news
                });
            }
            Err(failure) => {
                tracing::debug!(%failure, "the head is not known");
                self.engine.world.clock.sleep(FIRST_TO_LIVE).await;
            }
        }
    }

    fn fetch_new(&self, known: Position, head: Position) {
        let new = head.0.abs_diff(known.0);
        if new > LIVE_JUMP_MAX.min(self.queue.room() as u64) {
            return;
        }
        let stream = &self.main().stream.spec.name;
        let keys = (known.0..head.0).map(|id| LiveKey { stream: stream.clone(), key: Key::Number(id) });
        self.queue.enter_more(keys.collect(), self.engine.now());
    }

    async fn plan_up_to(&self, head: Position) -> Result<()> {
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
