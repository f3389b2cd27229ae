//! The simulated Hacker News against its own promises: shapes, endpoints, faults.

mod endpoints;
mod faults;
mod life;
mod shapes;
mod streams;

use serde_json::Value;

use super::*;
use crate::{answer::IfNoneMatch, plan::Preset, rng::Seed};

fn sim(items: u64, plan: &str) -> HnSim {
    HnSim::new(World::generated(Seed(42), items), FaultPlan::parse(plan).unwrap())
}

fn ask(sim: &HnSim, target: &str, now: Duration) -> Reply {
    sim.answer(&SimRequest::get(target), now).reply
}

fn item(sim: &HnSim, id: u64, now: Duration) -> Reply {
    ask(sim, &format!("/v0/item/{id}.json"), now)
}

/// The body of a reply that must be a good one.
fn good(reply: Reply) -> Bytes {
    match reply {
        Reply::Full(message) if message.status == StatusCode::OK => message.body,
        other => panic!("{other:?}"),
    }
}

fn json(reply: Reply) -> Value {
    serde_json::from_slice(&good(reply)).unwrap()
}
