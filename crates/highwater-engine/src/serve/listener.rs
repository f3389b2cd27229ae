//! Listens to the feeds of the remote: connects, notices silence, connects again, and hands on what is told.

use std::time::Duration;

use futures_util::FutureExt;
use highwater_core::{Event, Failure, FailureKind, Key, Position, RetryPolicy, StreamName, Timestamp};
use highwater_sources::{Density, Feed, Live, Told};

use super::{Service, queue::LiveKey};
use crate::error::Result;

/// From half a second up to half a minute.
const RECONNECT: RetryPolicy =
    RetryPolicy { attempts: u32::MAX, base: Duration::from_millis(500), max: Duration::from_secs(30) };

/// What became of the feed that tells of changes.
#[derive(Clone, Debug)]
pub(super) enum FeedNews {
    Back {
        at: Timestamp,
    },
    /// The last sign of life was then.
    Lost {
        since: Timestamp,
    },
}

/// One connection after the other.
struct Follower<'a> {
    service: &'a Service,
    feed: Feed,
    /// Tries since the last event.
    tries: u32,
    stood_before: bool,
    last_event: Option<Timestamp>,
}

impl Service {
    /// Follows one feed for as long as it is polled.
    pub(super) async fn follow(&self, live: &dyn Live, feed: Feed) -> Result<()> {
        let mut follower = Follower { service: self, feed, tries: 0, stood_before: false, last_event: None };
        loop {
            let failure = follower.listen(live).await?;
            follower.lost(failure).await;
        }
    }
}

impl Follower<'_> {
    /// Listens until the feed ends, and says why it did.
    async fn listen(&mut self, live: &dyn Live) -> Result<Failure> {
        let clock = &self.service.engine.world.clock;
        let idle = self.service.settings.idle_timeout;
        let connected = tokio::select! {
            biased;
            connected = live.listen(self.feed) => connected,
            () = clock.sleep(idle) => Err(silent(idle)),
        };
        let mut listening = match connected {
            Ok(listening) => listening,
            Err(failure) => return Ok(failure),
        };
        let mut is_first = true;
        let mut quiet_at = self.service.engine.now();
        loop {
            // What is there already may have been there since nothing was: whoever tells does not wait for us.
            let (told, heard_at) = match listening.next().now_or_never() {
                Some(told) => (told, quiet_at),
                None => {
                    let told = tokio::select! {
                        biased;
                        told = listening.next() => told,
                        () = clock.sleep(idle) => Err(silent(idle)),
                    };
                    quiet_at = self.service.engine.now();
                    (told, quiet_at)
                }
            };
            match told {
                Ok(told) => self.handle(told, heard_at, std::mem::take(&mut is_first)).await?,
                Err(failure) => return Ok(failure),
            }
        }
    }

    async fn handle(&mut self, told: Told, heard_at: Timestamp, is_first: bool) -> Result<()> {
        self.tries = 0;
        if is_first {
            self.stands(heard_at).await;
        }
        self.last_event = Some(heard_at);
        match told {
            Told::Alive => {}
            Told::Head { stream, head } if stream == self.service.main().stream.spec.name => {
                self.service.raise_head(head);
            }
            Told::Head { .. } => {}
            Told::Changed(keys) => return self.handle_changed(keys, heard_at).await,
        }
        self.service.note_event(self.feed, heard_at);
        Ok(())
    }

    async fn handle_changed(&self, keys: Vec<(StreamName, Key)>, heard_at: Timestamp) -> Result<()> {
        let service = self.service;
        let keys: Vec<LiveKey> = keys.into_iter().map(|(stream, key)| LiveKey { stream, key }).collect();
        // Before the event counts as heard: the cursor goes as far as that.
        let arriving = service.queue.arriving(keys.clone(), heard_at);
        service.note_event(self.feed, heard_at);
        service.told_keys.notify_one();
        arriving.enter(service.ours(keys).await?).await;
        Ok(())
    }

    async fn stands(&mut self, now: Timestamp) {
        let (service, feed) = (self.service, self.feed);
        let again = std::mem::replace(&mut self.stood_before, true);
        service.pulse.note(|pulse| {
            if again {
                pulse.reconnected(feed.name);
            }
            pulse.feeds_up.push(feed.name);
        });
        service.engine.emit(Event::FeedConnected { feed: feed.name });
        if feed.tells_changes {
            service.tell(FeedNews::Back { at: now }).await;
        }
    }

    async fn lost(&mut self, failure: Failure) {
        let service = self.service;
        self.tries += 1;
        let retry_in = RECONNECT.delay(self.tries, service.engine.world.entropy.unit()).max(wish(&failure));
        let name = self.feed.name;
        service.pulse.note(|pulse| pulse.feeds_up.retain(|up| *up != name));
        if let Some(since) = self.last_event.take().filter(|_| self.feed.tells_changes) {
            service.tell(FeedNews::Lost { since }).await;
        }
        service.engine.emit(Event::FeedLost { feed: self.feed.name, failure, retry_in });
        service.engine.world.clock.sleep(retry_in).await;
    }
}

/// How long the remote asked to be left alone, within reason.
fn wish(failure: &Failure) -> Duration {
    failure.retry_after.unwrap_or_default().min(Duration::from_secs(600))
}

fn silent(idle: Duration) -> Failure {
    Failure::new(FailureKind::Timeout, format!("no event for {} s", idle.as_secs()))
}

impl Service {
    async fn tell(&self, news: FeedNews) {
        // Whoever keeps the windows lives as long as this does; if it has ended, so does this.
        self.feed_news.send(news).await.ok();
    }

    fn note_event(&self, feed: Feed, now: Timestamp) {
        let moment = self.engine.world.clock.moment();
        if feed.tells_changes {
            self.last_event.lock().expect("no code panics while it holds this lock").replace(now);
            self.pulse.note(|pulse| pulse.last_event = Some(moment));
            self.told_anything.notify_one();
        }
    }

    fn is_beyond_head(&self, key: &Key) -> bool {
        let head = *self.heads.borrow();
        key.number().zip(head).is_some_and(|(id, head)| Position(id) >= head)
    }

    /// What of it this mirror is about. Names are entered into the list of their stream first.
    async fn ours(&self, keys: Vec<LiveKey>) -> Result<Vec<LiveKey>> {
        let lowest = keys.iter().filter_map(|live| live.key.number()).min();
        let origin = match lowest {
            Some(lowest) => self.origin(Position(lowest)).await?,
            None => self.main().stream.spec.origin,
        };
        let mut ours = Vec::with_capacity(keys.len());
        for live in keys {
            let Some(followed) = self.followed(&live.stream) else { continue };
            let is_before = |key: &Key| key.number().is_some_and(|id| Position(id) < origin);
            if followed.stream.spec.density == Density::Dense && self.is_beyond_head(&live.key) {
                self.beyond_head.notify_one();
            }
            match followed.stream.spec.density {
                Density::Dense if is_before(&live.key) => {}
                Density::Dense | Density::Sparse | Density::Named(_) | Density::Snapshot(_) => ours.push(live),
            }
        }
        self.note_names(&ours).await?;
        Ok(ours)
    }

    async fn note_names(&self, keys: &[LiveKey]) -> Result<()> {
        for followed in self.streams.iter().filter(|one| matches!(one.stream.spec.density, Density::Named(_))) {
            let of_stream = keys.iter().filter(|live| live.stream == followed.stream.spec.name);
            let names: Vec<String> = of_stream.map(|live| live.key.to_string()).collect();
            if !names.is_empty() {
                self.engine.steady(|| self.engine.store.note_names(&followed.stream.id, &names)).await?;
            }
        }
        Ok(())
    }
}
