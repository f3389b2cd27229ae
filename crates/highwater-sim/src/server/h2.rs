//! One HTTP/2 connection, by hyper. Many requests share it, so what would reset the connection in HTTP/1.1 resets
//! the one stream here.

use std::{
    io::{self, Cursor},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use http::{Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Limited};
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    rt::Executor,
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::AsyncReadExt,
    net::TcpStream,
    time::{Sleep, sleep},
};

use super::{Due, Line, Site};
use crate::{
    answer::{AcceptEncoding, Answer, Declared, EVENT_STREAM, Headers, JSON, Message, Reply, SimRequest, Verb},
    hn::{EventStream, Opening, StreamStep},
    simulator::{Simulator, Takes},
    stats::Entered,
};

/// A reset drops the frames of its stream that are not written yet; this is their time to get out.
const RESET_PAUSE: Duration = Duration::from_millis(5);

pub(super) async fn run<S: Simulator>(stream: TcpStream, read: Bytes, line: Line<S>) -> io::Result<()> {
    let (reader, writer) = stream.into_split();
    let io = TokioIo::new(tokio::io::join(Cursor::new(read).chain(reader), writer));
    let service = service_fn(|request| respond(request, line.clone()));
    let serving = http2::Builder::new(Tracked(Arc::clone(&line.site))).serve_connection(io, service);
    serving.await.map_err(io::Error::other)
}

/// Runs hyper's stream tasks where the shutdown ends and awaits them.
struct Tracked<S>(Arc<Site<S>>);

impl<S> Clone for Tracked<S> {
    fn clone(&self) -> Self {
        Tracked(Arc::clone(&self.0))
    }
}

impl<S: Simulator, F> Executor<F> for Tracked<S>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let shutdown = self.0.shutdown.clone();
        self.0.tasks.spawn(async move { shutdown.run_until_cancelled(stream).await.is_some() });
    }
}

/// An error makes hyper reset the stream.
async fn respond<S: Simulator>(request: Request<Incoming>, line: Line<S>) -> Result<Response<Sent>, StreamReset> {
    let (head, body) = request.into_parts();
    let body = match S::TAKES {
        Takes::Bodies(max) => Limited::new(body, max).collect().await.map_err(|_| StreamReset)?.to_bytes(),
        Takes::Gets => Bytes::new(),
    };
    match due(&head, &body, &line) {
        Due::Answer(answer) => {
            let _in_flight: Entered<'_> = line.site.sim.in_flight().enter();
            deliver(answer).await.map(|response| response.map(Sent::Body))
        }
        Due::Open(opening) => open(*opening, line).await,
    }
}

async fn deliver(answer: Answer) -> Result<Response<Paced>, StreamReset> {
    if !answer.delay.is_zero() {
        sleep(answer.delay).await;
    }
    match answer.reply {
        Reply::Full(message) => Ok(whole(message)),
        Reply::Found { location } => found(&location),
        Reply::Reset => Err(StreamReset),
        Reply::ResetBody { message, sent } => {
            let length = message.body.len();
            Ok(part(message, sent, length, End::Reset))
        }
        Reply::Truncated { message, sent, declared } => {
            let length = if declared == Declared::Whole { message.body.len() } else { sent };
            Ok(part(message, sent, length, End::Clean))
        }
        Reply::Slow { message, chunk, gap } => {
            let mut response = whole(message);
            (response.body_mut().chunk, response.body_mut().gap) = (chunk, gap);
            Ok(response)
        }
        Reply::Hang => std::future::pending().await,
    }
}

async fn open<S: Simulator>(opening: Opening, line: Line<S>) -> Result<Response<Sent>, StreamReset> {
    let (delay, response) = match opening {
        Opening::Answer(answer) => return deliver(answer).await.map(|response| response.map(Sent::Body)),
        Opening::Moved { delay, moved } => {
            let head = Response::builder().status(StatusCode::TEMPORARY_REDIRECT);
            let head = head.header(header::LOCATION, moved.location(line.elsewhere()));
            (delay, head.body(Sent::Body(Paced::new(Bytes::new(), End::Clean))))
        }
        Opening::Stream { delay, stream } => {
            let head = Response::builder().header(header::CONTENT_TYPE, EVENT_STREAM);
            (delay, head.header(header::CACHE_CONTROL, "no-cache").body(Sent::events(stream, line)))
        }
    };
    sleep(delay).await;
    response.map_err(|_| StreamReset)
}

fn found(location: &str) -> Result<Response<Paced>, StreamReset> {
    let head = Response::builder().status(StatusCode::FOUND).header(header::LOCATION, location);
    head.body(Paced::new(Bytes::new(), End::Clean)).map_err(|_| StreamReset)
}

fn due<S: Simulator>(head: &Parts, body: &[u8], line: &Line<S>) -> Due {
    let verb = Verb::parse(head.method.as_str()).filter(|verb| *verb == Verb::Get || S::TAKES != Takes::Gets);
    let Some(verb) = verb else {
        let message = Message::new(StatusCode::METHOD_NOT_ALLOWED, JSON, Bytes::from_static(b"null"));
        return Due::Answer(Answer { delay: Duration::ZERO, reply: Reply::Full(message) });
    };
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let accepted = head.headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let encoding = accepted.map_or(AcceptEncoding::Identity, AcceptEncoding::parse);
    line.due(&SimRequest::with_headers(target, &head.headers).sending(verb, body).accepting(encoding))
}

fn whole(message: Message) -> Response<Paced> {
    let length = message.body.len();
    part(message, length, length, End::Clean)
}

fn part(message: Message, sent: usize, declared: usize, end: End) -> Response<Paced> {
    let body = Paced::new(message.body.slice(..sent), end);
    let mut response = Response::new(body);
    *response.status_mut() = message.status;
    *response.headers_mut() = Headers::to_map(message.headers, declared);
    response
}

#[derive(Debug, thiserror::Error)]
#[error("the plan resets this stream")]
struct StreamReset;

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Clean,
    Reset,
}

/// What goes out after a head.
enum Sent {
    Body(Paced),
    Events(BoxStream<'static, Result<Frame<Bytes>, StreamReset>>),
}

impl Sent {
    fn events<S: Simulator>(stream: EventStream, line: Line<S>) -> Self {
        let events = stream::unfold(Some((stream, line)), async |open| {
            let (mut stream, line) = open?;
            match stream.next(|| line.now()).await {
                StreamStep::Send(piece) => Some((Ok(Frame::data(piece)), Some((stream, line)))),
                StreamStep::End => None,
                StreamStep::Reset => {
                    sleep(RESET_PAUSE).await;
                    Some((Err(StreamReset), None))
                }
            }
        });
        Sent::Events(Box::pin(events))
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = StreamReset;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamReset>>> {
        match &mut *self {
            Sent::Body(body) => Pin::new(body).poll_frame(cx),
            Sent::Events(events) => events.as_mut().poll_next(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Sent::Body(body) if body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Sent::Body(body) => body.size_hint(),
            Sent::Events(_) => SizeHint::default(),
        }
    }
}

/// A body in pieces, with a pause before each, and an end that may be a reset.
struct Paced {
    rest: Bytes,
    chunk: usize,
    gap: Duration,
    pause: Option<Pin<Box<Sleep>>>,
    end: End,
}

impl Paced {
    fn new(rest: Bytes, end: End) -> Self {
        let gap = if end == End::Reset { RESET_PAUSE } else { Duration::ZERO };
        Paced { rest, chunk: usize::MAX, gap, pause: None, end }
    }

    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.gap.is_zero() {
            let gap = self.gap;
            let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(gap)));
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        Poll::Ready(())
    }
}

impl Body for Paced {
    type Data = Bytes;
    type Error = StreamReset;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamReset>>> {
        if self.rest.is_empty() && self.end == End::Clean {
            return Poll::Ready(None);
        }
        ready!(self.poll_pause(cx));
        if self.rest.is_empty() {
            return Poll::Ready(Some(Err(StreamReset)));
        }
        let len = self.chunk.min(self.rest.len());
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(len)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.end == End::Clean
    }

    fn size_hint(&self) -> SizeHint {
        match self.end {
            End::Clean => SizeHint::with_exact(self.rest.len() as u64),
            End::Reset => SizeHint::default(),
        }
    }
}
