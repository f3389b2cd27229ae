//! Yardsticks for `cargo xtask bench`: how fast items can be fetched when nothing is done with them, and what is in a
//! store afterwards. Every command prints one line of JSON.

mod control;
mod lean;
mod mail;
mod postgres;
mod product;
mod report;
mod tables;
mod work;

use std::{num::NonZeroU32, path::PathBuf};

use clap::{Parser, Subcommand, ValueEnum};
use highwater_sources::Clock;

use crate::work::Work;

#[derive(Parser)]
#[command(about = "Yardsticks for `cargo xtask bench`")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fetch the items 1 to N and discard them
    Fetch(FetchArgs),
    /// Fetch the messages of a simulated mailbox and discard them
    Mail {
        /// As `http://HOST:PORT`
        #[arg(long)]
        base_url: String,
        #[arg(long, default_value = "64")]
        in_flight: NonZeroU32,
    },
    /// Plan, claim, commit and close the segments of N items that have no rows; prints processor seconds
    Control {
        /// Of the store to be made
        path: PathBuf,
        #[arg(long)]
        items: u32,
    },
    /// Rows a second that a bare bulk upsert reaches on a PostgreSQL server
    Ceiling {
        url: String,
        #[arg(long)]
        items: u64,
    },
    /// Remove a schema and let the server write out what it still holds in memory
    Sweep { url: String, schema: String },
    /// Segments a second that eight claimers get, in one store as it is and in another after many updates
    Claims {
        fresh: String,
        worn: String,
        #[arg(long)]
        segments: u32,
        #[arg(long)]
        updates: u32,
    },
    /// Count rows and bytes of every table of a SQLite store
    Tables { path: PathBuf },
}

#[derive(clap::Args)]
struct FetchArgs {
    #[arg(long, value_enum)]
    client: Client,
    /// As `http://HOST:PORT`
    #[arg(long)]
    base_url: String,
    #[arg(long)]
    items: u64,
    #[arg(long, default_value = "64")]
    in_flight: NonZeroU32,
}

#[derive(Clone, Copy, ValueEnum)]
enum Client {
    /// The product's transport behind its gateway
    Product,
    /// As little work for a request as can be
    Lean,
}

fn main() -> anyhow::Result<()> {
    let line = match &Args::parse().command {
        Command::Fetch(args) => serde_json::to_string(&fetch(args)?)?,
        Command::Mail { base_url, in_flight } => serde_json::to_string(&fetch_mail(base_url, *in_flight)?)?,
        Command::Control { path, items } => serde_json::to_string(&control::measure(path, *items)?)?,
        Command::Ceiling { url, items } => serde_json::to_string(&postgres::ceiling(url, *items)?)?,
        Command::Sweep { url, schema } => serde_json::to_string(&postgres::sweep(url, schema)?)?,
        Command::Claims { fresh, worn, segments, updates } => {
            serde_json::to_string(&postgres::claims(fresh, worn, *segments, *updates)?)?
        }
        Command::Tables { path } => serde_json::to_string(&tables::read(path)?)?,
    };
    println!("{line}");
    Ok(())
}

fn fetch_mail(base_url: &str, in_flight: NonZeroU32) -> anyhow::Result<report::Rate> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (messages, duration) = runtime.block_on(mail::fetch(base_url, in_flight.get(), &Clock::system()))?;
    report::rate(messages, duration)
}

fn fetch(args: &FetchArgs) -> anyhow::Result<report::Rate> {
    // As the product does.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let clock = Clock::system();
        let started = clock.moment();
        let work = Work::new(args.items, args.in_flight);
        match args.client {
            Client::Product => product::fetch(&args.base_url, &work, &clock).await?,
            Client::Lean => lean::fetch(&args.base_url, &work).await?,
        }
        report::rate(args.items, clock.moment().since(started))
    })
}
