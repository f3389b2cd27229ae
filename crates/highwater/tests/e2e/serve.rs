//! `highwater serve` against a world that changes: what is told arrives, what is not is found, and every moment of
//! blindness is accounted for until it is made good.

mod alerts;
mod away;
mod blind;
mod burst;
mod doors;
mod live;
mod takeover;

use std::time::Duration;

use crate::support::{Home, Publish, Service, Sim, Tables, assert_mirrors, unix_seconds};

const PATIENCE: Duration = Duration::from_secs(40);
const OPEN_WINDOWS: &str = "SELECT count(*) FROM ingest_blind_windows WHERE closed_at IS NULL";
const CLOSED_WINDOWS: &str = "SELECT count(*) FROM ingest_blind_windows WHERE closed_at IS NOT NULL";

/// A world whose items are young, and a feed that shows signs of life often enough for a test.
fn plan(more: &str) -> String {
    let now = unix_seconds();
    format!("[clock]\nnow = {now}\nseconds_per_id = 12\n[stream]\nkeep_alive_ms = 300\n{more}")
}

/// With settings of the live section behind the limits.
fn limits(limits: &str, live: &str) -> String {
    format!("{limits}\n[sources.hn.live]\nidle_timeout = \"2s\"\n{live}")
}

fn caught_up(service: &mut Service, last: i64) {
    service.wait_for("the catch-up", PATIENCE, |service| {
        service.metric("catchup_frontier_lag") == Some(0.0)
            && service.metric("catchup_progress_percent") == Some(100.0)
            && service.ask("/api/status", &service.host()).1.contains(&format!("\"frontier\":{}", last + 1))
    });
}

/// Whether the store has what people read of an item as the truth has it.
fn same(tables: &impl Tables, id: i64, truth: &serde_json::Value) -> bool {
    const READ: [&str; 3] = ["title", "text", "score"];
    let found = tables.cells(&format!("SELECT {} FROM hn_items WHERE id = {id}", READ.join(", ")));
    found.first().is_some_and(|row| READ.iter().zip(row).all(|(name, cell)| truth[*name] == *cell))
}

/// A change that is told, and heard.
fn hears(service: &mut Service, tables: &impl Tables, sim: &Sim, id: i64) {
    let (id, truth) = sim.edit(id, Publish::Yes);
    service.wait_for("an update", PATIENCE, |_| same(tables, id, &truth));
}

/// Everything is as the remote has it, and nothing is left to be looked at.
fn ends_equal(service: &mut Service, tables: &impl Tables, sim: &Sim, last: i64) {
    service.wait_for("all windows to close", PATIENCE, |_| tables.number(OPEN_WINDOWS) == 0);
    service.wait_for("the queue to empty", PATIENCE, |service| service.metric("realtime_queue_depth") == Some(0.0));
    assert_mirrors(tables, sim, 1, last);
}

fn home(sim: &Sim, settings: &str) -> Home {
    Home::new(&sim.url(), settings)
}
