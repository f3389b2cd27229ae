//! A source kept current by its own record of changes, looked at every few minutes.

use std::sync::Arc;

use highwater_core::{BatchCounts, Event, SegmentStatus, WorkerId};
use highwater_sources::Changes;
use tokio::task::JoinSet;

use super::{Pulse, ServeRequest, Unheard, dispatcher_died};
use crate::{
    EngineError,
    account::AccountLink,
    context::{Engine, StreamContext},
    dispatcher::{Dispatcher, DrainEnd, Scope},
    duties::Duties,
    error::Result,
    follow::{Follower, Step, Why},
    planner::Range,
    worker::Worker,
};

const FEED: &str = "record";

impl Engine {
    /// As for a source with a feed; who else follows the same record does no harm.
    pub(super) async fn serve_record(
        &self,
        owner: &WorkerId,
        changes: &dyn Changes,
        request: &ServeRequest,
    ) -> Result<BatchCounts> {
        let account = AccountLink::join(self, owner.clone()).await?;
        let duties = Duties::start(self, account);
        let stream = Arc::new(StreamContext::new(self, &self.source.streams()[0]));
        self.steady(|| self.store.open_stream(&stream.id, stream.spec.axis)).await?;
        let worker = Worker::new(self.clone(), stream.clone());
        let mut dispatcher = Dispatcher::new(worker, owner.clone(), duties.watch());
        let tell = dispatcher.news();
        let mut dispatchers: JoinSet<Result<(DrainEnd, BatchCounts)>> = JoinSet::new();
        dispatchers.spawn(async move { Ok((dispatcher.drain(Scope::Endless).await?, dispatcher.totals)) });
        let follower = Follower { engine: self, stream: &stream, changes };
        follower.reconsider().await?;
        request.pulse.note(|pulse| {
            pulse.is_listener = true;
            pulse.feeds = 1;
        });
        let following = async {
            loop {
                let looked = self.look(&follower, &request.pulse).await;
                tell.notify_one();
                if let Err(error) = looked {
                    return error;
                }
                self.world.clock.sleep(self.settings.follow_every).await;
            }
        };
        let ended = tokio::select! {
            biased;
            () = self.world.stop.asked() => Ok(()),
            ended = dispatchers.join_next() => ended.map_or(Ok(()), dispatcher_died),
            error = following => Err(error),
        };
        if let Err(error) = &ended {
            request.pulse.note(|pulse| pulse.lose_record(Some(failing(error))));
        }
        ended?;
        let mut batch = BatchCounts::default();
        while let Some(ended) = dispatchers.join_next().await {
            let (_, totals) = ended.map_err(|died| EngineError::TaskDied(format!("a dispatcher: {died}")))??;
            batch.add(&totals);
        }
        Ok(batch)
    }

    /// One look. A remote that does not answer is looked at again the next time.
    async fn look(&self, follower: &Follower<'_>, pulse: &Pulse) -> Result<()> {
        match round(follower).await {
            Ok(Ok(())) => {
                let now = self.world.clock.moment();
                pulse.note(|pulse| pulse.heard_record(FEED, now));
            }
            Ok(Err(end)) => pulse.note(|pulse| pulse.lose_record(self.left_alone(&end))),
            Err(EngineError::Remote(failure)) => {
                let (kind, retry_at) = (failure.kind, self.now() + self.settings.follow_every);
                pulse.note(|pulse| pulse.lose_record(Some(failing(&EngineError::Remote(failure)))));
                self.emit(Event::HeadFailed { kind, retry_at });
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn left_alone(&self, end: &DrainEnd) -> Option<Unheard> {
        let DrainEnd::GateClosed { until } = end else { return None };
        let wait = until.since(self.world.clock.moment());
        Some(Unheard::LeftAlone { until: self.now() + wait })
    }
}

fn failing(error: &EngineError) -> Unheard {
    Unheard::Failing { why: crate::describe(error) }
}

/// Everything that a look is about, or why the work ends before.
async fn round(follower: &Follower<'_>) -> Step<()> {
    if let Err(end) = follower.pin().await? {
        return Ok(Err(end));
    }
    if let Err(end) = follower.news().await? {
        return Ok(Err(end));
    }
    if let Err(end) = follower.plan(&Range::default()).await? {
        return Ok(Err(end));
    }
    let is_to_be_compared = follower.followed().await?.reconciled_at.is_none() && is_done(follower).await?;
    if is_to_be_compared {
        return Ok(follower.compare(Why::Complete).await?.map(drop));
    }
    Ok(Ok(()))
}

/// Whether everything that was listed is dealt with.
async fn is_done(follower: &Follower<'_>) -> Result<bool> {
    let (engine, id) = (follower.engine, &follower.stream.id);
    let counts = engine.steady(|| engine.store.counts(id)).await?;
    Ok(counts.segments_in(SegmentStatus::Pending) + counts.segments_in(SegmentStatus::InProgress) == 0)
}
