//! Streams over real sockets and in process: the same bytes, and the same ends.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod process;
mod sockets;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use highwater_sim::{FaultPlan, HnSim, Seed, World};

/// Only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(20);

fn sim(plan: &str) -> Arc<HnSim> {
    Arc::new(HnSim::new(World::generated(Seed(4), 2_000), FaultPlan::parse(plan).unwrap()))
}

/// Everything a client hears, as far as it has come.
#[derive(Debug, Default)]
struct Heard(Vec<u8>);

impl Heard {
    fn add(&mut self, piece: &Bytes) {
        self.0.extend_from_slice(piece);
    }

    fn frames(&self) -> usize {
        self.text().matches("\n\n").count()
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap()
    }
}
