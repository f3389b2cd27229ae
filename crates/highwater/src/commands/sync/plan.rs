//! `highwater sync --plan`: how many calls a sync would make, for the price of the lists.

use std::{collections::BTreeMap, sync::Arc};

use highwater_core::Event;
use highwater_engine::StreamForecast;
use highwater_store::Store;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::{
    args::Global,
    config::SourceConfig,
    exit::{Exit, Trouble},
    out,
    settings::Settings,
};

pub(super) async fn run(
    global: &Global,
    settings: &Settings,
    sources: &[&SourceConfig],
    store: &Arc<dyn Store>,
    stop: &CancellationToken,
) -> anyhow::Result<Exit> {
    let mut plans = Vec::new();
    for source in sources {
        if source.looker.is_none() {
            let message = format!("--plan: the calls of {} are not counted", source.name);
            return Err(Trouble::usage(message).hint("it is for sources of kind looker").into());
        }
        let engine = settings.engine(source, store.clone(), Arc::new(|_: &Event| {}), stop.clone())?;
        let forecasts = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(Exit::Interrupted),
            forecasts = engine.forecast() => forecasts?,
        };
        let made = engine.source.gateway().traffic().requests;
        plans.push(Plan { source: source.name.to_string(), forecasts, made });
    }
    if global.json {
        let plans: Vec<Json> = plans.iter().map(Plan::json).collect();
        out::data(&json!({ "plan": plans }).to_string());
    } else {
        plans.iter().for_each(|plan| out::data(&plan.text()));
    }
    Ok(Exit::Complete)
}

struct Plan {
    source: String,
    forecasts: Vec<StreamForecast>,
    /// Calls that finding it out has taken.
    made: u64,
}

impl Plan {
    /// By kind of call.
    fn totals(&self) -> BTreeMap<&'static str, u64> {
        let mut totals = BTreeMap::from([("query", 0), ("non_query", 0)]);
        for (kind, calls) in self.forecasts.iter().filter_map(|one| one.forecast.as_ref()).flat_map(|one| &one.calls) {
            *totals.entry(kind).or_default() += calls;
        }
        totals
    }

    fn json(&self) -> Json {
        let stream = |one: &StreamForecast| {
            let forecast = one.forecast.as_ref();
            let calls: BTreeMap<_, _> = forecast.into_iter().flat_map(|one| one.calls.iter().copied()).collect();
            json!({
                "name": one.stream,
                "objects": forecast.map(|one| one.objects),
                "calls": calls,
                "forbidden": forecast.is_some_and(|one| one.refused.is_some()),
            })
        };
        let totals = self.totals();
        json!({
            "source": self.source,
            "streams": self.forecasts.iter().map(stream).collect::<Vec<_>>(),
            "calls": totals,
            "total": totals.values().sum::<u64>(),
            "calls_made": self.made,
        })
    }

    fn text(&self) -> String {
        let mut lines = vec![format!("{}: a sync would make about", self.source)];
        for one in &self.forecasts {
            lines.push(match &one.forecast {
                None => format!("  {:<24} known only when what refers to it is read", one.stream),
                Some(forecast) => match &forecast.refused {
                    Some(why) => format!("  {:<24} forbidden ({why})", one.stream),
                    None => {
                        let calls: u64 = forecast.calls.iter().map(|(_, calls)| calls).sum();
                        let (calls, objects) = (out::grouped(calls), out::grouped(forecast.objects));
                        format!("  {:<24} {calls:>8} calls for {objects} objects", one.stream)
                    }
                },
            });
        }
        let totals = self.totals();
        let (all, query) = (totals.values().sum::<u64>(), totals["query"]);
        let split = format!("{} query, {} non-query", out::grouped(query), out::grouped(all - query));
        lines.push(format!("  {:<24} {:>8} calls ({split})", "in all", out::grouped(all)));
        lines.push(format!("  {} calls were made to find out", out::grouped(self.made)));
        lines.join("\n")
    }
}
