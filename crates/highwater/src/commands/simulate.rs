//! `highwater simulate`: a remote of one's own to rehearse with.

use std::sync::Arc;

use highwater_sim::{FaultPlan, GmailPlan, GmailSim, HnSim, LookerPlan, LookerSim, Seed, Simulator, World, server};
use highwater_sources::Clock;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    args::{Global, SimulateArgs, Simulated},
    exit::{Exit, Trouble},
    out,
    signals::Signals,
};

pub(super) async fn run(global: &Global, args: &SimulateArgs) -> anyhow::Result<Exit> {
    if args.print_plan {
        out::data(match args.api {
            Simulated::Hn => FaultPlan::sample().trim_end(),
            Simulated::Gmail => GmailPlan::sample().trim_end(),
            Simulated::Looker => LookerPlan::sample().trim_end(),
        });
        return Ok(Exit::Complete);
    }
    match args.api {
        Simulated::Hn => {
            let plan = plan(&args.faults, "none, calm, storm or chaos", FaultPlan::load)?;
            serve(global, args, HnSim::new(world(args)?, plan)).await
        }
        Simulated::Gmail => {
            generated(args, "mailboxes")?;
            let plan = plan(&args.faults, "none, calm, storm, penalty, expiry or broken", GmailPlan::load)?;
            let start = Clock::system().now().as_millis();
            serve(global, args, GmailSim::new(Seed(args.seed), args.items, plan, start)).await
        }
        Simulated::Looker => {
            generated(args, "instances")?;
            let plan = plan(&args.faults, "none, calm, storm or chaos", LookerPlan::load)?;
            let start = Clock::system().now().as_millis();
            serve(global, args, LookerSim::new(Seed(args.seed), args.items, plan, start)).await
        }
    }
}

fn generated(args: &SimulateArgs, what: &str) -> Result<(), Trouble> {
    match args.load {
        Some(_) => Err(Trouble::usage(format!("--load is for hn: {what} are generated"))),
        None => Ok(()),
    }
}

async fn serve(global: &Global, args: &SimulateArgs, sim: impl Simulator) -> anyhow::Result<Exit> {
    let listener = TcpListener::bind(args.listen)
        .await
        .map_err(|error| Trouble::usage(format!("cannot listen on {}: {error}", args.listen)))?;
    let address = listener.local_addr()?;
    let url = format!("http://{address}");
    if global.json {
        out::data(&json!({ "listening": url }).to_string());
    } else {
        out::data(&format!("listening on {url}"));
    }
    if !global.quiet {
        out::complain(
            "truth at /_sim/truth, counters at /_sim/stats; `--help` tells how to change things by hand; stop with Ctrl-C",
        );
    }
    let stop = CancellationToken::new();
    let (served, signal) = Signals::listen()?.guard(&stop, server::serve(listener, Arc::new(sim), stop.clone())).await;
    served?;
    Ok(signal.unwrap_or(Exit::Complete))
}

fn world(args: &SimulateArgs) -> anyhow::Result<World> {
    match &args.load {
        None => Ok(World::generated(Seed(args.seed), args.items)),
        Some(path) => World::from_jsonl(Seed(args.seed), path)
            .map_err(|error| Trouble::usage(format!("--load: {}", highwater_engine::describe(&error))).into()),
    }
}

fn plan<P>(
    name: &str,
    presets: &str,
    load: impl FnOnce(&str) -> Result<P, highwater_sim::PlanError>,
) -> Result<P, Trouble> {
    load(name).map_err(|error| {
        Trouble::usage(format!("--faults {name}: {}", highwater_engine::describe(&error)))
            .hint(format!("use {presets}, or a file; --print-plan shows what one may say"))
    })
}
