//! The way to one account: every request waits for its permit, is sent, and its answer is shown to the throttle, in
//! this one place. What an answer means for a key is decided elsewhere.

mod limiter;
mod reading;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use highwater_core::{
    AccountReport, Failure, FailureKind, Moment, Pause,
    planted::{Bug, planted},
    throttle::{Learned, Outcome, PauseReason, Settings, Snapshot},
};

use limiter::Limiter;
pub use limiter::{Jitter, News, Stopped};
pub use reading::{Classifier, Reading, read_status};

use crate::{Call, Clock, Request, Response, Transport};

pub struct Gateway {
    transport: Arc<dyn Transport>,
    limiter: Limiter,
    classify: Classifier,
    counters: Counters,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    #[error(transparent)]
    Stopped(#[from] Stopped),
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// For those who can only fail: the stop is then told as a failure that nothing remote is to blame for.
impl From<GatewayError> for Failure {
    fn from(error: GatewayError) -> Self {
        match error {
            GatewayError::Failed(failure) => failure,
            GatewayError::Stopped(stopped) => Failure::new(FailureKind::Internal, stopped.to_string()),
        }
    }
}

#[derive(Default)]
struct Counters {
    requests: AtomicU64,
    throttled: AtomicU64,
    bytes: AtomicU64,
}

/// Counts since the gateway was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub requests: u64,
    /// Answers that asked to slow down.
    pub throttled: u64,
    /// Of bodies, decompressed.
    pub bytes: u64,
}

impl Gateway {
    pub fn new(transport: Arc<dyn Transport>, settings: Settings, clock: Clock, jitter: Jitter) -> Self {
        let limiter = Limiter::new(settings, clock, jitter);
        Gateway { transport, limiter, classify: read_status, counters: Counters::default() }
    }

    /// For sources that say "too much" in other words than HTTP's.
    pub fn with_classifier(self, classify: Classifier) -> Self {
        Gateway { classify, ..self }
    }

    /// Waits for its turn and sends. An answer that asks to slow down is waited out, however often it comes.
    pub async fn get(&self, request: Request, call: &Call, cost: f64) -> Result<Response, GatewayError> {
        loop {
            let pass = self.limiter.acquire(call.lane, cost).await?;
            let in_flight = call.beat.in_flight();
            let (answer, outcome) = self.send(request.clone()).await;
            drop(in_flight);
            pass.finish(outcome);
            if !matches!(outcome, Outcome::Throttled { .. }) || planted(Bug::ThrottleCountsAsStrike) {
                return Ok(answer?);
            }
        }
    }

    /// Sends although an outage keeps the gate closed, to find out whether the source is back. Every other pause is
    /// waited out.
    pub async fn get_probe(&self, request: Request) -> Result<Response, GatewayError> {
        loop {
            self.limiter.quota_over().await?;
            let (answer, outcome) = self.send(request.clone()).await;
            match outcome {
                Outcome::Throttled { retry_after } => self.limiter.note_throttled(retry_after),
                _ => return Ok(answer?),
            }
        }
    }

    /// Hands out the permits that time makes due; without it nobody who waits gets one. Ends with [`Gateway::stop`].
    pub async fn drive(&self) {
        self.limiter.drive().await;
    }

    /// Whoever waits for a permit is told at once, and nobody gets one any more. Requests under way go on.
    pub fn stop(&self) {
        self.limiter.stop();
    }

    pub fn pause(&self, until: Moment, reason: PauseReason) {
        self.limiter.pause(until, reason);
    }

    pub fn resume(&self) {
        self.limiter.resume();
    }

    pub fn snapshot(&self) -> Snapshot {
        self.limiter.snapshot()
    }

    /// What other processes of this account should know. `cuts` are those since the gateway was made.
    pub fn report(&self) -> AccountReport {
        self.limiter.report()
    }

    /// Takes up what an earlier process found out about the account.
    pub fn recall(&self, learned: Learned) {
        self.limiter.recall(learned);
    }

    /// Acts on what all processes of this account know.
    pub fn adopt(&self, share: f64, news: News, pause: Option<Pause>) {
        self.limiter.adopt(share, news, pause);
    }

    pub fn traffic(&self) -> Traffic {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { requests, throttled, bytes } = &self.counters;
        Traffic { requests: read(requests), throttled: read(throttled), bytes: read(bytes) }
    }

    pub fn clock(&self) -> &Clock {
        self.limiter.clock()
    }

    async fn send(&self, request: Request) -> (Result<Response, Failure>, Outcome) {
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        let sent_at = self.clock().moment();
        let answer = self.transport.send(request).await;
        let reading = answer.as_ref().map_or(Reading::Failed, |answer| (self.classify)(answer, self.clock().now()));
        let outcome = match reading {
            Reading::Served => Outcome::Success { latency: self.clock().moment().since(sent_at) },
            Reading::Failed => Outcome::Failed,
            Reading::Throttled { retry_after } => Outcome::Throttled { retry_after },
        };
        self.count(&answer, outcome);
        (answer, outcome)
    }

    fn count(&self, answer: &Result<Response, Failure>, outcome: Outcome) {
        if let Ok(answer) = answer {
            self.counters.bytes.fetch_add(answer.body.len() as u64, Ordering::Relaxed);
        }
        if matches!(outcome, Outcome::Throttled { .. }) {
            self.counters.throttled.fetch_add(1, Ordering::Relaxed);
        }
    }
}
