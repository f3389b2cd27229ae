//! The project's own tools: `cargo xtask ci`, `cargo xtask tidy`, `cargo xtask fuzz` and `cargo xtask bench`.

mod bench;
mod ci;
mod fuzz;
mod postgres;
mod stopwatch;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "The project's own tools", after_help = ci::step_list())]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything a change must pass
    Ci(ci::Args),
    /// Check the rules that no compiler checks
    Tidy,
    /// Feed the readers of foreign bytes with whatever reaches more of their code
    Fuzz(fuzz::Args),
    /// Measure speed and memory, as ratios taken in one run
    #[command(subcommand)]
    Bench(Bench),
}

#[derive(Subcommand)]
enum Bench {
    /// Hacker News, simulated, into SQLite
    Hn(bench::Args),
    /// Gmail, simulated, into SQLite: speed, and memory with large messages
    Gmail(bench::GmailArgs),
    /// Looker, simulated, into SQLite: speed, memory, and what a second run costs
    Looker(bench::LookerArgs),
    /// Hacker News into PostgreSQL: beside SQLite, by several processes, and the queue under claimers
    Postgres(bench::PostgresArgs),
    /// An hour of the live service on virtual time: what it did, and that its memory does not grow
    Soak(bench::SoakArgs),
}

fn main() -> ExitCode {
    match run(&Args::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> anyhow::Result<()> {
    let workspace = Workspace::locate()?;
    match command {
        Command::Ci(args) => ci::run(args, &workspace),
        Command::Tidy => tidy::run(&workspace),
        Command::Fuzz(args) => fuzz::run(args, &workspace),
        Command::Bench(Bench::Hn(args)) => bench::run(args, &workspace),
        Command::Bench(Bench::Gmail(args)) => bench::run_gmail(args, &workspace),
        Command::Bench(Bench::Looker(args)) => bench::run_looker(args, &workspace),
        Command::Bench(Bench::Postgres(args)) => bench::run_postgres(args, &workspace),
        Command::Bench(Bench::Soak(args)) => bench::run_soak(args, &workspace),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Args;

    #[test]
    fn the_arguments_fit_together() {
        Args::command().debug_assert();
    }
}
