//! What the ledger says of alerts.

use highwater_core::AlertState;
use serde_json::json;

use crate::{AlertNote, LedgerEntry};

/// None of an alert that merely goes on.
pub(crate) fn alert_entry(note: &AlertNote) -> Option<LedgerEntry> {
    let event_type = match note.state {
        AlertState::Raised => "ALERT_RAISED",
        AlertState::Resolved => "ALERT_RESOLVED",
        AlertState::Lasting => return None,
    };
    Some(LedgerEntry {
        at: note.at,
        event_type,
        source: note.source.clone(),
        entity_type: "alert",
        entity_id: note.condition.clone(),
        payload: json!({ "message": note.message, "severity": note.severity }),
        actor: "highwater serve".into(),
    })
}
