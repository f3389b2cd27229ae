//! The life of a window in which nobody listened: when it may close, and what the ledger says of it.

use highwater_core::{BlindWindow, Key, Position, SourceName, StreamId, Timestamp, WindowId, WorkerId};
use serde_json::{Value as Json, json};

use super::Pass;
use crate::{EndWindow, ErrorKind, LedgerEntry, NewWindow, StoreError};

/// A window as far as its end is concerned.
#[derive(Clone, Debug)]
pub(crate) struct WindowRow {
    pub(crate) window: BlindWindow,
    pub(crate) rescan_sealed_at: Option<Timestamp>,
}

impl WindowRow {
    /// Everything that may have changed in it has been looked at again, and what was new at its end is accounted for.
    pub(crate) fn is_covered(&self, frontier: Position) -> bool {
        self.window.ended_at.is_some()
            && self.rescan_sealed_at.is_some()
            && self.window.names_at.is_some()
            && self.window.has_reached_head(frontier)
    }

    pub(crate) fn closed(self, now: Timestamp) -> BlindWindow {
        BlindWindow { closed_at: Some(now), ..self.window }
    }

    pub(crate) fn closed_entry(&self, stream: &StreamId, now: Timestamp) -> LedgerEntry {
        let BlindWindow { id, opened_at, ended_at, head, rescan, .. } = &self.window;
        let payload = json!({
            "stream": stream.stream.as_str(),
            "opened": opened_at.as_millis(),
            "ended": ended_at.map(Timestamp::as_millis),
            "head": head.map(|head| head.0),
            "rescan": rescan.map(|rescan| rescan.0),
        });
        entry(&stream.source, "BLIND_WINDOW_CLOSED", *id, payload, now, "highwater serve")
    }
}

impl NewWindow {
    pub(crate) fn entry(&self, id: WindowId) -> LedgerEntry {
        let payload = json!({
            "stream": self.stream.stream.as_str(),
            "opened": self.opened_at.as_millis(),
            "reason": self.reason,
        });
        entry(&self.stream.source, "BLIND_WINDOW_OPENED", id, payload, self.now, self.worker.as_str())
    }
}

impl EndWindow {
    pub(crate) fn entry(&self, opened_at: Timestamp, pass: &Pass) -> LedgerEntry {
        let payload = json!({
            "stream": self.rescan.stream.stream.as_str(),
            "opened": opened_at.as_millis(),
            "ended": self.ended_at.as_millis(),
            "head": self.head.0,
            "rescan": pass.rescan.id.0,
            "start": pass.rescan.span.start().0,
            "end": pass.rescan.span.end().0,
        });
        let (source, worker) = (&self.rescan.stream.source, self.worker.as_str());
        entry(source, "BLIND_WINDOW_ENDED", self.window, payload, self.rescan.now, worker)
    }
}

fn entry(
    source: &SourceName,
    event_type: &'static str,
    id: WindowId,
    payload: Json,
    at: Timestamp,
    actor: &str,
) -> LedgerEntry {
    let (source, entity_id) = (source.clone(), id.to_string());
    LedgerEntry { at, event_type, source, entity_type: "blind_window", entity_id, payload, actor: actor.into() }
}

/// Keys that were told, as the store keeps them.
pub(crate) fn told_text(keys: &[Key]) -> String {
    Json::from_iter(keys.iter().map(Key::to_string)).to_string()
}

pub(crate) fn told_keys(text: &str) -> Result<Vec<Key>, serde_json::Error> {
    let keys: Vec<String> = serde_json::from_str(text)?;
    Ok(keys.iter().map(|key| Key::from(key.as_str())).collect())
}

/// What somebody is told who writes about the feed and is not the one who listens to it.
pub(crate) fn not_listening(source: &SourceName, worker: &WorkerId) -> StoreError {
    StoreError::new(ErrorKind::Fenced, format!("{} does not listen to {source} any more", worker.as_str()))
}
