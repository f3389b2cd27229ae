//! Enough of a MIME parser to show a message as parts, and to go on where a message is broken.

mod decode;

use self::decode::{base64, quoted_printable, words};

/// Deeper than this, a part is shown as one piece.
const DEPTH_MAX: usize = 8;

#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) headers: Vec<(String, String)>,
    pub(super) kind: String,
    pub(super) filename: String,
    /// Transfer-decoded; empty for a part that has parts.
    pub(super) body: Vec<u8>,
    pub(super) parts: Vec<Part>,
}

impl Part {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(super) fn has_attachment(&self) -> bool {
        !self.filename.is_empty() || self.parts.iter().any(Part::has_attachment)
    }

    /// Whether a name of a file contains this, in lower case.
    pub(super) fn has_file(&self, part: &str) -> bool {
        self.filename.to_lowercase().contains(part) || self.parts.iter().any(|below| below.has_file(part))
    }

    /// Sub-parts by number: `0`, `1.2`; the part itself by an empty path.
    pub(super) fn at(&self, path: &str) -> Option<&Part> {
        let mut steps = path.split('.').filter(|step| !step.is_empty());
        steps.try_fold(self, |part, step| part.parts.get(step.parse::<usize>().ok()?))
    }

    /// The first leaf of a type.
    pub(super) fn first(&self, kind: &str) -> Option<&Part> {
        if self.kind == kind && self.parts.is_empty() {
            return Some(self);
        }
        self.parts.iter().find_map(|part| part.first(kind))
    }
}

pub(super) fn parse(raw: &[u8]) -> Part {
    part(raw, 0)
}

fn part(raw: &[u8], depth: usize) -> Part {
    let (head, body) = split_head(raw);
    let headers = headers(head);
    let value =
        |name: &str| headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str());
    let content_type = value("content-type").unwrap_or("text/plain");
    let kind = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let kind = if kind.contains('/') { kind } else { "text/plain".to_owned() };
    let filename = value("content-disposition").and_then(|text| parameter(text, "filename"));
    let filename = filename.or_else(|| parameter(content_type, "name")).map(|name| words(&name)).unwrap_or_default();
    let boundary = parameter(content_type, "boundary").filter(|_| kind.starts_with("multipart/") && depth < DEPTH_MAX);
    let mut found = Part { kind, filename, ..Part::default() };
    if let Some(boundary) = boundary {
        found.parts = split_parts(body, &boundary).into_iter().map(|piece| part(piece, depth + 1)).collect();
    } else if found.kind == "message/rfc822" && depth < DEPTH_MAX {
        found.parts = vec![part(body, depth + 1)];
    } else {
        found.body = match value("content-transfer-encoding").unwrap_or("").trim().to_ascii_lowercase().as_str() {
            "base64" => base64(body),
            "quoted-printable" => quoted_printable(body),
            _ => body.to_vec(),
        };
    }
    found.headers = headers;
    found
}

fn split_head(raw: &[u8]) -> (&[u8], &[u8]) {
    if let Some(body) = raw.strip_prefix(b"\r\n") {
        return (&[], body);
    }
    match raw.windows(4).position(|window| window == b"\r\n\r\n") {
        Some(end) => (&raw[..end], &raw[end + 4..]),
        None => (raw, &[]),
    }
}

/// Unfolded; what is no header line is left out.
fn headers(head: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(head);
    let mut found: Vec<(String, String)> = Vec::new();
    for line in text.split("\r\n") {
        match (line.starts_with([' ', '\t']), found.last_mut(), line.split_once(':')) {
            (true, Some((_, value)), _) => value.push_str(&format!(" {}", line.trim())),
            (false, _, Some((name, value))) => found.push((name.to_owned(), value.trim().to_owned())),
            _ => {}
        }
    }
    found
}

/// A parameter of a structured header, in pieces and percent-encoded if need be (RFC 2231).
fn parameter(value: &str, name: &str) -> Option<String> {
    let mut pieces: Vec<(usize, String)> = Vec::new();
    for field in fields(value).skip(1) {
        let Some((key, text)) = field.split_once('=') else { continue };
        let (key, text) = (key.trim().to_ascii_lowercase(), text.trim().trim_matches('"'));
        let Some(rest) = key.strip_prefix(name) else { continue };
        let (rest, encoded) = rest.strip_suffix('*').map_or((rest, false), |rest| (rest, true));
        let at = match rest.strip_prefix('*').map(str::parse) {
            None if rest.is_empty() => 0,
            Some(Ok(at)) => at,
            _ => continue,
        };
        pieces.push((at, if encoded { percent(text) } else { text.to_owned() }));
    }
    pieces.sort_by_key(|(at, _)| *at);
    (!pieces.is_empty()).then(|| pieces.into_iter().map(|(_, text)| text).collect())
}

/// Between semicolons that no quotes hide.
fn fields(value: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    value.split(move |character| {
        quoted ^= character == '"';
        character == ';' && !quoted
    })
}

fn percent(text: &str) -> String {
    let text = text.rsplit('\'').next().unwrap_or(text);
    super::params::decode(&text.replace('+', "%2B"))
}

fn split_parts<'a>(body: &'a [u8], boundary: &str) -> Vec<&'a [u8]> {
    let mark = format!("--{boundary}");
    let (mut parts, mut start, mut at) = (Vec::new(), None, 0);
    while at < body.len() {
        let end = body[at..].windows(2).position(|pair| pair == b"\r\n").map_or(body.len(), |len| at + len + 2);
        if let Some(rest) = body[at..end].strip_prefix(mark.as_bytes()) {
            if let Some(start) = start {
                parts.push(&body[start..at.saturating_sub(2).max(start)]);
            }
            start = (!rest.starts_with(b"--")).then_some(end);
        }
        at = end;
    }
    if let Some(start) = start {
        parts.push(&body[start..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: &[u8] = b"From: a\r\nSubject: long\r\n  one\r\nContent-Type: multipart/mixed; boundary=\"b\"\r\n\r\nignored\r\n\
        --b\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nf=C3=BCr=\r\n x\r\n\
        --b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename*0*=UTF-8''%C3%9C%20; filename*1=\"a.pdf\"\r\n\
        Content-Transfer-Encoding: base64\r\n\r\naGFs\r\nbG8=\r\n--b--\r\n";

    #[test]
    fn parts_are_found_named_and_decoded() {
        let mail = parse(MAIL);
        assert_eq!(mail.header("SUBJECT"), Some("long one"));
        assert_eq!(mail.at("0").unwrap().body, "für x".as_bytes());
        let file = mail.at("1").unwrap();
        assert_eq!((file.filename.as_str(), file.body.as_slice()), ("Ü a.pdf", &b"hallo"[..]));
        assert!(mail.at("2").is_none() && mail.at("").is_some());
    }

    #[test]
    fn quotes_hide_semicolons() {
        let disposition = "attachment; filename=\"a; b, c.pdf\"; size=3";
        assert_eq!(parameter(disposition, "filename").as_deref(), Some("a; b, c.pdf"));
        assert_eq!(parameter(disposition, "size").as_deref(), Some("3"));
    }

    #[test]
    fn what_is_broken_is_still_shown() {
        assert_eq!(parse(b"").kind, "text/plain");
        assert_eq!(parse(b"\r\nbody").body, b"body");
        assert_eq!(parse(b"no colon\r\n\r\nbody").headers.len(), 0);
        let open = parse(b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\nrest");
        assert_eq!(open.at("0").unwrap().body, b"rest");
    }
}
