//! Mail, simulated, into SQLite: how fast beside the pure fetch of the same messages, and in how much memory.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{
    Bench, Rate, child,
    figures::{Figures, Judged, Measured, Target, judged, median},
    simulator::Simulator,
    table,
};
use crate::workspace::run as run_command;

const IN_FLIGHT: u32 = 64;
/// Messages a second, or this share of the pure fetch, whichever is less.
const RATE_WANTED: f64 = 2_000.0;
const SHARE_WANTED: f64 = 0.6;
/// Peak resident memory, in MB.
const RSS_MAX: f64 = 200.0;
/// One in ten has an attachment.
const USUAL: &str = "[size]\nsize_kb = 20\nattachments = 0.1\nattachment_kb = 50\n";
/// Attachments of up to 26 MB are 35 MB within a mail.
const LARGE: &str = "[size]\nlarge = 1.0\nlarge_max = 26000000\n";
/// All of them are mirrored, and none is out of the ordinary.
const PLAIN: &str = "[shares]\nsent = 0.2\ndrafts = 0.0\nspam = 0.0\ntrash = 0.0\nchats = 0.0\nodd = 0.0\n";

/// Both in one round, so that a slow minute of the machine meets both.
struct Round {
    fetch: Rate,
    sync: Rate,
}

pub(super) fn run(bench: &Bench, large: u64) -> anyhow::Result<()> {
    let simulator = bench.mailbox("usual", bench.size.items, USUAL)?;
    let round = |number| {
        eprintln!("round {} of {}", number + 1, bench.size.rounds);
        let fetch = tell("fetch, same client", bench.fetch_mail(simulator.url())?);
        let sync = tell("end to end", bench.sync_mail(simulator.url(), bench.size.items, &format!("round-{number}"))?);
        Ok(Round { fetch, sync })
    };
    let rounds: Vec<Round> = (0..bench.size.rounds).map(round).collect::<anyhow::Result<_>>()?;
    drop(simulator);
    eprintln!("{large} large messages");
    let simulator = bench.mailbox("large", large, LARGE)?;
    let large = tell("end to end, large", bench.sync_mail(simulator.url(), large, "large")?);
    print!("{}", table::draw(&figures(&rounds, large)));
    Ok(())
}

impl Bench {
    fn mailbox(&self, name: &str, messages: u64, sizes: &str) -> anyhow::Result<Simulator> {
        let plan = self.scratch.join(format!("{name}.toml"));
        fs::write(&plan, format!("{PLAIN}{sizes}")).context("cannot write the plan of the mailbox")?;
        Simulator::start(&self.highwater, "gmail", messages, &plan.to_string_lossy())
    }

    fn fetch_mail(&self, url: &str) -> anyhow::Result<Rate> {
        let mut command = Command::new(&self.yardstick);
        command.args(["mail", "--base-url", url, "--in-flight", &IN_FLIGHT.to_string()]);
        child::report(&mut command, &self.scratch)
    }

    fn sync_mail(&self, url: &str, messages: u64, name: &str) -> anyhow::Result<Rate> {
        // Left where it is until all is measured: what a file system does about so many files that are gone would weigh on
        // the next round.
        let folder = self.scratch.join(name);
        fs::create_dir(&folder).context("cannot make a folder for the store")?;
        fs::write(folder.join("bench.toml"), config_text(url, &folder)).context("cannot write the configuration")?;
        fs::write(folder.join("token"), "sim-refresh-token").context("cannot write the token")?;
        let token = folder.join("token");
        run_command(self.mail_command(&folder).args(["auth", "mail", "--quiet", "--refresh-token-file"]).arg(token))?;
        let finished =
            child::finish(self.mail_command(&folder).args(["sync", "mail", "--quiet", "--json"]), &self.scratch)?;
        let stored = self.tables(&folder.join("highwater.db"))?.get("mail_messages").map_or(0, |table| table.rows);
        ensure!(stored == messages, "{stored} messages stored, {messages} wanted");
        let child::Finished { seconds, peak_rss_mb, .. } = finished;
        Ok(Rate { items: messages, seconds, items_per_second: messages as f64 / seconds, peak_rss_mb })
    }

    fn mail_command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.highwater);
        command.env_remove("HIGHWATER_CONFIG").env_remove("HIGHWATER_STORE").env_remove("HIGHWATER_KEY");
        command.arg("--config").arg(folder.join("bench.toml"));
        command
    }
}

fn config_text(url: &str, folder: &Path) -> String {
    let at = |scheme: &str, name: &str| Value::String(format!("{scheme}:{}", folder.join(name).display()));
    format!(
        "[store]\nurl = {}\nblobs = {}\n[sources.mail]\nkind = \"gmail\"\naccount = \"ann@example.com\"\n\
         base_url = \"{url}\"\ntoken_url = \"{url}/token\"\nclient_id = \"sim-client\"\nclient_secret = \"sim-secret\"\n\
         [sources.mail.limits]\nrate = \"unlimited\"\nin_flight = {IN_FLIGHT}\n",
        at("sqlite", "highwater.db"),
        at("file", "blobs"),
    )
}

fn tell(name: &str, rate: Rate) -> Rate {
    let memory = rate.peak_rss_mb.map(|memory| format!("{memory:.0} MB")).unwrap_or_default();
    eprintln!("  {name:<24} {:>9.0} messages/s {memory:>9}", rate.items_per_second);
    rate
}

fn figures(rounds: &[Round], large: Rate) -> Figures {
    let one = |name: &str, rates: Vec<Rate>| Measured {
        name: name.to_owned(),
        items_per_second: median(rates.iter().map(|rate| rate.items_per_second)).unwrap_or(f64::NAN),
        peak_rss_mb: median(rates.iter().filter_map(|rate| rate.peak_rss_mb)),
    };
    let measured = vec![
        one("end to end", rounds.iter().map(|round| round.sync).collect()),
        one("fetch, same client", rounds.iter().map(|round| round.fetch).collect()),
        one("end to end, large", vec![large]),
    ];
    let ratios = || rounds.iter().map(|round| round.sync.items_per_second / round.fetch.items_per_second);
    let peaks = rounds.iter().filter_map(|round| round.sync.peak_rss_mb);
    let ratio = median(ratios()).map(|value| Judged { name: "end to end / fetch".into(), value, target: None });
    let of_wanted = rounds.iter().map(|round| round.sync.items_per_second / wanted(round.fetch.items_per_second));
    let judged = [
        ratio,
        judged("end to end / lower of 2,000/s, 0.6 fetch", of_wanted, Target::AtLeast(1.0)),
        judged("peak memory, MB", peaks, Target::AtMost(RSS_MAX)),
        judged("peak memory, large messages, MB", large.peak_rss_mb.into_iter(), Target::AtMost(RSS_MAX)),
    ];
    Figures { measured, judged: judged.into_iter().flatten().collect() }
}

fn wanted(fetch: f64) -> f64 {
    RATE_WANTED.min(SHARE_WANTED * fetch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_of_two_rates_is_wanted() {
        assert_eq!((wanted(1_000.0), wanted(10_000.0)), (600.0, 2_000.0));
    }

    #[test]
    fn the_configuration_is_toml() {
        let config: toml::Table = toml::from_str(&config_text("http://127.0.0.1:1", Path::new("/a \"b\""))).unwrap();
        assert_eq!(config["store"]["url"].as_str(), Some("sqlite:/a \"b\"/highwater.db"));
        assert_eq!(config["sources"]["mail"]["limits"]["in_flight"].as_integer(), Some(64));
    }
}
