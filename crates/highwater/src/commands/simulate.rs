//! `highwater simulate`: a remote of one's own to rehearse with.

use std::sync::Arc;

use highwater_sim::{FaultPlan, HnSim, Seed, World, server};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    args::{Global, SimulateArgs},
    exit::{Exit, Trouble},
    out,
    signals::Signals,
};

pub(super) async fn run(global: &Global, args: &SimulateArgs) -> anyhow::Result<Exit> {
    if args.print_plan {
        out::data(FaultPlan::sample().trim_end());
        return Ok(Exit::Complete);
    }
    let sim = Arc::new(HnSim::new(world(args)?, plan(&args.faults)?));
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
    let (served, signal) = Signals::listen()?.guard(&stop, server::serve(listener, sim, stop.clone())).await;
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

fn plan(name: &str) -> Result<FaultPlan, Trouble> {
    FaultPlan::load(name).map_err(|error| {
        Trouble::usage(format!("--faults {name}: {}", highwater_engine::describe(&error)))
            .hint("use none, calm, storm or chaos, or a file; --print-plan shows what one may say")
    })
}
