//! The simulator as a transport: no sockets, so that an engine meets it on virtual time and every run replays.

mod chunks;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use highwater_core::{Failure, FailureKind};
use highwater_sources::{Clock, OpenResponse, Request, Response, Transport};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use self::chunks::{Once, SimChunks};
use crate::{
    Answer, Arrival, Declared, EVENT_STREAM, EventStream, HnSim, Message, Opening, Reply, SimRequest, Simulator, Verb,
    answer::Accept,
};

/// What the real transport allows.
const BODY_MAX: usize = 8 * 1024 * 1024;
const FIRST_BYTE: Duration = Duration::from_secs(30);
const TOTAL: Duration = Duration::from_secs(60);

pub struct SimTransport<S = HnSim> {
    sim: Arc<S>,
    time: SimTime,
    body_max: usize,
}

/// The time since the start of the simulation.
#[derive(Clone)]
struct SimTime {
    clock: Clock,
    /// How old the simulator was when this transport's clock began.
    age: Duration,
}

impl SimTime {
    fn now(&self) -> Duration {
        self.age + self.clock.moment().since_start()
    }
}

impl<S: Simulator> SimTransport<S> {
    pub fn new(sim: Arc<S>, clock: Clock, age: Duration) -> Self {
        SimTransport { sim, time: SimTime { clock, age }, body_max: BODY_MAX }
    }

    /// Answers up to so many bytes instead of 8 MiB.
    pub fn allowing(self, body_max: usize) -> Self {
        SimTransport { body_max, ..self }
    }

    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        let verb = Verb::parse(request.method.as_str())
            .ok_or_else(|| Failure::new(FailureKind::Internal, "no simulated API knows this method"))?;
        let asked = SimRequest::with_headers(&request.path, &request.headers).sending(verb, &request.body);
        let _in_flight = self.sim.in_flight().enter();
        let answer = self.sim.answer(&asked, self.time.now());
        self.carry_out(answer).await
    }

    async fn carry_out(&self, answer: Answer) -> Result<Response, Failure> {
        self.pause(if answer.reply == Reply::Hang { FIRST_BYTE } else { answer.delay }).await?;
        match answer.reply {
            Reply::Full(message) => self.respond(message),
            Reply::Found { location } => Ok(found(&location)),
            Reply::Truncated { mut message, sent, declared: Declared::Sent } => {
                message.body.truncate(sent);
                self.respond(message)
            }
            Reply::Slow { message, chunk, gap } => self.drip(message, chunk, gap).await,
            Reply::Reset | Reply::ResetBody { .. } | Reply::Truncated { declared: Declared::Whole, .. } => {
                Err(Failure::new(FailureKind::Broken, "the connection broke"))
            }
            Reply::Hang => unreachable!("no client waits so long"),
        }
    }

    async fn pause(&self, delay: Duration) -> Result<(), Failure> {
        self.time.clock.sleep(delay.min(FIRST_BYTE)).await;
        if delay >= FIRST_BYTE { Err(Failure::new(FailureKind::Timeout, "no answer within 30 s")) } else { Ok(()) }
    }

    async fn drip(&self, message: Message, chunk: usize, gap: Duration) -> Result<Response, Failure> {
        let drips = u32::try_from(message.body.len().div_ceil(chunk)).unwrap_or(u32::MAX);
        let whole = gap.saturating_mul(drips);
        self.time.clock.sleep(whole.min(TOTAL)).await;
        if whole >= TOTAL {
            Err(Failure::new(FailureKind::Timeout, "not done within 60 s"))
        } else {
            self.respond(message)
        }
    }

    async fn begin(&self, request: Request) -> Result<OpenResponse, Failure> {
        let mut asked = SimRequest::with_headers(&request.path, &request.headers);
        if asked.accept == Accept::Json {
            return self.exchange(request.clone()).await.map(at_once);
        }
        loop {
            match self.sim.open_stream(&asked, self.time.now()) {
                Opening::Answer(answer) => return self.carry_out(answer).await.map(at_once),
                Opening::Moved { delay, .. } => {
                    self.pause(delay).await?;
                    asked.arrival = Arrival::Redirected;
                }
                Opening::Stream { delay, stream } => {
                    self.pause(delay).await?;
                    return Ok(self.streaming(stream));
                }
            }
        }
    }

    fn respond(&self, message: Message) -> Result<Response, Failure> {
        if message.body.len() > self.body_max {
            return Err(Failure::new(FailureKind::TooLarge, format!("the body passes {} bytes", self.body_max)));
        }
        let headers = message.headers.to_map(message.body.len());
        Ok(Response::new(message.status, headers, message.body))
    }

    fn streaming(&self, stream: EventStream) -> OpenResponse {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let chunks = Box::new(SimChunks::new(stream, self.time.clone()));
        OpenResponse { status: StatusCode::OK, headers, chunks }
    }
}

impl<S: Simulator> Transport for SimTransport<S> {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Failure>> {
        Box::pin(self.exchange(request))
    }

    fn open(&self, request: Request) -> BoxFuture<'_, Result<OpenResponse, Failure>> {
        Box::pin(self.begin(request))
    }
}

fn found(location: &str) -> Response {
    let location = HeaderValue::from_str(location).ok().map(|value| (header::LOCATION, value));
    Response::new(StatusCode::FOUND, HeaderMap::from_iter(location), Bytes::new())
}

fn at_once(response: Response) -> OpenResponse {
    let Response { status, headers, body, .. } = response;
    OpenResponse { status, headers, chunks: Box::new(Once::new(body)) }
}
