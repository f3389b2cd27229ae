//! What the ledger says of alerts.

use serde_json::json;

use crate::{AlertNote, LedgerEntry};

pub(crate) fn alert_entry(note: &AlertNote) -> LedgerEntry {
    LedgerEntry {
        at: note.at,
        event_type: if note.raised { "ALERT_RAISED" } else { "ALERT_RESOLVED" },
        source: note.source.clone(),
        entity_type: "alert",
        entity_id: note.condition.clone(),
        payload: json!({ "message": note.message, "severity": note.severity }),
        actor: "highwater serve".into(),
    }
}
