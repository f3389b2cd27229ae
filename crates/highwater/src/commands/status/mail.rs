//! What `status` says of mailboxes: how they fare, and when they will be complete.

use std::{collections::BTreeMap, time::Duration};

use highwater_core::{Downloads, ExceptionState, SourceName, Timestamp};
use highwater_engine::StreamStatus;
use highwater_sources::Clock;
use highwater_store::{MailboxId, MailboxRow, MailboxStatus, Store};
use serde_json::{Value as Json, json};

use crate::{config::Config, out};

/// By the name of their source.
pub(super) struct Mailboxes(BTreeMap<String, Mailbox>);

struct Mailbox {
    row: MailboxRow,
    forecast: Option<Forecast>,
    downloads: Option<Downloaded>,
}

/// What has come within a day, of what may.
struct Downloaded {
    bytes: u64,
    most: u64,
}

/// What is left, by how much there was when the mirror was begun.
struct Forecast {
    messages: u64,
    units: u64,
    /// At the rate of whoever works on it.
    time: Option<Duration>,
}

pub(super) async fn read(config: &Config, store: &dyn Store, all: &[StreamStatus]) -> anyhow::Result<Mailboxes> {
    let mut mailboxes = BTreeMap::new();
    let rows = store.mailboxes().await?;
    for status in all {
        let Some(gmail) = config.source(status.source.as_str()).ok().and_then(|source| source.gmail.as_ref()) else {
            continue;
        };
        let id = MailboxId::new(&gmail.org, &gmail.account);
        let Some(row) = rows.iter().find(|row| row.id == id).cloned() else { continue };
        let now = Clock::system().now();
        let workers = store.workers(&status.source, now).await?;
        let rate: Option<f64> = workers.iter().map(|worker| worker.rate).sum();
        let expected = store.followed(&status.id()?).await?.expected;
        let forecast = expected.and_then(|expected| forecast(status, expected, gmail.mail.quota.get_cost(), rate));
        let downloads = match gmail.mail.max_bytes_day {
            Some(most) => Some(Downloaded { bytes: downloaded(store, &status.source, now).await?, most }),
            None => None,
        };
        mailboxes.insert(status.source.to_string(), Mailbox { row, forecast, downloads });
    }
    Ok(Mailboxes(mailboxes))
}

async fn downloaded(store: &dyn Store, source: &SourceName, now: Timestamp) -> anyhow::Result<u64> {
    let all = store.downloads_since(source, Downloads::counted_since(now)).await?;
    Ok(all.iter().map(|download| download.bytes).sum())
}

/// None when nothing is left.
fn forecast(status: &StreamStatus, expected: u64, cost: f64, rate: Option<f64>) -> Option<Forecast> {
    let explained = [ExceptionState::Missing, ExceptionState::Excluded, ExceptionState::DeadLetter];
    let settled = status.stored + explained.map(|state| status.exceptions(state)).iter().sum::<u64>();
    let messages = expected.saturating_sub(settled);
    if status.complete || messages == 0 {
        return None;
    }
    let units = messages as f64 * cost;
    let time = rate.filter(|rate| *rate > 0.0).map(|rate| Duration::from_secs_f64(units / rate));
    Some(Forecast { messages, units: units as u64, time })
}

impl Mailboxes {
    pub(super) fn add_to(&self, status: &mut Json) {
        for source in status["sources"].as_array_mut().into_iter().flatten() {
            if let Some(mailbox) = source["name"].as_str().and_then(|name| self.0.get(name)) {
                source["mailbox"] = mailbox.json();
            }
        }
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.0.values().map(Mailbox::text)
    }
}

impl Mailbox {
    fn json(&self) -> Json {
        let left = self.forecast.as_ref().map(|left| {
            json!({ "messages": left.messages, "units": left.units, "seconds": left.time.map(|time| time.as_secs()) })
        });
        let day = self.downloads.as_ref().map(|day| json!({ "bytes": day.bytes, "most": day.most }));
        json!({
            "downloaded_day": day,
            "status": self.row.status.as_str(),
            "error": self.row.error,
            "last_synced_at": self.row.last_synced_at.map(out::time),
            "left": left,
        })
    }

    fn text(&self) -> String {
        let mut lines = vec![format!("  mailbox       {}", self.row.status)];
        let label = if self.row.status == MailboxStatus::Error { "error" } else { "waiting" };
        lines.extend(self.row.error.iter().map(|error| format!("  {label:<13} {error}")));
        lines.extend(self.row.last_synced_at.map(|at| format!("  last synced   {}", out::time(at))));
        if let Some(left) = &self.forecast {
            let time = left.time.map_or(String::new(), |time| format!(", about {}", out::duration(time)));
            let (messages, units) = (out::grouped(left.messages), out::grouped(left.units));
            lines.push(format!("  left          about {messages} messages, {units} quota units{time}"));
        }
        lines.extend(self.downloads.as_ref().map(|day| {
            format!("  downloaded    {} of {} bytes within 24 hours", out::grouped(day.bytes), out::grouped(day.most))
        }));
        lines.join("\n")
    }
}
