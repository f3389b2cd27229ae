//! The methods that change labels themselves.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::{
    GmailSim, Inside, Outcome,
    error::ApiError,
    labels::{LabelError, Labels},
    route::{Call, Method},
};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Body {
    name: Option<String>,
}

impl GmailSim {
    pub(super) fn write_label(&self, inside: &mut Inside, call: &Call<'_>, body: &[u8], now: Duration) -> Outcome {
        if call.method == Method::LabelsDelete {
            return delete(inside, call.id, now);
        }
        let body: Body = serde_json::from_slice(body)
            .map_err(|error| ApiError::invalid(format!("Invalid JSON payload received. {error}")))?;
        let catalogue = &mut inside.mailbox.catalogue;
        let label = match (call.method, body.name) {
            (Method::LabelsCreate, name) => catalogue.create(name.as_deref().unwrap_or("")),
            (_, None) => catalogue.by_id(call.id).ok_or(LabelError::Unknown),
            (_, Some(name)) => catalogue.rename(call.id, &name),
        };
        let label = label.map_err(refused)?;
        Ok(inside.mailbox.catalogue.one(label))
    }
}

/// The label leaves every message, and the history tells of each.
fn delete(inside: &mut Inside, id: &str, now: Duration) -> Outcome {
    let label = inside.mailbox.catalogue.delete(id).map_err(refused)?;
    let with: Vec<u64> =
        inside.mailbox.listed(..).filter(|(_, entry)| entry.labels.touches(label)).map(|(_, entry)| entry.id).collect();
    for message in with {
        inside.mailbox.relabel(message, Labels::NONE, label, now);
    }
    Ok(Value::Null)
}

fn refused(error: LabelError) -> ApiError {
    match error {
        LabelError::Unknown => ApiError::not_found(),
        LabelError::Exists => ApiError::conflict("Label name exists or conflicts"),
        LabelError::Nameless => ApiError::invalid("Invalid label name"),
        LabelError::Full => ApiError::invalid("the simulator has no room for more labels"),
        LabelError::System => ApiError::invalid("Invalid request: system labels cannot be changed"),
    }
}
