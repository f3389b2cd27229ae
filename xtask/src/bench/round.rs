//! One round: every program once, one after the other, against the same simulator.

use std::{collections::BTreeMap, process::Command};

use serde::Serialize;

use super::{Bench, Rate, child, peers::Peers, simulator::Simulator, sync::Synced};

/// Enough on loopback; more only costs memory.
const IN_FLIGHT: u32 = 64;

pub(super) const SLOW_IN_FLIGHT: u32 = 256;
pub(super) const LATENCY_MS: u32 = 50;
/// At 256 in flight and 50 ms this takes 20 s; the start and the end of a run must not weigh much.
const SLOW_ITEMS_MAX: u64 = 100_000;

#[derive(Serialize)]
pub(super) struct Round {
    pub(super) fetch: Rate,
    pub(super) lean: Rate,
    pub(super) sync: Synced,
    /// By name. A peer that failed is not in it.
    pub(super) peers: BTreeMap<&'static str, Rate>,
}

#[derive(Serialize)]
pub(super) struct Slow {
    pub(super) sync: Synced,
}

impl Round {
    /// The best rate any client reached.
    pub(super) fn best_fetch(&self) -> f64 {
        self.fetch.items_per_second.max(self.lean.items_per_second)
    }
}

pub(super) fn latency_plan() -> String {
    format!("[latency]\nfixed_ms = {LATENCY_MS}\n")
}

impl Bench {
    pub(super) fn slow_items(&self) -> u64 {
        self.size.items.min(SLOW_ITEMS_MAX)
    }

    pub(super) fn round(&self, number: usize, simulator: &Simulator, peers: &mut Peers) -> anyhow::Result<Round> {
        let url = simulator.url();
        let fetch = tell("fetch, same client", self.fetch("product", url)?);
        let lean = tell("fetch, lean client", self.fetch("lean", url)?);
        let sync = self.sync(url, self.size.items, IN_FLIGHT)?;
        tell("end to end", sync.rate);
        let peers = peers.run_all(number, &self.scratch, url, self.size.items, tell);
        Ok(Round { fetch, lean, sync, peers })
    }

    pub(super) fn slow_round(&self, simulator: &Simulator) -> anyhow::Result<Slow> {
        let sync = self.sync(simulator.url(), self.slow_items(), SLOW_IN_FLIGHT)?;
        tell("end to end", sync.rate);
        Ok(Slow { sync })
    }

    fn fetch(&self, client: &str, url: &str) -> anyhow::Result<Rate> {
        let mut command = Command::new(&self.yardstick);
        command.args(["fetch", "--client", client, "--base-url", url]);
        command.args(["--items", &self.size.items.to_string(), "--in-flight", &IN_FLIGHT.to_string()]);
        child::report(&mut command, &self.scratch)
    }
}

fn tell(name: &str, rate: Rate) -> Rate {
    let memory = rate.peak_rss_mb.map(|memory| format!("{memory:.0} MB")).unwrap_or_default();
    eprintln!("  {name:<24} {:>9.0} items/s {memory:>9}", rate.items_per_second);
    rate
}
