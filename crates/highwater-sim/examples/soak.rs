//! An hour of the live service (or as many as the argument says) on virtual time, with a remote that changes all the while and a feed that breaks: prints, as
//! one line of JSON, what it did and how much memory the process held on the way. What the simulator needs to remember
//! its changes is measured beside it and taken off.

use std::{fs, sync::Arc, time::Duration};

use highwater_core::{
    Event, Timestamp,
    throttle::{InFlight, Rate, Settings},
};
use highwater_engine::{
    Engine, EngineSettings, Entropy, LiveSettings, Process, Pulse, RescanSettings, ServeRequest, Stop, World,
};
use highwater_sim::{FaultPlan, HnSim, Seed, SimRequest, SimTransport};
use highwater_sources::{Clock, Decoding, Gateway, Hn};
use highwater_store::{Execution, OpenOptions, SqliteStore, Store};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const ITEMS: u64 = 20_000;
const HOUR: Duration = Duration::from_secs(3600);
const LOOK_EVERY: Duration = Duration::from_secs(300);
const BEGAN: Timestamp = Timestamp::from_millis(1_750_000_000_000);
const PLAN: &str = "
    [clock]
    now = 1750000000
    [latency]
    fixed_ms = 20
    jitter_ms = 30
    [head]
    behind = 1000
    every_ms = 7000
    [mutations]
    every_ms = 50
    unpublished = 0.1
    [stream]
    drop_after_events = 700
    [rates]
    500 = 0.002
    reset = 0.001
";

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The remote remembers every change it ever made: how much memory that takes is found out beside it.
const ALONE: &str = "alone";

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_alone = arguments.iter().any(|argument| argument == ALONE);
    let hours = arguments.iter().find_map(|argument| argument.parse::<u32>().ok()).unwrap_or(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    let line = if is_alone {
        json!(runtime.block_on(remote_alone(HOUR * hours))?)
    } else {
        let beside = std::process::Command::new(std::env::current_exe()?).args([ALONE, &hours.to_string()]).output()?;
        let remote: Vec<f64> = serde_json::from_slice(&beside.stdout)?;
        runtime.block_on(soak(HOUR * hours, &remote))?
    };
    println!("{line}");
    Ok(())
}

async fn soak(length: Duration, remote: &[f64]) -> Outcome<serde_json::Value> {
    let folder = tempfile::tempdir()?;
    let clock = Clock::simulated(BEGAN);
    let stop = CancellationToken::new();
    let options = OpenOptions { execution: Execution::Inline, ..OpenOptions::new(folder.path().join("soak.db")) };
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(options)?);
    let sim = simulator()?;
    let pulse = Arc::<Pulse>::default();
    let engine = engine(&clock, store, &sim, stop.clone());
    let request = ServeRequest { live: live(), pulse: pulse.clone() };
    let (served, memory) = tokio::join!(engine.serve(&request), watch(&clock, length, &stop));
    served?;
    let pulse = pulse.view();
    let ours: Vec<f64> = memory.iter().zip(remote).map(|(all, grown)| all - (grown - remote[0])).collect();
    Ok(json!({
        "virtual_seconds": clock.moment().since_start().as_secs(),
        "updated": pulse.updated,
        "reconnects": pulse.reconnects(),
        "memory_mb": memory,
        "remote_mb": remote,
        // By the half of it the caches of the store are full.
        "growth_in_second_half": ours[ours.len() - 1] / ours[ours.len() / 2],
    }))
}

/// The same changes, and nobody who looks at them.
async fn remote_alone(length: Duration) -> Outcome<Vec<f64>> {
    let clock = Clock::simulated(BEGAN);
    let sim = simulator()?;
    let stop = CancellationToken::new();
    let live_on = async {
        loop {
            clock.sleep(Duration::from_secs(1)).await;
            sim.answer(&SimRequest::get("/v0/updates.json"), clock.moment().since_start());
        }
    };
    tokio::select! {
        memory = watch(&clock, length, &stop) => Ok(memory),
        () = live_on => unreachable!("it goes on without end"),
    }
}

fn simulator() -> Outcome<Arc<HnSim>> {
    Ok(Arc::new(HnSim::new(highwater_sim::World::generated(Seed(1), ITEMS), FaultPlan::parse(PLAN)?)))
}

fn engine(clock: &Clock, store: Arc<dyn Store>, sim: &Arc<HnSim>, stop: CancellationToken) -> Engine {
    let entropy = Entropy::seeded(1);
    let jitter = entropy.clone();
    let transport = Arc::new(SimTransport::new(sim.clone(), clock.clone(), Duration::ZERO));
    let throttle = Settings::new(Rate::Limited { start: 250.0, max: 1000.0 }, InFlight { start: 64, max: 64 });
    let gateway = Gateway::new(transport, throttle, clock.clone(), Box::new(move || jitter.unit()));
    Engine {
        name: "hn".parse().expect("a plain word is a name"),
        blobs: None,
        source: Arc::new(Hn::new(gateway, Decoding::Inline)),
        store,
        settings: EngineSettings::default(),
        world: World {
            clock: clock.clone(),
            entropy,
            observer: Arc::new(|_: &Event| {}),
            stop: Stop::from(stop),
            process: Process { host: "here".into(), pid: std::process::id() },
        },
    }
}

fn live() -> LiveSettings {
    LiveSettings {
        rescan: RescanSettings { every: Duration::from_secs(900), ..RescanSettings::default() },
        ..LiveSettings::default()
    }
}

/// The memory of this process every few minutes; then the end.
async fn watch(clock: &Clock, length: Duration, stop: &CancellationToken) -> Vec<f64> {
    let mut memory = Vec::new();
    while clock.moment().since_start() < length {
        clock.sleep(LOOK_EVERY).await;
        memory.push(resident_mb());
    }
    stop.cancel();
    memory
}

/// Zero where nobody can say.
fn resident_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    line.map_or(0.0, |kilobytes: f64| kilobytes / 1024.0)
}
