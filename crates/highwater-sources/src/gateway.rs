//! The way to one account: every request waits for its permit, is sent, and its answer is shown to the throttle, in
//! this one place. What an answer means for a key is decided elsewhere.

mod limiter;
mod meter;
mod reading;

use std::{
    num::NonZeroU32,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use highwater_core::{
    AccountReport, Failure, FailureKind, Lane, Moment, Pause,
    planted::{Bug, planted},
    throttle::{Learned, Outcome, PauseReason, Settings, Snapshot, Window},
};

use http::StatusCode;
use limiter::Limiter;
pub use limiter::{Jitter, Line, News, Pass, Stopped};
pub use meter::{Answers, LATENCY_BOUNDS, LATENCY_CLASSES, Latency, Meter, Traffic};
use meter::{Counters, Met};
pub use reading::{Classifier, Reading, read_status};

use crate::{
    Again, Allowance, Budget, Call, Clock, OpenResponse, Request, Response, Sent, Transport, budget::UnderWay,
};

pub struct Gateway {
    transport: Arc<dyn Transport>,
    limiter: Limiter,
    classify: Classifier,
    read_quota: QuotaReader,
    quota: OnceLock<Window>,
    counters: Counters,
    /// Where calls are counted and bounded.
    allowance: Option<Arc<Allowance>>,
    /// Where bytes are.
    budget: Option<Budget>,
}

/// The quota that an answer tells, if it does.
pub type QuotaReader = fn(&Response) -> Option<Window>;

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

impl Gateway {
    pub fn new(transport: Arc<dyn Transport>, settings: Settings, clock: Clock, jitter: Jitter) -> Self {
        let limiter = Limiter::new(settings, clock, jitter);
        let (quota, counters) = (OnceLock::new(), Counters::default());
        Gateway {
            transport,
            limiter,
            classify: read_status,
            read_quota: |_| None,
            quota,
            counters,
            allowance: None,
            budget: None,
        }
    }

    /// For sources that say "too much" in other words than HTTP's.
    pub fn with_classifier(self, classify: Classifier) -> Self {
        Gateway { classify, ..self }
    }

    /// For sources whose calls are counted: each that is sent is taken from it first.
    pub fn with_allowance(self, allowance: Arc<Allowance>) -> Self {
        Gateway { allowance: Some(allowance), ..self }
    }

    /// For sources that limit how much is downloaded: every answer counts, and a large one is asked for only if it fits.
    pub fn with_budget(self, budget: Option<Budget>) -> Self {
        Gateway { budget, ..self }
    }

    /// For sources that tell their quota when it is used up.
    pub fn with_quota_reader(self, read_quota: QuotaReader) -> Self {
        Gateway { read_quota, ..self }
    }

    /// The quota as the source has told it first.
    pub fn quota(&self) -> Option<Window> {
        self.quota.get().copied()
    }

    /// Waits for its turn and sends. An answer that asks to slow down is waited out, however often it comes.
    pub async fn get(&self, request: &Request, call: &Call, cost: f64) -> Result<Response, GatewayError> {
        let pass = self.limiter.acquire(call.lane, cost).await?;
        self.get_with(pass, request, call).await
    }

    /// The turns of several requests, for work that has nothing to do for one before its turn has come.
    pub fn line(&self, lane: Lane, cost: f64, requests: NonZeroU32) -> Line<'_> {
        self.limiter.line(lane, cost, requests)
    }

    /// As `get`, by a turn that has come already.
    pub async fn get_with<'a>(
        &'a self,
        mut pass: Pass<'a>,
        request: &Request,
        call: &Call,
    ) -> Result<Response, GatewayError> {
        let cost = pass.cost();
        let mut again = None;
        loop {
            self.take(request)?;
            let under_way = self.enter(request).await?;
            let in_flight = call.beat.in_flight();
            let (came, outcome) = self.send(request, again.take(), Some(call.lane)).await;
            drop(in_flight);
            if let (Some(under_way), Ok(Sent::Answer(answer)), Outcome::Success { .. }) = (under_way, &came, outcome) {
                under_way.came(answer.body.len());
            }
            pass.finish(outcome);
            match came? {
                Sent::Again(next) => again = Some(next),
                Sent::Answer(answer) if !must_wait(outcome) => return Ok(answer),
                Sent::Answer(_) => {}
            }
            pass = self.limiter.acquire(call.lane, cost).await?;
        }
    }

    /// Sends although an outage keeps the gate closed, to find out whether the source is back. Every other pause is
    /// waited out.
    pub async fn get_probe(&self, request: Request) -> Result<Response, GatewayError> {
        let mut again = None;
        loop {
            self.limiter.quota_over().await?;
            self.take(&request)?;
            let (came, outcome) = self.send(&request, again.take(), None).await;
            match (came?, outcome) {
                (_, Outcome::Throttled { retry_after }) => self.limiter.note_throttled(retry_after),
                (Sent::Again(next), _) => again = Some(next),
                (Sent::Answer(answer), _) => return Ok(answer),
            }
        }
    }

    /// Begins to listen. One connection that stands takes nobody's place, so it needs no permit; but it is not asked for
    /// while the source wants to be left alone.
    pub async fn open(&self, request: Request) -> Result<OpenResponse, GatewayError> {
        self.limiter.quota_over().await?;
        self.counters.sent();
        let opened = self.transport.open(request).await.inspect_err(|_| self.counters.met(None, Met::Failed))?;
        let head = Response::new(opened.status, opened.headers.clone(), Bytes::new());
        let reading = (self.classify)(&head, self.clock().now());
        self.counters.met(None, met(reading, head.status));
        if let Reading::Throttled { retry_after } = reading {
            self.limiter.note_throttled(retry_after);
            let message = format!("status {}", head.status.as_u16());
            return Err(Failure { retry_after, ..Failure::new(FailureKind::Throttled, message) }.into());
        }
        Ok(opened)
    }

    /// Hands out the permits that time makes due; without it nobody who waits gets one. Ends with [`Gateway::stop`].
    pub async fn drive(&self) {
        self.limiter.drive().await;
    }

    /// Whoever waits for a permit is told at once, and nobody gets one any more. Requests under way go on.
    pub fn stop(&self) {
        self.limiter.stop();
    }

    /// After a stop, for whoever begins anew. What was learned of the account is still known.
    pub fn reopen(&self) {
        self.limiter.reopen();
    }

    pub fn is_stopped(&self) -> bool {
        self.limiter.is_stopped()
    }

    pub fn pause(&self, until: Moment, reason: PauseReason) {
        self.limiter.pause(until, reason);
    }

    /// Who signs in beside this gateway was told to wait: so is everybody, and it counts as a refusal.
    pub fn told_to_wait(&self, wait: Duration) {
        self.counters.met(None, Met::Throttled);
        self.limiter.pause(self.clock().moment() + wait, PauseReason::RetryAfter);
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
        self.counters.traffic()
    }

    pub fn meter(&self) -> Meter {
        self.counters.meter(self.snapshot())
    }

    pub fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    pub fn clock(&self) -> &Clock {
        self.limiter.clock()
    }

    fn take(&self, request: &Request) -> Result<(), Failure> {
        self.allowance.as_ref().map_or(Ok(()), |allowance| allowance.take(request))
    }

    async fn enter(&self, request: &Request) -> Result<Option<UnderWay<'_>>, GatewayError> {
        let Some(budget) = &self.budget else { return Ok(None) };
        let under_way = budget.enter(request, self.clock()).await?;
        // That may have taken a while.
        if self.is_stopped() { Err(Stopped.into()) } else { Ok(under_way) }
    }

    /// Hands the request over before it is awaited, so that what waits for the answer has no room for it: there are as
    /// many of these as requests under way.
    fn send<'a>(
        &'a self,
        request: &Request,
        again: Option<Box<Again>>,
        lane: Option<Lane>,
    ) -> impl Future<Output = Answered> + use<'a> {
        self.counters.sent();
        let sent_at = self.clock().moment();
        let answering = match again {
            None => self.transport.send_once(request.clone()),
            Some(again) => self.transport.go_on(*again),
        };
        async move {
            let came = answering.await;
            let outcome = self.read(&came, sent_at, lane);
            (came, outcome)
        }
    }

    /// Counts an answer, and says what it means for the throttle.
    fn read(&self, came: &Result<Sent, Failure>, sent_at: Moment, lane: Option<Lane>) -> Outcome {
        let answer = match came {
            Ok(Sent::Answer(answer)) => Some(answer),
            // What follows will tell.
            Ok(Sent::Again(_)) => return Outcome::Abandoned,
            Err(_) => None,
        };
        let reading = answer.map_or(Reading::Failed, |answer| (self.classify)(answer, self.clock().now()));
        self.count(answer, reading, lane);
        match reading {
            Reading::Served => {
                let latency = self.clock().moment().since(sent_at);
                self.counters.took(latency);
                Outcome::Success { latency }
            }
            Reading::Failed if is_lost(came) => Outcome::Lost,
            Reading::Failed => Outcome::Failed,
            Reading::Throttled { retry_after } => {
                self.learn(answer);
                Outcome::Throttled { retry_after }
            }
        }
    }

    fn learn(&self, answer: Option<&Response>) {
        if let Some(window) = answer.and_then(self.read_quota)
            && self.quota.set(window).is_ok()
        {
            self.limiter.declare(window);
        }
    }

    fn count(&self, answer: Option<&Response>, reading: Reading, lane: Option<Lane>) {
        let met = match answer {
            Some(answer) => {
                self.counters.received(answer.body.len());
                if let Some(budget) = &self.budget {
                    budget.received(answer.body.len(), self.clock().now());
                }
                met(reading, answer.status)
            }
            None => Met::Failed,
        };
        self.counters.met(lane, met);
    }
}

/// What came, and what it means for the throttle.
type Answered = (Result<Sent, Failure>, Outcome);

fn is_lost(came: &Result<Sent, Failure>) -> bool {
    matches!(came, Err(Failure { kind: FailureKind::Connect | FailureKind::Broken, .. }))
}

fn must_wait(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Throttled { .. }) && !planted(Bug::ThrottleCountsAsStrike)
}

fn met(reading: Reading, status: StatusCode) -> Met {
    match reading {
        Reading::Served if status == StatusCode::NOT_MODIFIED => Met::NotModified,
        Reading::Served => Met::Served,
        Reading::Failed => Met::Failed,
        Reading::Throttled { .. } => Met::Throttled,
    }
}
