//! One message: how to ask for it, and what the answer becomes.

use std::{borrow::Cow, ops::Range};

use aws_lc_rs::digest::{SHA256, digest};
use bytes::{Buf, Bytes, BytesMut};
use highwater_core::{
    Blob, Body, Failure, FailureKind, Key, Note, Record, SideRow, SidesCheck, Timestamp, Value, blob_path, hex, list,
    schema::Table,
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{
    Attachment, Mail, Mailbox, Policy, mime, packed,
    query::Query,
    raw::{self, NotBase64},
    schema::{ATTACHMENTS, RAW},
};
use crate::{Fetched, Request, escape::escaped, text};

/// The event of a message that was stored.
pub(super) const INGESTED: &str = "MESSAGE_INGESTED";

pub(super) fn request(key: &Key) -> Request {
    request_as(key, "raw")
}

/// A message without its bytes.
pub(super) fn summary_request(key: &Key) -> Request {
    request_as(key, "minimal")
}

fn request_as(key: &Key, format: &str) -> Request {
    let mut query = Query::new(&format!("messages/{}", escaped(&key.to_string())));
    query.add("format", format);
    query.request()
}

/// Whether a message is asked for, with all its bytes.
pub(super) fn is_request(request: &Request) -> bool {
    request.path.ends_with("format=raw")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    id: String,
    #[serde(default)]
    thread_id: Option<String>,
    #[serde(default)]
    label_ids: Vec<String>,
    #[serde(borrow, default)]
    snippet: Option<&'a RawValue>,
    #[serde(default)]
    internal_date: Option<Number>,
    #[serde(default)]
    size_estimate: Option<i64>,
    #[serde(borrow, default)]
    raw: Option<Cow<'a, str>>,
}

/// What an answer says of its message, without the bytes of it.
struct Head {
    id: String,
    thread: String,
    labels: Vec<String>,
    snippet: Option<String>,
    date: i64,
    size_estimate: Option<i64>,
}

/// Where the text is that the bytes of a message are written in.
enum Place {
    /// In the answer, as it came.
    Within(Range<usize>),
    /// It had to be unescaped first.
    Apart(String),
}

impl<'a> Message<'a> {
    fn read(answer: &'a [u8]) -> Result<Self, Failure> {
        serde_json::from_slice(answer).map_err(|_| malformed("the answer is not a message"))
    }

    fn into_parts(self, answer: &[u8]) -> Result<(Head, Place), Failure> {
        let date = self.internal_date.as_ref().and_then(Number::value);
        let head = Head {
            thread: self.thread_id.unwrap_or_else(|| self.id.clone()),
            id: self.id,
            labels: self.label_ids,
            snippet: self.snippet.and_then(|raw| text::read(raw.get())).map(|text| text.shown().to_owned()),
            date: date.ok_or_else(|| malformed("the message has no date"))?,
            size_estimate: self.size_estimate,
        };
        let place = match self
            .raw
            .filter(|raw| !raw.is_empty())
            .ok_or_else(|| malformed("the message came without its bytes"))?
        {
            Cow::Borrowed(text) => {
                let start = text.as_ptr().addr() - answer.as_ptr().addr();
                Place::Within(start..start + text.len())
            }
            Cow::Owned(text) => Place::Apart(text),
        };
        Ok((head, place))
    }
}

fn malformed(what: &str) -> Failure {
    Failure::new(FailureKind::Malformed, what)
}

/// The bytes of a message, made of the answer itself: it may be fifty megabytes long.
fn decoded(answer: Bytes, place: Place) -> Result<BytesMut, NotBase64> {
    let (text, range) = match place {
        Place::Within(range) => (answer, range),
        Place::Apart(text) => {
            drop(answer);
            let range = 0..text.len();
            (text.into(), range)
        }
    };
    let mut bytes = text.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
    bytes.advance(range.start);
    bytes.truncate(range.len());
    let len = raw::decode_in_place(&mut bytes)?;
    bytes.truncate(len);
    Ok(bytes)
}

/// Gmail writes 64 bits as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Number(i64),
    Text(String),
}

impl Number {
    fn value(&self) -> Option<i64> {
        match self {
            Number::Number(number) => Some(*number),
            Number::Text(text) => text.parse().ok(),
        }
    }
}

/// Whose message it is to become.
#[derive(Clone)]
pub(super) struct Reader {
    pub(super) mailbox: Mailbox,
    pub(super) policy: Policy,
    pub(super) table: &'static Table,
}

impl Reader {
    pub(super) fn read(&self, key: &Key, body: Bytes) -> Result<Fetched, Failure> {
        let message = Message::read(&body)?;
        if message.id != key.to_string() {
            return Err(Failure::new(FailureKind::WrongIdentity, "the answer is about another message"));
        }
        if let Some(reason) = self.policy.reason(message.label_ids.iter().map(String::as_str)) {
            return Ok(Fetched::Excluded { reason });
        }
        let (head, place) = message.into_parts(&body)?;
        let bytes = decoded(body, place).map_err(|_| malformed("the bytes of the message cannot be decoded"))?;
        Ok(Fetched::Found(self.record(key, head, &bytes)))
    }

    fn record(&self, key: &Key, head: Head, bytes: &[u8]) -> Record {
        let mut mail = mime::read(bytes);
        let id = self.table.row_key(key).to_string();
        let sha256 = sha256_of(bytes);
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let mut record = Record::new(key.clone(), self.table, Body { values: Vec::new(), edges: Vec::new() });
        record.notes.push(ingested(&id, &head, &mail, &sha256, size));
        let raw = vec![
            Value::text(id.clone()),
            Value::Bytes(packed::pack(bytes)),
            Value::Int(size),
            Value::text(sha256.clone()),
        ];
        record.sides.push(SideRow { table: &RAW, values: raw });
        for attachment in std::mem::take(&mut mail.attachments) {
            self.attach(&mut record, &id, attachment);
        }
        record.body.values = self.values(id, head, mail, &record.sides, sha256);
        record
    }

    /// In the order of the columns. The sides are the bytes, and after them the attachments.
    fn values(&self, id: String, head: Head, mail: Mail, sides: &[SideRow], sha256: String) -> Vec<Value> {
        let text = |text: Option<String>| text.map_or(Value::Null, |text| Value::text(storable(text)));
        let emails = |emails: &[String]| Value::Json(json!(emails).to_string());
        let headers: Vec<_> =
            mail.headers.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        let (from_email, from_name) = mail.from.map_or((None, None), |from| (Some(from.email), from.name));
        vec![
            Value::text(id),
            Value::text(self.mailbox.org.as_str()),
            Value::text(self.mailbox.id.as_str()),
            Value::text(self.table.row_key(&Key::from(head.thread.as_str())).to_string()),
            Value::text(head.id.as_str()),
            text(Some(head.thread)),
            text(Some(mail.rfc_message_id.unwrap_or_else(|| format!("{}@missing.invalid", head.id)))),
            text(from_email),
            text(from_name),
            emails(&mail.to),
            emails(&mail.cc),
            emails(&mail.bcc),
            text(mail.subject),
            text(head.snippet),
            text(mail.body_plain),
            text(mail.body_html),
            Value::Time(Timestamp::from_millis(mail.sent_at.unwrap_or(head.date))),
            Value::Int(head.date),
            Value::Json(json!(headers).to_string()),
            list(head.labels.into_iter()),
            Value::Bool(sides.len() > 1),
            head.size_estimate.map_or(Value::Null, Value::Int),
            Value::text(sha256),
            Value::Int(SidesCheck::of(sides)),
            text(mail.error),
            Value::Null,
        ]
    }

    fn attach(&self, record: &mut Record, message: &str, attachment: Attachment) {
        let id = format!("{message}-{}", attachment.part_id);
        let sha256 = sha256_of(&attachment.content);
        let size = i64::try_from(attachment.content.len()).unwrap_or(i64::MAX);
        let text = |text: Option<String>| text.map_or(Value::Null, Value::text);
        record.notes.push(Note {
            event_type: "ATTACHMENT_SAVED",
            entity_type: "attachment",
            entity_id: id.clone(),
            payload: json!({
                "provider_message_id": record.key.to_string(),
                "part_id": attachment.part_id,
                "sha256": sha256,
                "size": size,
            }),
        });
        record.sides.push(SideRow {
            table: &ATTACHMENTS,
            values: vec![
                Value::text(id),
                Value::text(self.mailbox.org.as_str()),
                Value::text(self.mailbox.id.as_str()),
                Value::text(message),
                Value::text(attachment.part_id),
                text(attachment.filename),
                Value::text(attachment.mime_type),
                text(attachment.content_id),
                Value::Bool(attachment.is_inline),
                Value::Int(size),
                Value::text(sha256.clone()),
                Value::text(blob_path(&sha256)),
            ],
        });
        record.blobs.push(Blob { sha256, content: attachment.content });
    }
}

fn ingested(id: &str, head: &Head, mail: &Mail, sha256: &str, size: i64) -> Note {
    Note {
        event_type: INGESTED,
        entity_type: "message",
        entity_id: id.to_owned(),
        payload: json!({
            "provider_message_id": head.id,
            "provider_thread_id": head.thread,
            "sha256": sha256,
            "size": size,
            "attachments": mail.attachments.len(),
            "is_parsed": mail.error.is_none(),
        }),
    }
}

/// No database takes a NUL in a text.
fn storable(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

pub(super) fn sha256_of(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}
