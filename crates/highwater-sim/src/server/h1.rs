//! One HTTP/1.1 connection. Replies go out in the order of the requests; requests that arrive together are answered
//! in one write.

use std::{io, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use http::StatusCode;
use socket2::SockRef;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::sleep,
};

use super::{
    Due, Line, events,
    wire::{self, After, HEAD_MAX, Parsed},
};
use crate::{
    answer::{Answer, Declared, Headers, JSON, Message, Reply},
    hn::Opening,
    simulator::Simulator,
};

/// Beyond this a write is due even if more requests wait.
const OUTPUT_MAX: usize = 64 << 10;

pub(super) enum Ended {
    Closed,
    /// The client speaks HTTP/2; `read` are its first bytes.
    Http2 {
        stream: TcpStream,
        read: Bytes,
    },
}

pub(super) async fn run<S: Simulator>(stream: TcpStream, line: &Line<S>) -> io::Result<Ended> {
    let input = BytesMut::with_capacity(4 << 10);
    let mut connection = Connection { stream, input, output: Vec::with_capacity(4 << 10) };
    loop {
        match connection.next(line) {
            Next::Read if connection.read().await? => {}
            Next::Read => return Ok(Ended::Closed),
            Next::Http2 => {
                return Ok(Ended::Http2 { stream: connection.stream, read: connection.input.freeze() });
            }
            Next::Refuse(status) => return connection.refuse(status).await.map(|()| Ended::Closed),
            Next::Due(Due::Answer(answer), after) => {
                let _in_flight = line.site.sim.in_flight().enter();
                if connection.deliver(answer, after).await? == After::Close {
                    return Ok(Ended::Closed);
                }
            }
            Next::Due(Due::Open(opening), after) => {
                if connection.open(*opening, after, line).await? == After::Close {
                    return Ok(Ended::Closed);
                }
            }
        }
    }
}

pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) input: BytesMut,
    pub(super) output: Vec<u8>,
}

enum Next {
    Read,
    Http2,
    Refuse(StatusCode),
    Due(Due, After),
}

impl Connection {
    fn next<S: Simulator>(&mut self, line: &Line<S>) -> Next {
        match wire::parse(&self.input, S::TAKES) {
            Parsed::Partial => Next::Read,
            Parsed::Http2 => Next::Http2,
            Parsed::Refused(status) => Next::Refuse(status),
            Parsed::Request(head) => {
                let (due, after, len) = (line.due(&head.request), head.after, head.len);
                self.input.advance(len);
                Next::Due(due, after)
            }
        }
    }

    /// False at the end of the stream.
    async fn read(&mut self) -> io::Result<bool> {
        self.flush().await?;
        self.input.reserve(HEAD_MAX / 4);
        Ok(self.stream.read_buf(&mut self.input).await? > 0)
    }

    pub(super) async fn flush(&mut self) -> io::Result<()> {
        if !self.output.is_empty() {
            self.stream.write_all(&self.output).await?;
            self.output.clear();
            self.output.shrink_to(OUTPUT_MAX);
        }
        Ok(())
    }

    async fn pause(&mut self, delay: Duration) -> io::Result<()> {
        if !delay.is_zero() {
            self.flush().await?;
            sleep(delay).await;
        }
        Ok(())
    }

    async fn open<S: Simulator>(&mut self, opening: Opening, after: After, line: &Line<S>) -> io::Result<After> {
        match opening {
            Opening::Answer(answer) => self.deliver(answer, after).await,
            Opening::Moved { delay, moved } => {
                self.pause(delay).await?;
                wire::write_redirect(
                    &mut self.output,
                    StatusCode::TEMPORARY_REDIRECT,
                    &moved.location(line.elsewhere()),
                    after,
                );
                self.settle(after).await
            }
            Opening::Stream { delay, stream } => {
                self.pause(delay).await?;
                events::run(self, stream, line).await
            }
        }
    }

    async fn deliver(&mut self, answer: Answer, after: After) -> io::Result<After> {
        self.pause(answer.delay).await?;
        match answer.reply {
            Reply::Full(message) => self.full(&message, after).await,
            Reply::Found { location } => {
                wire::write_redirect(&mut self.output, StatusCode::FOUND, &location, after);
                self.settle(after).await
            }
            Reply::Reset => self.reset().await,
            Reply::ResetBody { message, sent } => {
                self.part(&message, sent, message.body.len(), after);
                self.reset().await
            }
            Reply::Truncated { message, sent, declared: Declared::Whole } => {
                self.part(&message, sent, message.body.len(), after);
                self.close().await
            }
            Reply::Truncated { message, sent, declared: Declared::Sent } => {
                self.part(&message, sent, sent, after);
                self.settle(after).await
            }
            Reply::Slow { message, chunk, gap } => self.drip(&message, chunk, gap, after).await,
            Reply::Hang => self.hang().await,
        }
    }

    async fn full(&mut self, message: &Message, after: After) -> io::Result<After> {
        self.part(message, message.body.len(), message.body.len(), after);
        self.settle(after).await
    }

    fn part(&mut self, message: &Message, sent: usize, declared: usize, after: After) {
        wire::write_head(&mut self.output, message.status, &message.headers, declared, after);
        self.output.extend_from_slice(&message.body[..sent]);
    }

    async fn settle(&mut self, after: After) -> io::Result<After> {
        match after {
            After::Close => self.close().await,
            After::KeepAlive if self.output.len() > OUTPUT_MAX => self.flush().await.map(|()| after),
            After::KeepAlive => Ok(after),
        }
    }

    async fn drip(&mut self, message: &Message, chunk: usize, gap: Duration, after: After) -> io::Result<After> {
        self.part(message, 0, message.body.len(), after);
        self.flush().await?;
        for piece in message.body.chunks(chunk) {
            sleep(gap).await;
            self.stream.write_all(piece).await?;
        }
        self.settle(after).await
    }

    async fn refuse(&mut self, status: StatusCode) -> io::Result<()> {
        let message = Message { status, headers: Headers::of(JSON), body: Bytes::from_static(b"null") };
        self.full(&message, After::Close).await.map(|_| ())
    }

    pub(super) async fn close(&mut self) -> io::Result<After> {
        self.flush().await?;
        self.stream.shutdown().await?;
        Ok(After::Close)
    }

    /// With no time to linger the kernel sends RST instead of FIN when the socket is dropped.
    pub(super) async fn reset(&mut self) -> io::Result<After> {
        self.flush().await?;
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO))?;
        Ok(After::Close)
    }

    /// Reads on, and forgets, until the client gives up.
    async fn hang(&mut self) -> io::Result<After> {
        self.flush().await?;
        self.input.clear();
        while self.stream.read_buf(&mut self.input).await? > 0 {
            self.input.clear();
        }
        Ok(After::Close)
    }
}
