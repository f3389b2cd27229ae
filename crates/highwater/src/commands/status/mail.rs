//! What `status` says of mailboxes: how they fare, and when they will be complete.

use std::{collections::BTreeMap, time::Duration};

use highwater_core::{Downloads, ExceptionState, SourceName, Timestamp};
use highwater_engine::StreamStatus;
use highwater_sources::Clock;
use highwater_store::{MailboxId, MailboxRow, MailboxStatus, Store};
use serde_json::{Value as Json, json};

use crate::{
    args::StatusArgs,
    config::{Config, SourceConfig},
    out,
};

/// By the name of their source.
pub(super) struct Mailboxes(BTreeMap<String, Mailbox>);

struct Mailbox {
    row: MailboxRow,
    /// Something of it is to be mirrored by now.
    is_begun: bool,
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

/// Also of mailboxes of which nothing is mirrored yet: what is wrong with them is told nowhere else.
pub(super) async fn read(
    config: &Config,
    args: &StatusArgs,
    store: &dyn Store,
    all: &[StreamStatus],
) -> anyhow::Result<Mailboxes> {
    let mut mailboxes = BTreeMap::new();
    let rows = store.mailboxes().await?;
    let is_meant = |source: &&SourceConfig| args.source.as_ref().is_none_or(|name| *name == source.name.as_str());
    for source in config.sources.iter().filter(is_meant) {
        let Some(gmail) = &source.gmail else { continue };
        let id = MailboxId::new(&gmail.org, &gmail.account);
        let Some(row) = rows.iter().find(|row| row.id == id).cloned() else { continue };
        let now = Clock::system().now();
        let status = all.iter().find(|status| status.source == source.name);
        let forecast = match status {
            Some(status) => forecast(store, status, gmail.mail.quota.get_cost(), now).await?,
            None => None,
        };
        let downloads = match gmail.mail.max_bytes_day {
            Some(most) => Some(Downloaded { bytes: downloaded(store, &source.name, now).await?, most }),
            None => None,
        };
        let is_begun = status.is_some();
        mailboxes.insert(source.name.to_string(), Mailbox { row, is_begun, forecast, downloads });
    }
    Ok(Mailboxes(mailboxes))
}

async fn downloaded(store: &dyn Store, source: &SourceName, now: Timestamp) -> anyhow::Result<u64> {
    let all = store.downloads_since(source, Downloads::counted_since(now)).await?;
    Ok(all.iter().map(|download| download.bytes).sum())
}

/// None when nothing is left.
async fn forecast(
    store: &dyn Store,
    status: &StreamStatus,
    cost: f64,
    now: Timestamp,
) -> anyhow::Result<Option<Forecast>> {
    let Some(expected) = store.followed(&status.id()?).await?.expected else { return Ok(None) };
    let explained = [ExceptionState::Missing, ExceptionState::Excluded, ExceptionState::DeadLetter];
    let settled = status.stored + explained.map(|state| status.exceptions(state)).iter().sum::<u64>();
    let messages = expected.saturating_sub(settled);
    if status.complete || messages == 0 {
        return Ok(None);
    }
    let workers = store.workers(&status.source, now).await?;
    let rate: Option<f64> = workers.iter().map(|worker| worker.rate).sum();
    let units = messages as f64 * cost;
    let time = rate.filter(|rate| *rate > 0.0).map(|rate| Duration::from_secs_f64(units / rate));
    Ok(Some(Forecast { messages, units: units as u64, time }))
}

impl Mailboxes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add_to(&self, status: &mut Json) {
        let Some(sources) = status["sources"].as_array_mut() else { return };
        let bare = self.0.iter().filter(|(_, mailbox)| !mailbox.is_begun);
        sources.extend(bare.map(|(name, _)| json!({ "name": name, "kind": "gmail", "streams": [] })));
        sources.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
        for source in sources {
            if let Some(mailbox) = source["name"].as_str().and_then(|name| self.0.get(name)) {
                source["mailbox"] = mailbox.json();
            }
        }
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(name, mailbox)| match mailbox.is_begun {
            true => mailbox.text(),
            false => format!("{name}: nothing is mirrored yet\n{}", mailbox.text()),
        })
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
