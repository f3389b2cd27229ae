//! `cargo xtask ci`: the steps a change must pass, in order, each timed; the first failure ends it.
//!
//! Everything but the end-to-end tests is built with the dev profile and for the whole workspace, so that no step
//! builds again what another has built.

use std::{
    num::NonZeroUsize,
    process::{Command, Stdio},
    thread::available_parallelism,
};

use anyhow::Context;
use clap::ValueEnum;

use crate::{
    postgres::TestServer,
    stopwatch::Stopwatch,
    tidy,
    workspace::{Workspace, run as run_command},
};

/// The simulation runs with so many seeds in a step of its own; elsewhere with one, if it runs at all.
const SEEDS: &str = "300";
const SEEDS_VARIABLE: &str = "HIGHWATER_SEEDS";
const BINARY_VARIABLE: &str = "HIGHWATER_BIN";

/// In nextest's language. The names stand for `crates/highwater-sim/tests/seeds` and `crates/highwater/tests`.
const IS_SEEDS: &str = "package(highwater-sim) & kind(test) & binary(/^seeds$/)";
const IS_END_TO_END: &str = "package(highwater) & kind(test)";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only this step; may be given several times
    #[arg(long = "step", value_name = "NAME")]
    steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// The code is formatted
    Fmt,
    /// No warning of the compiler or of clippy
    Clippy,
    /// The documentation builds without a warning
    Docs,
    /// Unit, integration and documentation tests
    Tests,
    /// The rules of `cargo xtask tidy`
    Tidy,
    /// The simulation with its fixed seeds
    Seeds,
    /// The release binary, run, killed and resumed
    E2e,
}

pub(crate) fn run(args: &Args, workspace: &Workspace) -> anyhow::Result<()> {
    let steps = if args.steps.is_empty() { Step::value_variants() } else { &args.steps };
    let total = Stopwatch::start();
    let mut server = TestServer::default();
    for step in steps {
        step.run_timed(workspace, &mut server)?;
    }
    eprintln!("ci: all passed in {:.1} s", total.seconds());
    Ok(())
}

/// For the help text.
pub(crate) fn step_list() -> String {
    let line = |step: &Step| {
        let value = step.to_possible_value().expect("no step is hidden");
        format!("  {:<8} {}", value.get_name(), value.get_help().map(ToString::to_string).unwrap_or_default())
    };
    let lines: Vec<_> = Step::value_variants().iter().map(line).collect();
    format!("Steps of ci, in order (`cargo xtask ci --step NAME` runs one):\n{}", lines.join("\n"))
}

impl Step {
    fn run_timed(self, workspace: &Workspace, server: &mut TestServer) -> anyhow::Result<()> {
        let value = self.to_possible_value().expect("no step is hidden");
        let name = value.get_name();
        let watch = Stopwatch::start();
        let outcome = self.run(workspace, server);
        let word = if outcome.is_ok() { "passed" } else { "FAILED" };
        eprintln!("ci: {name:<8} {word} in {:.1} s", watch.seconds());
        outcome.with_context(|| format!("step {name} failed (alone: `cargo xtask ci --step {name}`)"))
    }

    fn run(self, workspace: &Workspace, server: &mut TestServer) -> anyhow::Result<()> {
        match self {
            Step::Fmt => run_command(&mut workspace.cargo(["fmt", "--all", "--check"])),
            Step::Clippy => run_command(
                workspace.cargo(["clippy", "--workspace", "--all-targets", "--quiet", "--"]).args(["-D", "warnings"]),
            ),
            Step::Docs => run_command(
                workspace.cargo(["doc", "--no-deps", "--workspace", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings"),
            ),
            Step::Tests => tests(workspace, server),
            Step::Tidy => tidy::run(workspace),
            Step::Seeds => seeds(workspace),
            Step::E2e => end_to_end(workspace, server),
        }
    }
}

fn tests(workspace: &Workspace, server: &mut TestServer) -> anyhow::Result<()> {
    let url = server.url()?;
    if has_nextest(workspace) {
        let filter = format!("not ({IS_SEEDS}) and not ({IS_END_TO_END})");
        run_command(nextest(workspace, &filter).env(highwater_pg_server::VARIABLE, url))?;
    } else {
        // cargo test cannot leave out single test binaries: the simulation is made short instead.
        let all_but_binary = ["test", "--workspace", "--exclude", "highwater", "--tests"];
        let mut command = workspace.cargo(all_but_binary);
        run_command(command.env(SEEDS_VARIABLE, "1").env(highwater_pg_server::VARIABLE, url))?;
        run_command(&mut workspace.cargo(["test", "--package", "highwater", "--bins"]))?;
    }
    run_command(&mut workspace.cargo(["test", "--workspace", "--doc", "--quiet"]))
}

fn seeds(workspace: &Workspace) -> anyhow::Result<()> {
    let mut command = if has_nextest(workspace) {
        nextest(workspace, IS_SEEDS)
    } else {
        workspace.cargo(["test", "--workspace", "--test", "seeds"])
    };
    run_command(command.env(SEEDS_VARIABLE, SEEDS))
}

fn end_to_end(workspace: &Workspace, server: &mut TestServer) -> anyhow::Result<()> {
    run_command(&mut workspace.cargo(["build", "--release", "--package", "highwater"]))?;
    let mut command = if has_nextest(workspace) {
        nextest(workspace, IS_END_TO_END)
    } else {
        workspace.cargo(["test", "--package", "highwater", "--test", "*", "--"])
    };
    command.args(["--test-threads", &end_to_end_at_once().to_string()]);
    command.env(highwater_pg_server::VARIABLE, server.url()?);
    run_command(command.env(BINARY_VARIABLE, workspace.release_binary("highwater")))
}

/// They wait for leases, retries and restarts for half of their time. The PostgreSQL server they share has connections for
/// so many.
fn end_to_end_at_once() -> usize {
    const MAX: usize = 16;
    MAX.min(2 * available_parallelism().map_or(2, NonZeroUsize::get))
}

fn nextest(workspace: &Workspace, filter: &str) -> Command {
    let mut command = workspace.cargo(["nextest", "run", "--workspace", "--no-fail-fast", "--status-level", "slow"]);
    command.args(["--filterset", filter]);
    command
}

fn has_nextest(workspace: &Workspace) -> bool {
    let mut command = workspace.cargo(["nextest", "--version"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
