//! The product end to end: a fresh SQLite file, no rate limit, and what the file holds in the end.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Bench, Rate, child};
use crate::workspace::read;

#[derive(Clone, Copy, Serialize)]
pub(super) struct Synced {
    #[serde(flatten)]
    pub(super) rate: Rate,
    pub(super) control: Share,
    /// Of the processor time of the run; none without `/proc`.
    pub(super) control_time: Option<f64>,
}

/// What the control plane takes, as a share.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Share {
    /// Of the number of items.
    pub(super) rows: f64,
    /// Of the file.
    pub(super) bytes: f64,
}

#[derive(Clone, Copy, Deserialize)]
pub(super) struct Table {
    pub(super) rows: u64,
    bytes: u64,
}

pub(super) type Tables = BTreeMap<String, Table>;

impl Bench {
    pub(super) fn sync(&self, url: &str, items: u64, in_flight: u32) -> anyhow::Result<Synced> {
        let folder = self.scratch.join("sync");
        fs::create_dir(&folder).context("cannot make a folder for the store")?;
        let store = folder.join("highwater.db");
        let config = folder.join("bench.toml");
        let store_url = format!("sqlite:{}", store.display());
        fs::write(&config, config_text(url, &store_url, in_flight)).context("cannot write the configuration")?;
        let finished = child::finish(&mut self.sync_command(&config), &self.scratch)?;
        let tables = self.tables(&store)?;
        let control_seconds = self.control_seconds(&folder, items)?;
        fs::remove_dir_all(&folder)?;
        let stored = tables.get("hn_items").map_or(0, |table| table.rows);
        ensure!(stored == items, "{stored} items stored, {items} wanted");
        let child::Finished { seconds, cpu_seconds, peak_rss_mb, .. } = finished;
        let rate = Rate { items, seconds, items_per_second: items as f64 / seconds, peak_rss_mb };
        Ok(Synced { rate, control: share(&tables), control_time: cpu_seconds.map(|run| control_seconds / run) })
    }

    pub(super) fn sync_command(&self, config: &Path) -> Command {
        let mut command = Command::new(&self.highwater);
        command.env_remove("HIGHWATER_CONFIG").env_remove("HIGHWATER_STORE").arg("--config").arg(config);
        command.args(["sync", "hn", "--quiet", "--json"]);
        command
    }

    /// Processor time of the same run without its rows.
    fn control_seconds(&self, folder: &Path, items: u64) -> anyhow::Result<f64> {
        let mut command = Command::new(&self.yardstick);
        command.arg("control").arg(folder.join("control.db")).args(["--items", &items.to_string()]);
        let output = read(&mut command)?;
        serde_json::from_str(&output).context("processor time of the control plane")
    }

    pub(super) fn tables(&self, store: &Path) -> anyhow::Result<Tables> {
        let output = read(Command::new(&self.yardstick).arg("tables").arg(store))?;
        serde_json::from_str(&output).context("tables of the store")
    }
}

pub(super) fn config_text(url: &str, store: &str, in_flight: u32) -> String {
    let store = Value::String(store.to_owned());
    format!(
        "[store]\nurl = {store}\n[sources.hn]\nkind = \"hn\"\nbase_url = \"{url}\"\n\
         [sources.hn.limits]\nrate = \"unlimited\"\nin_flight = {in_flight}\n"
    )
}

fn share(tables: &Tables) -> Share {
    let sum = |wanted: fn(&str) -> bool, part: fn(&Table) -> u64| -> f64 {
        tables.iter().filter(|(name, _)| wanted(name)).map(|(_, table)| part(table)).sum::<u64>() as f64
    };
    Share {
        rows: sum(is_control, |table| table.rows) / sum(|name| name == "hn_items", |table| table.rows),
        bytes: sum(is_control, |table| table.bytes) / sum(|_| true, |table| table.bytes),
    }
}

fn is_control(table: &str) -> bool {
    table.starts_with("ingest_") || table == "ledger"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_counts_control_rows_against_items_and_bytes_against_all() {
        let table = |name: &str, rows, bytes| (name.to_owned(), Table { rows, bytes });
        let tables = [
            table("hn_items", 1_000, 700),
            table("hn_kids", 5_000, 200),
            table("ingest_segments", 8, 60),
            table("ledger", 2, 40),
        ];
        let share = share(&tables.into());
        assert_eq!((share.rows, share.bytes), (0.01, 0.1));
    }

    #[test]
    fn the_configuration_is_toml() {
        let text = config_text("http://127.0.0.1:1", "sqlite:/a \"b\"/c.db", 64);
        let config: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(config["store"]["url"].as_str(), Some("sqlite:/a \"b\"/c.db"));
        assert_eq!(config["sources"]["hn"]["limits"]["in_flight"].as_integer(), Some(64));
    }
}
