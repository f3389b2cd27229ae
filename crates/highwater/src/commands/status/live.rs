//! What `status` says of a mirror that stays current: since when nobody listened, what is looked at again, what that
//! finds, and what is wrong.

use std::{collections::BTreeMap, time::Duration};

use highwater_core::{AgeCounts, BlindWindow, ExceptionState, Rescan, SourceName, Timestamp};
use highwater_engine::StreamStatus;
use highwater_store::{AlertRow, LiveState, Store};
use serde_json::{Value as Json, json};

use crate::out;

/// The share of all changes that a recommended window would have seen, and how many changes make it a recommendation.
const COVERED: f64 = 0.99;
const CHANGES_LEAST: u64 = 200;

/// By source.
pub(super) type LiveFigures = BTreeMap<SourceName, Live>;

#[derive(Default)]
pub(super) struct Live {
    state: LiveState,
    ages: AgeCounts,
    names: Option<Names>,
    alerts: Vec<AlertRow>,
}

struct Names {
    known: u64,
    not_fetched: u64,
}

/// The first stream of a source is the one its feed is about.
pub(super) async fn read(store: &dyn Store, all: &[StreamStatus]) -> anyhow::Result<LiveFigures> {
    let mut figures = LiveFigures::new();
    for streams in all.chunk_by(|a, b| a.source == b.source) {
        let id = streams[0].id()?;
        // Only where positions are ids something is listened to.
        let is_heard = streams[0].axis == "id";
        let mut live = Live {
            state: if is_heard { store.live_state(&id).await? } else { LiveState::default() },
            ages: store.ages(&id).await?,
            alerts: store.open_alerts(&id.source).await?,
            names: None,
        };
        for status in streams.iter().filter(|status| status.axis == "name") {
            let known = store.listed_end(&status.id()?).await?.0.abs_diff(status.origin.0);
            live.names = Some(names(status, known));
        }
        figures.insert(id.source, live);
    }
    Ok(figures)
}

fn names(status: &StreamStatus, known: u64) -> Names {
    let settled = status.stored
        + status.exceptions(ExceptionState::Missing)
        + status.exceptions(ExceptionState::Excluded)
        + status.exceptions(ExceptionState::DeadLetter);
    Names { known, not_fetched: known.saturating_sub(settled) }
}

impl Live {
    fn is_served(&self) -> bool {
        self.state != LiveState::default()
    }

    /// The youngest window that would have seen nearly all changes.
    fn recommended(&self) -> Option<Duration> {
        self.ages.covering(COVERED, CHANGES_LEAST)
    }

    pub(super) fn text(&self) -> Option<String> {
        let mut lines = Vec::new();
        if self.is_served() {
            lines.extend(self.state.heard_until.map(|at| format!("  heard until   {}", out::time(at))));
            lines.extend(self.state.windows.iter().map(window_text));
            lines.extend(self.state.rescans.iter().chain(&self.state.last_rescan).map(rescan_text));
            lines.extend(self.effect());
        }
        if let Some(Names { known, not_fetched }) = &self.names {
            let (known, not_fetched) = (out::grouped(*known), out::grouped(*not_fetched));
            lines.push(format!("  profiles      {known} known, {not_fetched} not yet fetched"));
        }
        lines.extend(
            self.alerts.iter().map(|alert| {
                format!("  {:<13} {} (since {})", alert.severity, alert.message, out::time(alert.raised_at))
            }),
        );
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn effect(&self) -> Option<String> {
        let LiveState { rescanned, differed, .. } = self.state;
        let share = (rescanned > 0).then(|| 100.0 * differed as f64 / rescanned as f64)?;
        let (rescanned, differed) = (out::grouped(rescanned), out::grouped(differed));
        let advice = self.recommended().map_or(String::new(), |window| {
            format!("; rescan_window = \"{}\" would have seen 99% of all changes", days(window))
        });
        Some(format!("  rescans       {rescanned} items looked at again, {differed} differed ({share:.2}%){advice}"))
    }

    pub(super) fn json(&self) -> Json {
        let mut json = json!({ "alerts": self.alerts.iter().map(alert_json).collect::<Vec<_>>() });
        let none = Names { known: 0, not_fetched: 0 };
        if let Some(Names { known, not_fetched }) = self.names.as_ref().or(self.is_served().then_some(&none)) {
            json["profiles"] = json!({ "known": known, "not_fetched": not_fetched });
        }
        if self.is_served() {
            json["live"] = json!({
                "heard_until": self.state.heard_until.map(Timestamp::as_millis),
                "blind_windows": self.state.windows.iter().map(window_json).collect::<Vec<_>>(),
                "rescans": self.state.rescans.iter().map(rescan_json).collect::<Vec<_>>(),
                "last_rescan": self.state.last_rescan.as_ref().map(rescan_json),
                "rescanned": self.state.rescanned,
                "differed": self.state.differed,
                "changes_by_age": self.ages.0,
                "recommended_rescan_window": self.recommended().map(days),
            });
        }
        json
    }
}

/// As the configuration writes it.
fn days(window: Duration) -> String {
    let seconds = window.as_secs();
    match (seconds % 86_400, seconds % 3_600, seconds % 60) {
        (0, _, _) => format!("{}d", seconds / 86_400),
        (_, 0, _) => format!("{}h", seconds / 3_600),
        (_, _, 0) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

fn window_text(window: &BlindWindow) -> String {
    let until = window.ended_at.map_or_else(|| "now".into(), out::time);
    let then = if window.ended_at.is_some() { ", being looked at again" } else { "" };
    format!("  blind         from {} to {until}: {}{then}", out::time(window.opened_at), window.reason)
}

fn rescan_text(rescan: &Rescan) -> String {
    let state = rescan.sealed_at.map_or_else(|| "under way".into(), |at| format!("done {}", out::time(at)));
    let (items, changed) = (out::grouped(rescan.items), out::grouped(rescan.changed));
    format!("  rescan        {} ({}), {state}, {items} items, {changed} differed", rescan.span, rescan.reason)
}

fn window_json(window: &BlindWindow) -> Json {
    json!({
        "opened_at": window.opened_at.as_millis(),
        "ended_at": window.ended_at.map(Timestamp::as_millis),
        "reason": window.reason,
    })
}

fn rescan_json(rescan: &Rescan) -> Json {
    json!({
        "reason": rescan.reason.as_str(),
        "start": rescan.span.start().0,
        "end": rescan.span.end().0,
        "began_at": rescan.began_at.as_millis(),
        "sealed_at": rescan.sealed_at.map(Timestamp::as_millis),
        "items": rescan.items,
        "changed": rescan.changed,
    })
}

fn alert_json(alert: &AlertRow) -> Json {
    json!({
        "condition": alert.condition,
        "severity": alert.severity,
        "message": alert.message,
        "raised_at": alert.raised_at.as_millis(),
    })
}
