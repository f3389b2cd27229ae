//! What `status` says of sources that are mirrored as a whole: when each type was last looked at, and what of it may not
//! be seen.

use std::collections::BTreeMap;

use highwater_core::{ExceptionState, FailureKind, Key, SourceName, Timestamp};
use highwater_engine::StreamStatus;
use highwater_store::{ExceptionFilter, Page, Store};
use serde_json::{Value as Json, json};

use super::place;
use crate::out;

/// By source and stream.
pub(super) struct Snapshots(BTreeMap<(SourceName, String), Snapshot>);

struct Snapshot {
    /// Everything was seen as it was then.
    at: Option<Timestamp>,
    forbidden: u64,
    /// Why nothing of the type is seen.
    all: Option<String>,
}

const AXIS: &str = "snapshot";
const PAGE: u32 = 1_000;

pub(in crate::commands) fn is_snapshot(status: &StreamStatus) -> bool {
    status.axis == AXIS
}

pub(super) async fn read(store: &dyn Store, all: &[StreamStatus]) -> anyhow::Result<Snapshots> {
    let mut snapshots = BTreeMap::new();
    for status in all.iter().filter(|status| is_snapshot(status)) {
        let at =
            (status.frontier > status.origin).then(|| Timestamp::from_millis(status.frontier.0.saturating_mul(1000)));
        let mut snapshot = Snapshot { at, forbidden: 0, all: None };
        let filter = ExceptionFilter { state: Some(ExceptionState::DeadLetter) };
        let mut after = None;
        loop {
            let page = store.exceptions(&status.id()?, filter, Page { after, limit: PAGE }).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            for exception in page {
                snapshot.forbidden += u64::from(exception.reason == FailureKind::Forbidden.as_str());
                if exception.key == Key::from("*") {
                    let error = exception.last_error.unwrap_or_default();
                    snapshot.all = Some(format!("{}: {error}", exception.reason));
                }
            }
        }
        snapshots.insert((status.source.clone(), status.stream.clone()), snapshot);
    }
    Ok(Snapshots(snapshots))
}

impl Snapshots {
    fn of(&self, status: &StreamStatus) -> Option<&Snapshot> {
        self.0.get(&(status.source.clone(), status.stream.clone()))
    }

    pub(super) fn add_to(&self, json: &mut Json, status: &StreamStatus) {
        if let (Json::Object(fields), Some(snapshot)) = (json, self.of(status)) {
            fields.insert("forbidden".into(), snapshot.forbidden.into());
            fields.insert("last_snapshot_at".into(), json!(snapshot.at.map(Timestamp::as_millis)));
            fields.insert("refused".into(), json!(snapshot.all));
        }
    }

    /// A line, because there are many types.
    pub(super) fn text(&self, status: &StreamStatus) -> Option<String> {
        let snapshot = self.of(status)?;
        let word = match (&snapshot.all, status.complete) {
            (Some(_), _) if snapshot.forbidden > 0 => "forbidden",
            (_, true) => "complete",
            (_, false) => "not complete",
        };
        let at = snapshot.at.map_or_else(|| "none yet".into(), |_| place(status, status.frontier));
        let mut text = format!(
            "{}/{:<24} {word:<12} {:>8} stored, snapshot {at}",
            status.source,
            status.stream,
            out::grouped(status.stored)
        );
        let troubles = [
            ("missing", status.exceptions(ExceptionState::Missing)),
            ("retrying", status.exceptions(ExceptionState::RetryWait)),
            ("forbidden", snapshot.forbidden),
            ("dead", status.exceptions(ExceptionState::DeadLetter) - snapshot.forbidden),
        ];
        for (word, count) in troubles.into_iter().filter(|(_, count)| *count > 0) {
            text.push_str(&format!(", {} {word}", out::grouped(count)));
        }
        if let Some(why) = &snapshot.all {
            text.push_str(&format!(" ({why})"));
        }
        Some(text)
    }
}
