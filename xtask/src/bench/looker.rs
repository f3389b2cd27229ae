//! Looker, simulated, into SQLite: how fast pages of dashboards become rows, in how much memory, and what a second run
//! costs that finds nothing changed.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{
    Bench, Rate, child,
    figures::{Figures, Measured, Target, judged, median},
    simulator::Simulator,
    table,
};

const IN_FLIGHT: u32 = 8;
const PAGE: u32 = 100;
/// Objects a second; what people use today reaches 91 on such a machine.
const RATE_WANTED: f64 = 10_000.0;
/// Peak resident memory, in MB.
const RSS_MAX: f64 = 150.0;
/// Dashboards of 3.4 KB, none of them in the trash, and little else.
const PLAN: &str = "[instance]\nbody_bytes = 3400\ntrash = 0.0\nothers = 0.1\n";

/// A run into an empty store, and one more into the same.
struct Round {
    first: Run,
    second: Run,
    /// That the second run wrote.
    versions: u64,
}

struct Run {
    rate: Rate,
    requests: u64,
}

pub(super) fn run(bench: &Bench) -> anyhow::Result<()> {
    let plan = bench.scratch.join("looker.toml");
    fs::write(&plan, PLAN).context("cannot write the plan of the instance")?;
    let simulator = Simulator::start(&bench.highwater, "looker", bench.size.items, &plan.to_string_lossy())?;
    let round = |number| {
        eprintln!("round {} of {}", number + 1, bench.size.rounds);
        bench.snapshots(&simulator)
    };
    let rounds: Vec<Round> = (0..bench.size.rounds).map(round).collect::<anyhow::Result<_>>()?;
    print!("{}", table::draw(&figures(&rounds)));
    Ok(())
}

impl Bench {
    fn snapshots(&self, simulator: &Simulator) -> anyhow::Result<Round> {
        let folder = self.scratch.join("sync");
        fs::create_dir(&folder).context("cannot make a folder for the store")?;
        let config = folder.join("bench.toml");
        fs::write(&config, config_text(simulator.url(), &folder)).context("cannot write the configuration")?;
        let first = tell("first run", self.snapshot(simulator, &config)?);
        let (stored, before) = self.dashboards(&folder)?;
        let wanted = self.size.items;
        ensure!(stored == wanted, "{stored} dashboards stored, {wanted} wanted");
        let second = tell("second run", self.snapshot(simulator, &config)?);
        let (stored, after) = self.dashboards(&folder)?;
        ensure!(stored == wanted, "{stored} dashboards after the second run, {wanted} wanted");
        fs::remove_dir_all(&folder)?;
        Ok(Round { first, second, versions: after - before })
    }

    fn snapshot(&self, simulator: &Simulator, config: &Path) -> anyhow::Result<Run> {
        let before = requests(simulator)?;
        let mut command = Command::new(&self.highwater);
        command.env_remove("HIGHWATER_CONFIG").env_remove("HIGHWATER_STORE").env_remove("HIGHWATER_KEY");
        command.arg("--config").arg(config).args(["sync", "bi", "--quiet", "--json"]);
        let child::Finished { seconds, peak_rss_mb, .. } = child::finish(&mut command, &self.scratch)?;
        let items = self.size.items;
        let rate = Rate { items, seconds, items_per_second: items as f64 / seconds, peak_rss_mb };
        Ok(Run { rate, requests: requests(simulator)? - before })
    }

    /// Rows, and rows of earlier versions.
    fn dashboards(&self, folder: &Path) -> anyhow::Result<(u64, u64)> {
        let tables = self.tables(&folder.join("highwater.db"))?;
        let rows = |wanted: fn(&str) -> bool| {
            tables.iter().filter(|(name, _)| wanted(name)).map(|(_, table)| table.rows).sum::<u64>()
        };
        Ok((
            rows(|name| name == "looker_content"),
            rows(|name| name.starts_with("looker") && name.ends_with("versions")),
        ))
    }
}

fn requests(simulator: &Simulator) -> anyhow::Result<u64> {
    let stats = simulator.page("/_sim/stats")?;
    stats["requests"].as_u64().context("the simulator does not say how often it was asked")
}

fn config_text(url: &str, folder: &Path) -> String {
    let store = Value::String(format!("sqlite:{}", folder.join("highwater.db").display()));
    format!(
        "[store]\nurl = {store}\n[sources.bi]\nkind = \"looker\"\nbase_url = \"{url}\"\nclient_id = \"sim-client\"\n\
         client_secret = \"sim-secret\"\ntypes = [\"dashboards\"]\n\
         [sources.bi.limits]\nrate = \"unlimited\"\nin_flight = {IN_FLIGHT}\njob = {PAGE}\n"
    )
}

fn tell(name: &str, run: Run) -> Run {
    let memory = run.rate.peak_rss_mb.map(|memory| format!("{memory:.0} MB")).unwrap_or_default();
    eprintln!("  {name:<24} {:>9.0} objects/s {memory:>9} {:>7} calls", run.rate.items_per_second, run.requests);
    run
}

fn figures(rounds: &[Round]) -> Figures {
    let one = |name: &str, of: fn(&Round) -> &Run| Measured {
        name: name.to_owned(),
        items_per_second: median(rounds.iter().map(|round| of(round).rate.items_per_second)).unwrap_or(f64::NAN),
        peak_rss_mb: median(rounds.iter().filter_map(|round| of(round).rate.peak_rss_mb)),
    };
    let first = || rounds.iter().map(|round| &round.first);
    let peaks = rounds.iter().flat_map(|round| [&round.first, &round.second]);
    let calls = rounds.iter().map(|round| round.second.requests as f64 / round.first.requests as f64);
    let judged = [
        judged("objects a second", first().map(|run| run.rate.items_per_second), Target::AtLeast(RATE_WANTED)),
        judged("peak memory, MB", peaks.filter_map(|run| run.rate.peak_rss_mb), Target::AtMost(RSS_MAX)),
        judged("calls, second run / first", calls, Target::AtMost(1.0)),
        judged("versions of the second run", rounds.iter().map(|round| round.versions as f64), Target::AtMost(0.0)),
    ];
    let measured = vec![one("first run", |round| &round.first), one("second run", |round| &round.second)];
    Figures { measured, judged: judged.into_iter().flatten().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_toml() {
        let config: toml::Table = toml::from_str(&config_text("http://127.0.0.1:1", Path::new("/a \"b\""))).unwrap();
        assert_eq!(config["store"]["url"].as_str(), Some("sqlite:/a \"b\"/highwater.db"));
        assert_eq!(config["sources"]["bi"]["limits"]["job"].as_integer(), Some(100));
    }
}
