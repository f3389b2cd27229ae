//! `cargo xtask bench postgres`: the same mirror in PostgreSQL beside the one in SQLite, one process beside two, and the
//! queue under claimers, on a server that waits for its disk.

use std::{fs, process::Command};

use anyhow::{Context, anyhow};
use highwater_pg_server::{Durability, Server};
use serde::Deserialize;

use super::{
    Bench, child,
    figures::{Figures, Judged, Measured, Target, judged, median},
    round,
    simulator::Simulator,
    sync::config_text,
    table,
};
use crate::{stopwatch::Stopwatch, workspace::read};

const IN_FLIGHT: u32 = 64;
/// Each process; with the latency of `round` the source then is what limits a process.
const SLOW_IN_FLIGHT: u32 = 128;
/// A process then takes 40 s, two of them 20: their start and their end must not weigh much.
const SLOW_ITEMS: u64 = 100_000;
const SEGMENTS: u32 = 60_000;
const UPDATES: u32 = 1_000_000;

/// Items a second.
struct Round {
    sqlite: f64,
    one: f64,
    two: f64,
    ceiling: f64,
}

/// With a source that takes its time.
struct Slow {
    one: f64,
    two: f64,
}

/// Claims a second, by turn.
#[derive(Deserialize)]
struct Claims {
    fresh: Vec<f64>,
    worn: Vec<f64>,
}

pub(super) fn run(bench: &Bench) -> anyhow::Result<()> {
    let server = Server::start(Durability::Full).map_err(|error| anyhow!(error))?;
    let mut schemas = Schemas { server: &server, count: 0 };
    let rounds = rounds(bench, &mut schemas)?;
    let slow = slow_rounds(bench, &mut schemas)?;
    schemas.sweep(bench)?;
    let claims = claims(bench, &schemas.fresh(), &schemas.fresh())?;
    let figures = figures(&rounds, &slow, &claims);
    print!("{}", table::draw(&figures));
    Ok(())
}

/// A schema for each run, so that none meets the rows of another.
struct Schemas<'a> {
    server: &'a Server,
    count: u32,
}

impl Schemas<'_> {
    /// Removes what the last run left: a server that still writes it out or tidies it up is not the same for the next.
    fn sweep(&self, bench: &Bench) -> anyhow::Result<()> {
        let mut command = Command::new(&bench.yardstick);
        read(command.args(["sweep", &self.server.url(), &format!("bench{}", self.count)])).map(drop)
    }

    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("{}?schema=bench{}", self.server.url(), self.count)
    }
}

fn rounds(bench: &Bench, schemas: &mut Schemas<'_>) -> anyhow::Result<Vec<Round>> {
    let simulator = Simulator::start(&bench.highwater, "hn", bench.size.items, "none")?;
    let mut round = |number| {
        eprintln!("round {number} of {}", bench.size.rounds);
        let work = Work { simulator: &simulator, items: bench.size.items, in_flight: IN_FLIGHT };
        let one = work.rate(bench, schemas, 1)?;
        let two = work.rate(bench, schemas, 2)?;
        schemas.sweep(bench)?;
        let sqlite = bench.sync(simulator.url(), work.items, work.in_flight)?.rate.items_per_second;
        tell("SQLite", sqlite);
        let ceiling = ceiling(bench, &schemas.server.url())?;
        tell("bare bulk upsert", ceiling);
        Ok(Round { sqlite, one, two, ceiling })
    };
    (1..=bench.size.rounds).map(&mut round).collect()
}

fn slow_rounds(bench: &Bench, schemas: &mut Schemas<'_>) -> anyhow::Result<Vec<Slow>> {
    let plan = bench.scratch.join("latency.toml");
    fs::write(&plan, round::latency_plan()).context("cannot write the fault plan")?;
    let items = bench.size.items.min(SLOW_ITEMS);
    let simulator = Simulator::start(&bench.highwater, "hn", items, &plan.to_string_lossy())?;
    let mut round = |number| {
        eprintln!("round {number} of {} with latency", bench.size.long_rounds());
        let work = Work { simulator: &simulator, items, in_flight: SLOW_IN_FLIGHT };
        Ok(Slow { one: work.rate(bench, schemas, 1)?, two: work.rate(bench, schemas, 2)? })
    };
    (1..=bench.size.long_rounds()).map(&mut round).collect()
}

/// What processes do that share a store.
struct Work<'a> {
    simulator: &'a Simulator,
    items: u64,
    in_flight: u32,
}

impl Work<'_> {
    /// In a schema of its own, on a server that has nothing else to do.
    fn rate(&self, bench: &Bench, schemas: &mut Schemas<'_>, processes: u32) -> anyhow::Result<f64> {
        schemas.sweep(bench)?;
        let store = schemas.fresh();
        let rate = bench.processes(processes, self.simulator.url(), &store, self.items, self.in_flight)?;
        tell(&format!("PostgreSQL, processes: {processes}"), rate);
        Ok(rate)
    }
}

fn tell(name: &str, rate: f64) {
    eprintln!("  {name:<28} {rate:>9.0} items/s");
}

impl Bench {
    /// Items a second of so many processes that share one store, from the first start to the last end.
    fn processes(&self, count: u32, url: &str, store: &str, items: u64, in_flight: u32) -> anyhow::Result<f64> {
        let config = self.scratch.join("postgres.toml");
        fs::write(&config, config_text(url, store, in_flight)).context("cannot write the configuration")?;
        child::settle()?;
        let watch = Stopwatch::start();
        let children: Vec<_> =
            (0..count).map(|_| child::start(&mut self.sync_command(&config))).collect::<anyhow::Result<_>>()?;
        for child in children {
            child::ended(child)?;
        }
        Ok(items as f64 / watch.seconds())
    }
}

fn ceiling(bench: &Bench, url: &str) -> anyhow::Result<f64> {
    let mut command = Command::new(&bench.yardstick);
    command.args(["ceiling", url, "--items", &bench.size.items.to_string()]);
    child::settle()?;
    serde_json::from_str(&read(&mut command)?).context("the rate of a bare upsert")
}

fn claims(bench: &Bench, fresh: &str, worn: &str) -> anyhow::Result<Claims> {
    eprintln!("claims, without and after {UPDATES} updates");
    let mut command = Command::new(&bench.yardstick);
    command.args(["claims", fresh, worn, "--segments", &SEGMENTS.to_string(), "--updates", &UPDATES.to_string()]);
    serde_json::from_str(&read(&mut command)?).context("the rates of claims")
}

fn figures(rounds: &[Round], slow: &[Slow], claims: &Claims) -> Figures {
    let ratio = |name: &str, ratio: fn(&Round) -> f64, target| judged(name, rounds.iter().map(ratio), target);
    let share = median(rounds.iter().map(|round| round.one / round.ceiling));
    let bare = share.map(|value| Judged { name: "PostgreSQL / bare bulk upsert".to_owned(), value, target: None });
    let worn = claims.worn.iter().zip(&claims.fresh).map(|(worn, fresh)| worn / fresh);
    let judged = [
        ratio("PostgreSQL / SQLite", |round| round.one / round.sqlite, Target::AtLeast(0.75)),
        bare,
        ratio("two processes / one", |round| round.two / round.one, Target::AtLeast(1.0)),
        judged("two / one with latency", slow.iter().map(|slow| slow.two / slow.one), Target::AtLeast(1.8)),
        judged("claims a second by eight", claims.fresh.iter().copied(), Target::AtLeast(1_000.0)),
        judged("claims after 1,000,000 updates / without", worn, Target::AtLeast(1.0)),
    ];
    Figures {
        measured: vec![
            measured("end to end, SQLite", rounds.iter().map(|round| round.sqlite)),
            measured("end to end, PostgreSQL", rounds.iter().map(|round| round.one)),
            measured("two processes", rounds.iter().map(|round| round.two)),
            measured("one process, 50 ms, 128 in flight", slow.iter().map(|slow| slow.one)),
            measured("two processes, 50 ms, 128 in flight each", slow.iter().map(|slow| slow.two)),
            measured("bare bulk upsert", rounds.iter().map(|round| round.ceiling)),
        ],
        judged: judged.into_iter().flatten().collect(),
    }
}

fn measured(name: &str, rates: impl Iterator<Item = f64>) -> Measured {
    Measured { name: name.to_owned(), items_per_second: median(rates).unwrap_or(f64::NAN), peak_rss_mb: None }
}
