//! One request, as much of it as matters here.

use http::{HeaderMap, HeaderName, header};

use super::IfNoneMatch;

#[derive(Clone, Copy, Debug)]
pub struct SimRequest<'a> {
    pub verb: Verb,
    /// Path and query, as in the request line.
    pub target: &'a str,
    pub encoding: AcceptEncoding,
    pub accept: Accept,
    pub tag: IfNoneMatch<'a>,
    pub arrival: Arrival,
    pub authorization: Option<&'a str>,
    pub content_type: Option<&'a str>,
    pub body: &'a [u8],
}

impl<'a> SimRequest<'a> {
    pub const fn get(target: &'a str) -> Self {
        SimRequest {
            verb: Verb::Get,
            target,
            encoding: AcceptEncoding::Identity,
            accept: Accept::Json,
            tag: IfNoneMatch::Unasked,
            arrival: Arrival::FirstHand,
            authorization: None,
            content_type: None,
            body: &[],
        }
    }

    /// Without `Accept-Encoding`, which is the business of whoever carries bodies.
    pub fn with_headers(target: &'a str, headers: &'a HeaderMap) -> Self {
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let mut request = SimRequest::get(target);
        if let Some(types) = text(header::ACCEPT) {
            request.accept = Accept::parse(types);
        }
        if let Some(wish) = text(HeaderName::from_static(IfNoneMatch::WISH)) {
            request.tag = request.tag.wished(wish);
        }
        if let Some(shown) = text(header::IF_NONE_MATCH) {
            request.tag = IfNoneMatch::Shown(shown);
        }
        request.authorization = text(header::AUTHORIZATION);
        request.content_type = text(header::CONTENT_TYPE);
        request
    }

    pub const fn sending(self, verb: Verb, body: &'a [u8]) -> Self {
        SimRequest { verb, body, ..self }
    }

    pub const fn authorized(self, authorization: &'a str) -> Self {
        SimRequest { authorization: Some(authorization), ..self }
    }

    pub const fn typed(self, content_type: &'a str) -> Self {
        SimRequest { content_type: Some(content_type), ..self }
    }

    pub const fn accepting(self, encoding: AcceptEncoding) -> Self {
        SimRequest { encoding, ..self }
    }

    pub const fn streamed(self) -> Self {
        SimRequest { accept: Accept::EventStream, ..self }
    }
}

/// The methods that some simulated API knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    pub fn parse(method: &str) -> Option<Self> {
        match method {
            "GET" => Some(Verb::Get),
            "POST" => Some(Verb::Post),
            "PUT" => Some(Verb::Put),
            "PATCH" => Some(Verb::Patch),
            "DELETE" => Some(Verb::Delete),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcceptEncoding {
    #[default]
    Identity,
    Gzip,
}

impl AcceptEncoding {
    /// Reads an `Accept-Encoding` value; weights other than a refusal by `q=0` make no difference.
    pub fn parse(value: &str) -> Self {
        // What most clients say, some tens of thousands of times a second.
        if value == "gzip" {
            return AcceptEncoding::Gzip;
        }
        let gzip = value.split(',').map(str::trim).any(|coding| {
            let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
            name.trim().eq_ignore_ascii_case("gzip") && !matches!(weight.trim(), "q=0" | "q=0.0")
        });
        if gzip { AcceptEncoding::Gzip } else { AcceptEncoding::Identity }
    }
}

/// The form a client wants a node in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accept {
    #[default]
    Json,
    EventStream,
}

impl Accept {
    pub fn parse(value: &str) -> Self {
        let kind = |part: &str| part.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case(super::EVENT_STREAM);
        if value.split(',').any(kind) { Accept::EventStream } else { Accept::Json }
    }
}

/// How a request came here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrival {
    #[default]
    FirstHand,
    /// To where a redirect had sent it.
    Redirected,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_encoding_is_read_as_a_list() {
        for yes in ["gzip", "deflate, gzip;q=0.5", "br, GZIP"] {
            assert_eq!(AcceptEncoding::parse(yes), AcceptEncoding::Gzip, "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "x-gzipped"] {
            assert_eq!(AcceptEncoding::parse(no), AcceptEncoding::Identity, "{no}");
        }
    }

    #[test]
    fn a_stream_is_asked_for_by_its_type() {
        for (value, expected) in [
            ("text/event-stream", Accept::EventStream),
            ("text/html, Text/Event-Stream;q=0.9", Accept::EventStream),
            ("*/*", Accept::Json),
            ("application/json", Accept::Json),
        ] {
            assert_eq!(Accept::parse(value), expected, "{value}");
        }
    }
}
