//! The methods that change the mailbox.

use std::time::Duration;

use base64::{
    Engine as _,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    GmailSim, Inside, Outcome,
    error::ApiError,
    labels::Labels,
    letter::Nature,
    mailbox::{Arrival, hex},
    mime, multipart, parse_id,
    route::{Call, Method, Uploaded},
};
use crate::answer::SimRequest;

const IDS_MAX: usize = 1_000;
const LABELS_MAX: usize = 100;

/// Uploads come padded and unpadded.
const EITHER: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Body {
    ids: Vec<String>,
    add_label_ids: Vec<String>,
    remove_label_ids: Vec<String>,
    label_ids: Vec<String>,
    thread_id: Option<String>,
    raw: Option<String>,
}

impl Body {
    fn parse(body: &[u8]) -> Result<Self, ApiError> {
        if body.is_empty() {
            return Ok(Body::default());
        }
        serde_json::from_slice(body)
            .map_err(|error| ApiError::invalid(format!("Invalid JSON payload received. {error}")))
    }
}

impl GmailSim {
    pub(super) fn write(
        &self,
        inside: &mut Inside,
        call: &Call<'_>,
        request: &SimRequest<'_>,
        now: Duration,
    ) -> Outcome {
        let body = request.body;
        match call.method {
            Method::Modify => self.modify(inside, call.id, &Body::parse(body)?, now),
            Method::Trash => self.relabel(inside, call.id, Labels::TRASH, Labels::INBOX | Labels::SPAM, now),
            Method::Untrash => self.relabel(inside, call.id, Labels::NONE, Labels::TRASH, now),
            Method::Delete => {
                let id = parse_id(call.id)?;
                inside.mailbox.delete(id, now).then_some(Value::Null).ok_or_else(ApiError::not_found)
            }
            Method::BatchModify => self.batch_modify(inside, &Body::parse(body)?, now),
            Method::BatchDelete => {
                for id in batch(&Body::parse(body)?.ids)? {
                    inside.mailbox.delete(id, now);
                }
                Ok(Value::Null)
            }
            _ => self.upload(inside, call, request, now),
        }
    }

    fn modify(&self, inside: &mut Inside, id: &str, body: &Body, now: Duration) -> Outcome {
        let (add, remove) = changes(inside, body)?;
        self.relabel(inside, id, add, remove, now)
    }

    fn relabel(&self, inside: &mut Inside, id: &str, add: Labels, remove: Labels, now: Duration) -> Outcome {
        let id = parse_id(id)?;
        if !inside.mailbox.relabel(id, add, remove, now) {
            return Err(ApiError::not_found());
        }
        Ok(brief(inside, id))
    }

    /// Unknown ids are silently passed over.
    fn batch_modify(&self, inside: &mut Inside, body: &Body, now: Duration) -> Outcome {
        let (add, remove) = changes(inside, body)?;
        for id in batch(&body.ids)? {
            inside.mailbox.relabel(id, add, remove, now);
        }
        Ok(Value::Null)
    }

    fn upload(&self, inside: &mut Inside, call: &Call<'_>, request: &SimRequest<'_>, now: Duration) -> Outcome {
        let (raw, body) = uploaded(call, request)?;
        if raw.is_empty() {
            let text = "'raw' RFC822 payload message string or uploading message via /upload/* URL required";
            return Err(ApiError::invalid(text));
        }
        let labels = match (body.label_ids.is_empty(), call.method) {
            (true, Method::Import) => Labels::INBOX | Labels::UNREAD,
            _ => labels(inside, &body.label_ids)?,
        };
        let thread = body.thread_id.as_deref().map(parse_id).transpose()?;
        let wall = self.wall(now);
        let date = self.date_of(call, &raw, now);
        let arrival = Arrival { nature: Nature::Received, date, labels, thread, upload: Some(Bytes::from(raw)) };
        let id = inside.mailbox.arrive(arrival, wall, now);
        Ok(brief(inside, id))
    }

    /// By default imports are dated by their header, and inserts by the clock.
    fn date_of(&self, call: &Call<'_>, raw: &[u8], now: Duration) -> i64 {
        let default = if call.method == Method::Import { "dateHeader" } else { "receivedTime" };
        if call.params.first("internalDateSource").unwrap_or(default) == "receivedTime" {
            return self.wall(now);
        }
        let message = mime::parse(raw);
        let date = message.header("date").and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
        date.map_or_else(|| self.wall(now), |date| date.timestamp().as_millisecond())
    }
}

/// The bytes of a message and what is said about it.
fn uploaded(call: &Call<'_>, request: &SimRequest<'_>) -> Result<(Vec<u8>, Body), ApiError> {
    match (call.uploaded, call.params.first("uploadType")) {
        (Uploaded::Json, _) => {
            let body = Body::parse(request.body)?;
            let raw = body.raw.as_deref().and_then(|raw| EITHER.decode(raw).ok());
            Ok((raw.unwrap_or_default(), body))
        }
        (Uploaded::Media, Some("media")) => Ok((request.body.to_vec(), Body::default())),
        (Uploaded::Media, Some("multipart")) => {
            let pieces = multipart::split(request.content_type.unwrap_or(""), request.body);
            match pieces.as_deref() {
                Some([said, message]) => Ok((message.body.to_vec(), Body::parse(said.body)?)),
                _ => Err(ApiError::invalid("Multipart must have two parts: JSON and the message")),
            }
        }
        (Uploaded::Media, _) => Err(ApiError::invalid("the simulator takes uploadType=media and multipart only")),
    }
}

/// What writes answer with.
fn brief(inside: &Inside, id: u64) -> Value {
    let Some(entry) = inside.mailbox.find(id) else { return Value::Null };
    let labels = inside.mailbox.catalogue.ids(entry.labels);
    json!({ "id": hex(entry.id), "threadId": hex(entry.thread), "labelIds": labels })
}

fn changes(inside: &Inside, body: &Body) -> Result<(Labels, Labels), ApiError> {
    if body.add_label_ids.len() > LABELS_MAX || body.remove_label_ids.len() > LABELS_MAX {
        return Err(ApiError::invalid("Number of labels cannot exceed 100"));
    }
    let add = labels(inside, &body.add_label_ids)?;
    // Where mail comes from is not for labels to say.
    if add.touches(Labels::SENT | Labels::DRAFT | Labels::CHAT) {
        return Err(ApiError::invalid(format!("Invalid label: {}", body.add_label_ids.join(", "))));
    }
    let mut remove = labels(inside, &body.remove_label_ids)?;
    if add.touches(Labels::TRASH) {
        remove = remove | Labels::INBOX | Labels::SPAM;
    }
    Ok((add, remove))
}

fn labels(inside: &Inside, ids: &[String]) -> Result<Labels, ApiError> {
    ids.iter().try_fold(Labels::NONE, |labels, id| {
        let label = inside.mailbox.catalogue.by_id(id);
        Ok(labels | label.ok_or_else(|| ApiError::invalid(format!("Invalid label: {id}")))?)
    })
}

fn batch(ids: &[String]) -> Result<Vec<u64>, ApiError> {
    match ids.len() {
        0 => Err(ApiError::invalid("No message ids specified.")),
        count if count > IDS_MAX => Err(ApiError::invalid("Number of ids cannot exceed 1000")),
        _ => ids.iter().map(|id| parse_id(id)).collect(),
    }
}
