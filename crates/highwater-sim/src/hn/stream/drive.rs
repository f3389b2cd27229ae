//! Where a stream meets tokio's time: real on sockets, paused in tests.

use std::time::Duration;

use super::{EventStream, StreamStep, StreamTurn};

impl EventStream {
    /// The next step, when it is due. `now` tells the time since the start of the simulation. May be dropped before it
    /// is ready without loss.
    pub(crate) async fn next(&mut self, now: impl Fn() -> Duration) -> StreamStep {
        loop {
            self.woken.mark_unchanged();
            let time = now();
            match self.poll(time) {
                StreamTurn::Now(step) => return step,
                StreamTurn::Wait { until } => self.wait_until(until.map(|until| until.saturating_sub(time))).await,
            }
        }
    }

    async fn wait_until(&mut self, after: Option<Duration>) {
        // The sender lives in the simulator, and this stream holds that.
        let woken = async { self.woken.changed().await.expect("the simulator outlives its streams") };
        match after {
            Some(after) => drop(tokio::time::timeout(after, woken).await),
            None => woken.await,
        }
    }
}
