//! The simulator as a transport: no sockets, so that an engine meets it on virtual time and every run replays.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use highwater_core::{Failure, FailureKind};
use highwater_sources::{Clock, Request, Response, Transport};

use crate::{Declared, HnSim, Message, Reply, SimRequest};

/// What the real transport allows.
const BODY_MAX: usize = 8 * 1024 * 1024;
const FIRST_BYTE: Duration = Duration::from_secs(30);
const TOTAL: Duration = Duration::from_secs(60);

pub struct SimTransport {
    sim: Arc<HnSim>,
    clock: Clock,
    /// How old the simulator was when this transport's clock began.
    age: Duration,
}

impl SimTransport {
    pub fn new(sim: Arc<HnSim>, clock: Clock, age: Duration) -> Self {
        SimTransport { sim, clock, age }
    }

    async fn carry_out(&self, request: Request) -> Result<Response, Failure> {
        let now = self.age + self.clock.moment().since_start();
        let answer = self.sim.answer(&SimRequest::get(&request.path), now);
        if answer.delay >= FIRST_BYTE || answer.reply == Reply::Hang {
            self.clock.sleep(FIRST_BYTE).await;
            return Err(Failure::new(FailureKind::Timeout, "no answer within 30 s"));
        }
        self.clock.sleep(answer.delay).await;
        match answer.reply {
            Reply::Full(message) => respond(message),
            Reply::Truncated { mut message, sent, declared: Declared::Sent } => {
                message.body.truncate(sent);
                respond(message)
            }
            Reply::Slow { message, chunk, gap } => self.drip(message, chunk, gap).await,
            Reply::Reset | Reply::ResetBody { .. } | Reply::Truncated { declared: Declared::Whole, .. } => {
                Err(Failure::new(FailureKind::Broken, "the connection broke"))
            }
            Reply::Hang => unreachable!("answered above"),
        }
    }

    async fn drip(&self, message: Message, chunk: usize, gap: Duration) -> Result<Response, Failure> {
        let drips = u32::try_from(message.body.len().div_ceil(chunk)).unwrap_or(u32::MAX);
        let whole = gap.saturating_mul(drips);
        self.clock.sleep(whole.min(TOTAL)).await;
        if whole >= TOTAL { Err(Failure::new(FailureKind::Timeout, "not done within 60 s")) } else { respond(message) }
    }
}

impl Transport for SimTransport {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Failure>> {
        Box::pin(self.carry_out(request))
    }
}

fn respond(message: Message) -> Result<Response, Failure> {
    if message.body.len() > BODY_MAX {
        return Err(Failure::new(FailureKind::TooLarge, "the body passes 8 MiB"));
    }
    let headers = message.headers.to_map(message.body.len());
    Ok(Response { status: message.status, headers, body: message.body })
}
