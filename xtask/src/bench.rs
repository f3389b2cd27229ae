//! `cargo xtask bench`: the product against the fastest fetch possible, against its targets and against peers, all
//! in one run on one simulator, because only ratios survive a change of machine.

mod child;
mod figures;
mod gmail;
mod looker;
mod peers;
mod postgres;
mod round;
mod simulator;
mod sync;
mod table;

use std::{fs, path::PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::{
    peers::Peers,
    round::{Round, Slow},
    simulator::Simulator,
};
use crate::workspace::{Workspace, run as run_command};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Items of the simulated Hacker News [default: 200,000, quick 40,000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..))]
    items: Option<u64>,
    /// Fewer items and one round of each: to see that it runs
    #[arg(long)]
    quick: bool,
    /// Also run what people use today, from bench/peers: the slow ones in three of the seven rounds
    #[arg(long)]
    peers: bool,
    /// Print the raw figures as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct PostgresArgs {
    /// Items of the simulated Hacker News [default: 200,000, quick 40,000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..))]
    items: Option<u64>,
    /// Fewer items and one round of each: to see that it runs
    #[arg(long)]
    quick: bool,
}

#[derive(clap::Args)]
pub(crate) struct GmailArgs {
    /// Messages of the simulated mailbox [default: 20,000, quick 4,000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..))]
    messages: Option<u64>,
    /// Messages of up to 35 MB in the run that measures memory [default: 64, quick 16]
    #[arg(long, value_name = "N")]
    large: Option<u64>,
    /// Fewer messages and one round instead of three: to see that it runs
    #[arg(long)]
    quick: bool,
}

#[derive(clap::Args)]
pub(crate) struct LookerArgs {
    /// Dashboards of the simulated instance [default: 10,000, quick 2,000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..))]
    dashboards: Option<u64>,
    /// Fewer dashboards and one round instead of three: to see that it runs
    #[arg(long)]
    quick: bool,
}

#[derive(clap::Args)]
pub(crate) struct SoakArgs {
    /// Hours of virtual time; each takes about a minute
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    hours: u32,
}

/// How much is measured.
#[derive(Clone, Copy, Serialize)]
struct Size {
    /// Programs alternate within a round, so that a slow minute of the machine meets all of them.
    rounds: usize,
    items: u64,
}

/// A run of three seconds is as much as a tenth faster or slower than the one before it.
const ROUNDS: usize = 7;
/// Of what takes longer, which evens out more.
const LONG_ROUNDS: usize = 3;

/// A program's own account of its work, or ours of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Rate {
    items: u64,
    seconds: f64,
    items_per_second: f64,
    peak_rss_mb: Option<f64>,
}

/// Where the programs are and where they may write.
struct Bench {
    highwater: PathBuf,
    yardstick: PathBuf,
    peers: PathBuf,
    scratch: PathBuf,
    size: Size,
}

pub(crate) fn run(args: &Args, workspace: &Workspace) -> anyhow::Result<()> {
    build(workspace)?;
    let bench = Bench::new(workspace, args.size())?;
    let mut peers = if args.peers { Peers::install(&bench.peers) } else { Peers::none() };
    let rounds = bench.rounds(&mut peers)?;
    let slow = bench.slow_rounds()?;
    let figures = figures::all(&rounds, &slow);
    if args.json {
        let raw = json!({
            "size": bench.size, "rounds": rounds, "latency": slow, "figures": figures, "skipped": peers.skipped(),
        });
        println!("{raw}");
    } else {
        print!("{}", table::draw(&figures));
    }
    for (name, reason) in peers.skipped() {
        eprintln!("skipped {name}: {reason}");
    }
    fs::remove_dir_all(&bench.scratch).context("cannot remove the scratch folder")
}

pub(crate) fn run_postgres(args: &PostgresArgs, workspace: &Workspace) -> anyhow::Result<()> {
    build(workspace)?;
    let bench = Bench::new(workspace, size(args.items, args.quick, ROUNDS))?;
    postgres::run(&bench)?;
    fs::remove_dir_all(&bench.scratch).context("cannot remove the scratch folder")
}

pub(crate) fn run_gmail(args: &GmailArgs, workspace: &Workspace) -> anyhow::Result<()> {
    build(workspace)?;
    let (rounds, usual, large) = if args.quick { (1, 4_000, 16) } else { (LONG_ROUNDS, 20_000, 64) };
    let bench = Bench::new(workspace, Size { rounds, items: args.messages.unwrap_or(usual) })?;
    gmail::run(&bench, args.large.unwrap_or(large))?;
    fs::remove_dir_all(&bench.scratch).context("cannot remove the scratch folder")
}

pub(crate) fn run_looker(args: &LookerArgs, workspace: &Workspace) -> anyhow::Result<()> {
    build(workspace)?;
    let (rounds, usual) = if args.quick { (1, 2_000) } else { (LONG_ROUNDS, 10_000) };
    let bench = Bench::new(workspace, Size { rounds, items: args.dashboards.unwrap_or(usual) })?;
    looker::run(&bench)?;
    fs::remove_dir_all(&bench.scratch).context("cannot remove the scratch folder")
}

pub(crate) fn run_soak(args: &SoakArgs, workspace: &Workspace) -> anyhow::Result<()> {
    let example = ["run", "--release", "--quiet", "--package", "highwater-sim", "--example", "soak", "--"];
    run_command(workspace.cargo(example).arg(args.hours.to_string()))
}

impl Args {
    fn size(&self) -> Size {
        size(self.items, self.quick, ROUNDS)
    }
}

fn size(items: Option<u64>, quick: bool, rounds: usize) -> Size {
    let (rounds, usual) = if quick { (1, 40_000) } else { (rounds, 200_000) };
    Size { rounds, items: items.unwrap_or(usual) }
}

impl Size {
    fn long_rounds(self) -> usize {
        self.rounds.min(LONG_ROUNDS)
    }
}

/// In one command, so that both programs get the same dependencies with the same features.
fn build(workspace: &Workspace) -> anyhow::Result<()> {
    let packages = ["--package", "highwater", "--package", "highwater-bench"];
    run_command(workspace.cargo(["build", "--release", "--bins"]).args(packages))
}

impl Bench {
    fn new(workspace: &Workspace, size: Size) -> anyhow::Result<Self> {
        // Not in the system's temporary folder: that may be memory, and then no write waits for a disk.
        let scratch = workspace.scratch("bench-hn");
        if scratch.exists() {
            fs::remove_dir_all(&scratch).context("cannot remove what an earlier run left")?;
        }
        fs::create_dir_all(&scratch).context("cannot make the scratch folder")?;
        Ok(Bench {
            highwater: workspace.release_binary("highwater"),
            yardstick: workspace.release_binary("highwater-bench"),
            peers: workspace.root().join("bench/peers"),
            scratch,
            size,
        })
    }

    fn rounds(&self, peers: &mut Peers) -> anyhow::Result<Vec<Round>> {
        let simulator = Simulator::start(&self.highwater, "hn", self.size.items, "none")?;
        let round = |number| {
            eprintln!("round {} of {}", number + 1, self.size.rounds);
            self.round(number, &simulator, peers)
        };
        (0..self.size.rounds).map(round).collect()
    }

    fn slow_rounds(&self) -> anyhow::Result<Vec<Slow>> {
        let plan = self.scratch.join("latency.toml");
        fs::write(&plan, round::latency_plan()).context("cannot write the fault plan")?;
        let simulator = Simulator::start(&self.highwater, "hn", self.slow_items(), &plan.to_string_lossy())?;
        let round = |number| {
            eprintln!("round {} of {} with latency", number + 1, self.size.long_rounds());
            self.slow_round(&simulator)
        };
        (0..self.size.long_rounds()).map(round).collect()
    }
}
