//! The text of HTTP/1.1: reading a request, writing the head of a reply. No sockets.

use std::{io::Write, str};

use http::StatusCode;
use memchr::memchr;

use crate::answer::{
    Accept, AcceptEncoding, ContentEncoding, EVENT_STREAM, Headers, IfNoneMatch, RetryAfter, SimRequest, Verb,
};
use crate::simulator::Takes;

/// More than any client of this API sends.
pub(super) const HEAD_MAX: usize = 16 << 10;

/// What a client that speaks HTTP/2 at once starts with; it ends like a head of HTTP/1.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// What a head ends with.
const END: &[u8] = b"\r\n\r\n";

#[derive(Debug)]
pub(super) enum Parsed<'a> {
    /// The request is not complete yet.
    Partial,
    Http2,
    Request(Head<'a>),
    /// Answer with this status and close: what follows cannot be understood.
    Refused(StatusCode),
}

#[derive(Debug)]
pub(super) struct Head<'a> {
    /// Bytes of the whole request.
    pub(super) len: usize,
    body_len: usize,
    takes: Takes,
    pub(super) request: SimRequest<'a>,
    pub(super) after: After,
}

/// What becomes of the connection after the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    KeepAlive,
    Close,
}

pub(super) fn parse(input: &[u8], takes: Takes) -> Parsed<'_> {
    if input.starts_with(PREFACE) {
        return Parsed::Http2;
    }
    let Some(len) = head_len(input) else {
        return if input.len() < HEAD_MAX { Parsed::Partial } else { Parsed::Refused(StatusCode::BAD_REQUEST) };
    };
    let text = str::from_utf8(&input[..len - END.len()]).map_err(|_| StatusCode::BAD_REQUEST);
    match text.and_then(|text| head(text, len, takes)) {
        Ok(head) if head.body_len > 0 => head.with_body(input),
        Ok(head) => Parsed::Request(head),
        Err(status) => Parsed::Refused(status),
    }
}

/// Where a head ends: behind its first empty line.
fn head_len(input: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        from += memchr(b'\n', &input[from..])? + 1;
        if input[..from].ends_with(END) {
            return Some(from);
        }
    }
}

/// A line may also end without `\r`, as HTTP lets servers be lenient; the empty one may not.
fn head(text: &str, len: usize, takes: Takes) -> Result<Head<'_>, StatusCode> {
    let (first, mut rest) = line(text);
    let (method, target, version) = words(first).ok_or(StatusCode::BAD_REQUEST)?;
    let verb = match takes {
        Takes::Gets if method != "GET" => None,
        _ => Verb::parse(method),
    };
    let verb = verb.ok_or(StatusCode::METHOD_NOT_ALLOWED)?;
    let after = if version == "HTTP/1.1" { After::KeepAlive } else { After::Close };
    let request = SimRequest { verb, ..SimRequest::get(target) };
    let mut head = Head { len, body_len: 0, takes, request, after };
    while !rest.is_empty() {
        let (header, behind) = line(rest);
        head.apply(header)?;
        rest = behind;
    }
    Ok(head)
}

/// The first line, and what is behind it.
fn line(text: &str) -> (&str, &str) {
    let (line, rest) = cut(text, b'\n').unwrap_or((text, ""));
    (line.strip_suffix('\r').unwrap_or(line), rest)
}

fn words(line: &str) -> Option<(&str, &str, &str)> {
    let (method, rest) = cut(line, b' ')?;
    let (target, version) = cut(rest, b' ')?;
    cut(version, b' ').is_none().then_some((method, target, version))
}

/// Before and behind the first such byte.
fn cut(text: &str, at: u8) -> Option<(&str, &str)> {
    debug_assert!(at.is_ascii());
    let place = memchr(at, text.as_bytes())?;
    Some((&text[..place], &text[place + 1..]))
}

impl<'a> Head<'a> {
    fn apply(&mut self, line: &'a str) -> Result<(), StatusCode> {
        let (name, value) = cut(line, b':').ok_or(StatusCode::BAD_REQUEST)?;
        let value = value.trim();
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => self.connection(value),
            6 if name.eq_ignore_ascii_case("accept") => self.request.accept = Accept::parse(value),
            13 if name.eq_ignore_ascii_case("if-none-match") => self.request.tag = IfNoneMatch::Shown(value),
            15 if name.eq_ignore_ascii_case("accept-encoding") => self.request.encoding = AcceptEncoding::parse(value),
            15 if name.eq_ignore_ascii_case(IfNoneMatch::WISH) => self.request.tag = self.request.tag.wished(value),
            13 if name.eq_ignore_ascii_case("authorization") => self.request.authorization = Some(value),
            12 if name.eq_ignore_ascii_case("content-type") => self.request.content_type = Some(value),
            14 if name.eq_ignore_ascii_case("content-length") && value != "0" => self.announce(value)?,
            17 if name.eq_ignore_ascii_case("transfer-encoding") => return Err(StatusCode::BAD_REQUEST),
            _ => {}
        }
        Ok(())
    }

    fn announce(&mut self, length: &str) -> Result<(), StatusCode> {
        let Takes::Bodies(max) = self.takes else { return Err(StatusCode::BAD_REQUEST) };
        self.body_len = length.parse().map_err(|_| StatusCode::BAD_REQUEST)?;
        if self.body_len <= max { Ok(()) } else { Err(StatusCode::PAYLOAD_TOO_LARGE) }
    }

    fn with_body(mut self, input: &'a [u8]) -> Parsed<'a> {
        let end = self.len + self.body_len;
        let Some(body) = input.get(self.len..end) else { return Parsed::Partial };
        (self.request.body, self.len) = (body, end);
        Parsed::Request(self)
    }

    fn connection(&mut self, value: &str) {
        for option in value.split(',').map(str::trim) {
            if option.eq_ignore_ascii_case("close") {
                self.after = After::Close;
            } else if option.eq_ignore_ascii_case("keep-alive") {
                self.after = After::KeepAlive;
            }
        }
    }
}

/// Writes a head that announces `content_length` bytes.
pub(super) fn write_head(
    out: &mut Vec<u8>,
    status: StatusCode,
    headers: &Headers,
    content_length: usize,
    after: After,
) {
    write_status(out, status);
    out.extend_from_slice(b"Content-Type: ");
    out.extend_from_slice(headers.content_type.as_bytes());
    out.extend_from_slice(b"\r\nCache-Control: no-cache\r\n");
    // Neither has a body; the length of a 304 would be that of the body it stands for.
    if status != StatusCode::NOT_MODIFIED && status != StatusCode::NO_CONTENT {
        // Writing to memory cannot fail.
        write!(out, "Content-Length: {content_length}\r\n").expect("a Vec takes every byte");
    }
    if let Some(etag) = headers.etag {
        write!(out, "ETag: {}\r\n", etag.as_str()).expect("a Vec takes every byte");
    }
    if headers.encoding == ContentEncoding::Gzip {
        out.extend_from_slice(b"Content-Encoding: gzip\r\n");
    }
    if let Some(RetryAfter(seconds)) = headers.retry_after {
        write!(out, "Retry-After: {seconds}\r\n").expect("a Vec takes every byte");
    }
    if let Some(challenge) = headers.challenge {
        write!(out, "WWW-Authenticate: {challenge}\r\n").expect("a Vec takes every byte");
    }
    if let Some(paging) = headers.paging {
        write!(out, "X-Total-Count: {}\r\nLink: {}\r\n", paging.total, paging.link()).expect("a Vec takes every byte");
    }
    if after == After::Close {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

fn write_status(out: &mut Vec<u8>, status: StatusCode) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or("").as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The head of a stream, whose length nobody knows.
pub(super) fn write_stream_head(out: &mut Vec<u8>) {
    write_status(out, StatusCode::OK);
    write!(out, "Content-Type: {EVENT_STREAM}\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n")
        .expect("a Vec takes every byte");
}

pub(super) fn write_redirect(out: &mut Vec<u8>, status: StatusCode, location: &str, after: After) {
    write_status(out, status);
    let close = if after == After::Close { "Connection: close\r\n" } else { "" };
    write!(out, "Location: {location}\r\nCache-Control: no-cache\r\nContent-Length: 0\r\n{close}\r\n")
        .expect("a Vec takes every byte");
}

/// One piece of a body of unknown length. An empty one would end it.
pub(super) fn write_chunk(out: &mut Vec<u8>, piece: &[u8]) {
    write!(out, "{:x}\r\n", piece.len()).expect("a Vec takes every byte");
    out.extend_from_slice(piece);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::JSON;

    fn parsed(text: &str) -> Parsed<'_> {
        parse(text.as_bytes(), Takes::Gets)
    }

    #[test]
    fn a_head_is_read_up_to_the_next_request() {
        let text = "GET /a HTTP/1.1\r\nHost: x\r\naccept-ENCODING: br, gzip\r\n\r\nGET /b";
        let Parsed::Request(head) = parsed(text) else { panic!("{:?}", parsed(text)) };
        assert_eq!((head.len, head.request.target, head.after), (55, "/a", After::KeepAlive));
        assert_eq!((head.request.encoding, head.request.accept), (AcceptEncoding::Gzip, Accept::Json));
        assert!(matches!(parsed(&text[55..]), Parsed::Partial));
    }

    #[test]
    fn lines_may_end_either_way() {
        let text = "GET /a HTTP/1.1\nHost: x\naccept-encoding: gzip\r\n\r\n";
        let Parsed::Request(head) = parsed(text) else { panic!("{:?}", parsed(text)) };
        assert_eq!((head.len, head.request.target, head.after), (text.len(), "/a", After::KeepAlive));
        assert_eq!(head.request.encoding, AcceptEncoding::Gzip);
        assert!(matches!(parsed("GET /a HTTP/1.1\n\n"), Parsed::Partial));
    }

    #[test]
    fn tags_and_streams_are_asked_for_by_headers() {
        let text =
            "GET /a HTTP/1.1\r\nAccept: text/event-stream\r\nX-Firebase-ETag: true\r\nIf-None-Match: abc\r\n\r\n";
        let Parsed::Request(head) = parsed(text) else { panic!("{:?}", parsed(text)) };
        assert_eq!((head.request.accept, head.request.tag), (Accept::EventStream, IfNoneMatch::Shown("abc")));
        let Parsed::Request(head) = parsed("GET /a HTTP/1.1\r\nx-firebase-etag: true\r\n\r\n") else { panic!() };
        assert_eq!(head.request.tag, IfNoneMatch::Wished);
    }

    #[test]
    fn the_connection_stays_as_agreed() {
        let after = |text| match parsed(text) {
            Parsed::Request(head) => head.after,
            other => panic!("{other:?}"),
        };
        assert_eq!(after("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n"), After::Close);
        assert_eq!(after("GET / HTTP/1.0\r\n\r\n"), After::Close);
        assert_eq!(after("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), After::KeepAlive);
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        for (text, status) in [
            ("POST / HTTP/1.1\r\n\r\n", StatusCode::METHOD_NOT_ALLOWED),
            ("GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", StatusCode::BAD_REQUEST),
            ("GET /\r\n\r\n", StatusCode::BAD_REQUEST),
            ("GET /a b HTTP/1.1\r\n\r\n", StatusCode::BAD_REQUEST),
            ("GET / HTTP/1.1\r\nrubbish\r\n\r\n", StatusCode::BAD_REQUEST),
        ] {
            assert!(matches!(parsed(text), Parsed::Refused(found) if found == status), "{text}");
        }
        let endless = "x".repeat(HEAD_MAX);
        assert!(matches!(parsed(&endless), Parsed::Refused(StatusCode::BAD_REQUEST)));
        assert!(matches!(parsed("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Parsed::Http2));
    }

    #[test]
    fn a_body_is_waited_for_where_bodies_are_taken() {
        let text = "POST /a HTTP/1.1\r\nAuthorization: Bearer x\r\nContent-Length: 3\r\n\r\nabcGET";
        let takes = Takes::Bodies(3);
        assert!(matches!(parse(&text.as_bytes()[..text.len() - 4], takes), Parsed::Partial));
        let Parsed::Request(head) = parse(text.as_bytes(), takes) else { panic!() };
        assert_eq!((head.len, head.request.verb, head.request.body), (text.len() - 3, Verb::Post, &b"abc"[..]));
        assert_eq!(head.request.authorization, Some("Bearer x"));
        let refused = parse(text.as_bytes(), Takes::Bodies(2));
        assert!(matches!(refused, Parsed::Refused(StatusCode::PAYLOAD_TOO_LARGE)));
        assert!(matches!(parse(b"TRACE / HTTP/1.1\r\n\r\n", takes), Parsed::Refused(StatusCode::METHOD_NOT_ALLOWED)));
    }

    #[test]
    fn a_reply_head_has_what_the_real_one_has() {
        let mut out = Vec::new();
        let headers = Headers { retry_after: Some(RetryAfter(3)), ..Headers::of(JSON) };
        write_head(&mut out, StatusCode::TOO_MANY_REQUESTS, &headers, 17, After::Close);
        let expected = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json; charset=utf-8\r\n\
            Cache-Control: no-cache\r\nContent-Length: 17\r\nRetry-After: 3\r\nConnection: close\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
