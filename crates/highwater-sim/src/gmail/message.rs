//! Messages as the API shows them, in each format.

use std::time::Duration;

use base64::{
    Engine as _,
    engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use super::{
    error::ApiError,
    fault::GmailFault,
    mailbox::{Entry, hex},
    mime::{self, Part},
    params::Params,
};
use crate::rng::{Purpose, Seed, scale};

/// Leaves above this size come as attachments even without a name.
const INLINE_MAX: usize = 64 << 10;
const SNIPPET_MAX: usize = 180;
/// Only the beginning of a message is read for it: most requests want the bytes and not their meaning.
const SNIPPET_SOURCE: usize = 8 << 10;
/// What real ids of attachments begin with.
const ATTACHMENT: &str = "ANGjdJ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Minimal,
    Metadata,
    Full,
    Raw,
}

impl Format {
    pub(super) fn parse(params: &Params) -> Result<Self, ApiError> {
        match params.first("format").unwrap_or("full").to_ascii_lowercase().as_str() {
            "minimal" => Ok(Format::Minimal),
            "metadata" => Ok(Format::Metadata),
            "full" => Ok(Format::Full),
            "raw" => Ok(Format::Raw),
            other => Err(ApiError::invalid(format!("Invalid value at 'format': \"{other}\""))),
        }
    }
}

/// Shows messages; knows nothing of the mailbox.
pub(super) struct Painter<'a> {
    pub(super) seed: Seed,
    pub(super) format: Format,
    pub(super) padded: bool,
    pub(super) params: &'a Params,
    pub(super) now: Duration,
    pub(super) fault: Option<GmailFault>,
}

impl Painter<'_> {
    pub(super) fn message(&self, entry: &Entry, labels: Vec<String>, raw: &[u8]) -> Value {
        let mut shown = json!({
            "id": hex(entry.id),
            "threadId": hex(entry.thread),
            "snippet": snippet(&mime::parse(&raw[..raw.len().min(SNIPPET_SOURCE)])),
            "historyId": entry.history.to_string(),
            "internalDate": entry.date().to_string(),
            "sizeEstimate": size_estimate(self.seed, entry, raw.len()),
        });
        if !labels.is_empty() {
            shown["labelIds"] = json!(labels);
        }
        match self.format {
            Format::Minimal => {}
            Format::Metadata => {
                let parsed = mime::parse(raw);
                shown["payload"] = json!({ "mimeType": parsed.kind, "headers": self.headers(&parsed) });
            }
            Format::Full => shown["payload"] = self.part(&mime::parse(raw), String::new(), entry),
            Format::Raw => {
                if let Some(text) = self.raw(raw) {
                    shown["raw"] = Value::String(text);
                }
            }
        }
        shown
    }

    pub(super) fn encode(&self, bytes: &[u8]) -> String {
        if self.padded { URL_SAFE.encode(bytes) } else { URL_SAFE_NO_PAD.encode(bytes) }
    }

    fn raw(&self, raw: &[u8]) -> Option<String> {
        match self.fault {
            Some(GmailFault::RawMissing) => None,
            Some(GmailFault::RawTruncated) => {
                // One character more than whole bytes have, so that the cut can be seen.
                let mut text = URL_SAFE_NO_PAD.encode(&raw[..raw.len() / 6 * 3]);
                text.push('A');
                Some(text)
            }
            Some(GmailFault::RawUndecodable) => Some(format!("%{}", self.encode(raw))),
            _ => Some(self.encode(raw)),
        }
    }

    /// Another one each time: it names the part, how often the message was asked for, and when.
    fn attachment_id(&self, entry: &Entry, path: &str) -> String {
        let inner = format!("{path}/{}/{}", entry.gets, self.now.as_millis());
        format!("{ATTACHMENT}{}", URL_SAFE_NO_PAD.encode(inner))
    }

    fn headers(&self, part: &Part) -> Vec<Value> {
        let wanted: Vec<&str> = self.params.all("metadataHeaders").collect();
        let shown = part.headers.iter().filter(|(name, _)| {
            self.format != Format::Metadata
                || wanted.is_empty()
                || wanted.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
        });
        shown.map(|(name, value)| json!({ "name": name, "value": value })).collect()
    }

    fn part(&self, part: &Part, path: String, entry: &Entry) -> Value {
        let attached = part.parts.is_empty() && (!part.filename.is_empty() || part.body.len() > INLINE_MAX);
        let mut body = json!({ "size": part.body.len() });
        if attached {
            body["attachmentId"] = json!(self.attachment_id(entry, &path));
        } else if part.parts.is_empty() && !part.body.is_empty() {
            body["data"] = json!(self.encode(&part.body));
        }
        let mut shown = json!({
            "partId": path, "mimeType": part.kind, "filename": part.filename, "headers": self.headers(part), "body": body,
        });
        if !part.parts.is_empty() {
            let below = |at: usize| if path.is_empty() { at.to_string() } else { format!("{path}.{at}") };
            let parts = part.parts.iter().enumerate().map(|(at, part)| self.part(part, below(at), entry));
            shown["parts"] = parts.collect();
        }
        shown
    }
}

/// A little off, as the name promises.
pub(super) fn size_estimate(seed: Seed, entry: &Entry, len: usize) -> u64 {
    len as u64 + scale(seed.hash(Purpose::Odd, entry.id), 3)
}

/// The part that an attachment's id names, and when that id was given.
pub(super) fn attachment_path(id: &str) -> Option<(String, Duration)> {
    let inner = URL_SAFE_NO_PAD.decode(id.strip_prefix(ATTACHMENT)?).ok()?;
    let text = String::from_utf8(inner).ok()?;
    let mut words = text.split('/');
    let (path, _, given) = (words.next()?, words.next()?, words.next()?);
    Some((path.to_owned(), Duration::from_millis(given.parse().ok()?)))
}

fn snippet(message: &Part) -> String {
    let text = message.first("text/plain").or_else(|| message.first("text/html"));
    let text = text.map(|part| String::from_utf8_lossy(&part.body).into_owned()).unwrap_or_default();
    let mut bare = String::with_capacity(SNIPPET_MAX);
    let mut in_tag = false;
    for character in text.split_whitespace().flat_map(|word| word.chars().chain([' '])) {
        match character {
            '<' => in_tag = true,
            '>' if in_tag => in_tag = false,
            _ if in_tag || bare.len() >= SNIPPET_MAX => {}
            '&' => bare.push_str("&amp;"),
            '"' => bare.push_str("&quot;"),
            '\'' => bare.push_str("&#39;"),
            other => bare.push(other),
        }
    }
    bare.trim().to_owned()
}
