//! What a simulator is asked and what it answers, as plain data. A server or an in-process transport turns an
//! [`Answer`] into bytes, pauses and broken connections; nothing here does I/O.

mod etag;
mod request;

use std::{io::Write, time::Duration};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

pub use self::{
    etag::{Etag, IfNoneMatch},
    request::{Accept, AcceptEncoding, Arrival, SimRequest, Verb},
};

pub const JSON: &str = "application/json; charset=utf-8";
pub const JSON_LINES: &str = "application/x-ndjson; charset=utf-8";
pub const HTML: &str = "text/html; charset=utf-8";
pub const EVENT_STREAM: &str = "text/event-stream";

/// Wait `delay`, then do `reply`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub delay: Duration,
    pub reply: Reply,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Full(Message),
    /// 302: what is asked for is at `location`.
    Found {
        location: String,
    },
    /// The connection is reset before any byte of the reply.
    Reset,
    /// The head and `sent` bytes of the body, then the connection is reset.
    ResetBody {
        message: Message,
        sent: usize,
    },
    /// Only `sent` bytes of the body are sent.
    Truncated {
        message: Message,
        sent: usize,
        declared: Declared,
    },
    /// The body in pieces of `chunk` bytes, with `gap` before each.
    Slow {
        message: Message,
        chunk: usize,
        gap: Duration,
    },
    /// No reply; the connection stays open until the client gives up.
    Hang,
}

impl Reply {
    /// `None` where no status line is sent.
    pub const fn status(&self) -> Option<StatusCode> {
        match self {
            Reply::Full(message)
            | Reply::ResetBody { message, .. }
            | Reply::Truncated { message, .. }
            | Reply::Slow { message, .. } => Some(message.status),
            Reply::Found { .. } => Some(StatusCode::FOUND),
            Reply::Reset | Reply::Hang => None,
        }
    }
}

/// What `Content-Length` says about a truncated body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// The whole length: the connection closes before the body is complete.
    Whole,
    /// The length that is sent: the connection stays usable and the body is broken.
    Sent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub status: StatusCode,
    pub headers: Headers,
    pub body: Bytes,
}

impl Message {
    pub const fn json(body: Bytes) -> Self {
        Message { status: StatusCode::OK, headers: Headers::of(JSON), body }
    }

    pub const fn new(status: StatusCode, content_type: &'static str, body: Bytes) -> Self {
        Message { status, headers: Headers::of(content_type), body }
    }

    /// The client has this body already.
    pub const fn not_modified(etag: Etag) -> Self {
        let headers = Headers { etag: Some(etag), ..Headers::of(JSON) };
        Message { status: StatusCode::NOT_MODIFIED, headers, body: Bytes::new() }
    }

    pub(crate) fn gzipped(mut self) -> Self {
        let mut encoder = GzEncoder::new(Vec::with_capacity(self.body.len() / 2), Compression::fast());
        let written = encoder.write_all(&self.body).and_then(|()| encoder.finish());
        self.body = written.expect("writing to memory cannot fail").into();
        self.headers.encoding = ContentEncoding::Gzip;
        self
    }

    pub const fn with_retry_after(mut self, retry_after: Option<RetryAfter>) -> Self {
        self.headers.retry_after = retry_after;
        self
    }
}

/// The few headers that differ between replies. `Cache-Control: no-cache` goes with every reply, `Content-Length` with
/// every reply that may have a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    pub content_type: &'static str,
    pub encoding: ContentEncoding,
    pub retry_after: Option<RetryAfter>,
    pub etag: Option<Etag>,
    /// `WWW-Authenticate`.
    pub challenge: Option<&'static str>,
    /// `X-Total-Count` and `Link`.
    pub paging: Option<Paging>,
}

impl Headers {
    pub const fn of(content_type: &'static str) -> Self {
        Headers {
            content_type,
            encoding: ContentEncoding::Identity,
            retry_after: None,
            etag: None,
            challenge: None,
            paging: None,
        }
    }

    pub fn to_map(self, content_length: usize) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(5);
        map.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        map.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        map.insert(header::CONTENT_LENGTH, HeaderValue::from(content_length));
        if let Some(value) = self.etag.and_then(|etag| HeaderValue::from_str(etag.as_str()).ok()) {
            map.insert(header::ETAG, value);
        }
        if self.encoding == ContentEncoding::Gzip {
            map.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if let Some(RetryAfter(seconds)) = self.retry_after {
            map.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(challenge) = self.challenge {
            map.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if let Some(paging) = self.paging {
            map.insert(HeaderName::from_static("x-total-count"), HeaderValue::from(paging.total));
            map.extend(HeaderValue::from_str(&paging.link()).ok().map(|link| (header::LINK, link)));
        }
        map
    }
}

/// Which page of a list this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    pub total: u64,
    pub limit: u64,
    pub offset: u64,
}

impl Paging {
    /// The value of `Link`: addresses relative to the one that was asked.
    pub fn link(&self) -> String {
        let Paging { total, limit, offset } = *self;
        let last = total.saturating_sub(1) / limit.max(1) * limit;
        let pages = [
            ("first", Some(0)),
            ("prev", offset.checked_sub(limit)),
            ("next", (offset + limit < total).then_some(offset + limit)),
            ("last", Some(last)),
        ];
        let link =
            |(name, offset): (&str, Option<u64>)| Some(format!("<?limit={limit}&offset={}>; rel=\"{name}\"", offset?));
        pages.into_iter().filter_map(link).collect::<Vec<_>>().join(", ")
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentEncoding {
    #[default]
    Identity,
    Gzip,
}

/// Whole seconds, as the header has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter(pub u32);

impl RetryAfter {
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.0 as u64)
    }
}
