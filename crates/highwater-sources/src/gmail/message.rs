//! One message: how to ask for it, and what the answer becomes.

use std::iter;

use aws_lc_rs::digest::{SHA256, digest};
use highwater_core::{
    Blob, Body, Failure, FailureKind, Key, Note, Record, SideRow, SidesCheck, Timestamp, Value, blob_path, hex, list,
    schema::Table,
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{
    Mailbox, Policy, mime, packed,
    query::Query,
    raw,
    schema::{ATTACHMENTS, RAW},
};
use crate::{Fetched, Request, escape::escaped, text};

pub(super) fn request(key: &Key) -> Request {
    let mut query = Query::new(&format!("messages/{}", escaped(&key.to_string())));
    query.add("format", "raw");
    query.request()
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
    raw: Option<std::borrow::Cow<'a, str>>,
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
    pub(super) fn read(&self, key: &Key, body: &[u8]) -> Result<Fetched, Failure> {
        let malformed = |what: &str| Failure::new(FailureKind::Malformed, what);
        let message: Message<'_> =
            serde_json::from_slice(body).map_err(|_| malformed("the answer is not a message"))?;
        if message.id != key.to_string() {
            return Err(Failure::new(FailureKind::WrongIdentity, "the answer is about another message"));
        }
        if let Some(reason) = self.policy.reason(message.label_ids.iter().map(String::as_str)) {
            return Ok(Fetched::Excluded { reason });
        }
        let date = message.internal_date.as_ref().and_then(Number::value);
        let date = date.ok_or_else(|| malformed("the message has no date"))?;
        let bytes = message.raw.as_deref().ok_or_else(|| malformed("the message came without its bytes"))?;
        let bytes = raw::decode(bytes).map_err(|_| malformed("the bytes of the message cannot be decoded"))?;
        self.record(key, &message, date, &bytes).map(Fetched::Found)
    }

    fn record(&self, key: &Key, message: &Message<'_>, date: i64, bytes: &[u8]) -> Result<Record, Failure> {
        let mail = mime::read(bytes);
        let id = self.table.row_key(key).to_string();
        let provider_thread = message.thread_id.as_deref().unwrap_or(&message.id);
        let sha256 = sha256_of(bytes);
        let (sides, blobs, mut notes) = self.attachments(&id, key, &mail);
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let raw = vec![
            Value::Text(id.clone()),
            Value::Bytes(packed::pack(bytes)),
            Value::Int(size),
            Value::Text(sha256.clone()),
        ];
        let sides: Vec<_> = iter::once(SideRow { table: &RAW, values: raw }).chain(sides).collect();
        let mut record = Record::new(key.clone(), self.table, Body { values: Vec::new(), edges: Vec::new() });
        let text = |text: Option<&str>| text.map_or(Value::Null, |text| Value::Text(text.replace('\0', "\u{fffd}")));
        let emails = |emails: &[String]| Value::Json(json!(emails).to_string());
        let headers: Vec<_> =
            mail.headers.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        let surrogate = format!("{}@missing.invalid", message.id);
        let sent = mail.sent_at.unwrap_or(date);
        record.body.values = vec![
            Value::Text(id.clone()),
            Value::Text(self.mailbox.org.clone()),
            Value::Text(self.mailbox.id.clone()),
            Value::Text(self.table.row_key(&Key::from(provider_thread)).to_string()),
            Value::Text(message.id.clone()),
            text(Some(provider_thread)),
            text(Some(mail.rfc_message_id.as_deref().unwrap_or(&surrogate))),
            text(mail.from.as_ref().map(|from| from.email.as_str())),
            text(mail.from.as_ref().and_then(|from| from.name.as_deref())),
            emails(&mail.to),
            emails(&mail.cc),
            emails(&mail.bcc),
            text(mail.subject.as_deref()),
            text(message.snippet.and_then(|raw| text::read(raw.get())).as_ref().map(text::Text::shown)),
            text(mail.body_plain.as_deref()),
            text(mail.body_html.as_deref()),
            Value::Time(Timestamp::from_millis(sent)),
            Value::Int(date),
            Value::Json(json!(headers).to_string()),
            list(message.label_ids.iter().cloned()),
            Value::Bool(!mail.attachments.is_empty()),
            message.size_estimate.map_or(Value::Null, Value::Int),
            Value::Text(sha256.clone()),
            Value::Int(SidesCheck::of(&sides)),
            text(mail.error.as_deref()),
            Value::Null,
        ];
        record.sides = sides;
        record.blobs = blobs;
        record.notes.push(Note {
            event_type: "MESSAGE_INGESTED",
            entity_type: "message",
            entity_id: id,
            payload: json!({
                "provider_message_id": message.id,
                "provider_thread_id": provider_thread,
                "sha256": sha256,
                "size": size,
                "attachments": mail.attachments.len(),
                "is_parsed": mail.error.is_none(),
            }),
        });
        record.notes.append(&mut notes);
        Ok(record)
    }

    fn attachments(&self, message: &str, key: &Key, mail: &mime::Mail) -> (Vec<SideRow>, Vec<Blob>, Vec<Note>) {
        let (mut sides, mut blobs, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for attachment in &mail.attachments {
            let id = format!("{message}-{}", attachment.part_id);
            let sha256 = sha256_of(&attachment.content);
            let size = i64::try_from(attachment.content.len()).unwrap_or(i64::MAX);
            let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::Text);
            notes.push(Note {
                event_type: "ATTACHMENT_SAVED",
                entity_type: "attachment",
                entity_id: id.clone(),
                payload: json!({
                    "provider_message_id": key.to_string(),
                    "part_id": attachment.part_id,
                    "sha256": sha256,
                    "size": size,
                }),
            });
            sides.push(SideRow {
                table: &ATTACHMENTS,
                values: vec![
                    Value::Text(id),
                    Value::Text(self.mailbox.org.clone()),
                    Value::Text(self.mailbox.id.clone()),
                    Value::Text(message.to_owned()),
                    Value::Text(attachment.part_id.clone()),
                    text(&attachment.filename),
                    Value::Text(attachment.mime_type.clone()),
                    text(&attachment.content_id),
                    Value::Bool(attachment.is_inline),
                    Value::Int(size),
                    Value::Text(sha256.clone()),
                    Value::Text(blob_path(&sha256)),
                ],
            });
            blobs.push(Blob { sha256, content: attachment.content.clone() });
        }
        (sides, blobs, notes)
    }
}

pub(super) fn sha256_of(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}
