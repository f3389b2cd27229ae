//! `highwater demo`: the two-minute tour on a throw-away store, with a real second process that is really killed.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use highwater_sim::{Expected, FaultPlan, HnSim, Seed, World, server};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    process::{Child, Command},
};
use tokio_util::sync::CancellationToken;

use crate::{
    args::{DemoArgs, Global},
    exit::{Exit, Trouble},
    out,
    signals::Signals,
};

/// Every kind of fault that does not merely cost time: the tour should take less than two minutes.
const PLAN: &str = include_str!("demo.toml");
const SEED: u64 = 20_070_219;
const LOOK: Duration = Duration::from_millis(20);
const KILL_WAIT_MAX: Duration = Duration::from_secs(60);

pub(super) async fn run(global: &Global, args: &DemoArgs) -> anyhow::Result<Exit> {
    let folder = TempDir::with_prefix("highwater-demo-").context("cannot make a folder for the demo")?;
    let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on the loopback address")?;
    let plan = FaultPlan::parse(PLAN).map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
    let sim = Arc::new(HnSim::new(World::generated(Seed(SEED), args.items), plan));
    let tour = Tour::new(folder.path(), listener.local_addr()?, sim.clone(), args.items, global)?;
    let stop = CancellationToken::new();
    let work = async {
        tokio::select! {
            findings = tour.walk() => findings,
            served = server::serve(listener, sim, stop.clone()) => {
                served.context("the simulator failed")?;
                anyhow::bail!("the simulator has stopped")
            }
        }
    };
    let (findings, signal) = Signals::listen()?.guard(&stop, work).await;
    let kept = args.keep.then(|| folder.keep().join("highwater.db"));
    if let Some(path) = kept.as_ref().filter(|_| !global.json) {
        out::data(&format!("kept: {}", path.display()));
    }
    if let Some(exit) = signal {
        return Ok(exit);
    }
    let mut findings = findings?;
    if global.json {
        findings["kept"] = json!(kept);
        out::data(&findings.to_string());
    }
    Ok(Exit::Complete)
}

struct Tour<'a> {
    folder: PathBuf,
    program: PathBuf,
    sim: Arc<HnSim>,
    items: u64,
    global: &'a Global,
    address: std::net::SocketAddr,
}

/// How a command of the tour ended, and what it printed as its result if that was asked for.
struct Ended {
    code: i32,
    result: Json,
}

impl<'a> Tour<'a> {
    fn new(
        folder: &Path,
        address: std::net::SocketAddr,
        sim: Arc<HnSim>,
        items: u64,
        global: &'a Global,
    ) -> anyhow::Result<Self> {
        let config = format!(
            "[store]\nurl = \"sqlite:{}\"\n\n[sources.hn]\nkind = \"hn\"\nbase_url = \"http://{address}\"\n\n\
             [sources.hn.limits]\nrate = 1000\nrate_max = 3000\nattempts = 5\n",
            folder.join("highwater.db").display()
        );
        std::fs::write(folder.join("highwater.toml"), config)?;
        let program = std::env::current_exe().context("cannot find the highwater binary")?;
        Ok(Tour { folder: folder.into(), program, sim, items, global, address })
    }

    /// Takes the tour, and says what was found on it.
    async fn walk(&self) -> anyhow::Result<Json> {
        let items = out::grouped(self.items);
        self.tell(&format!("A simulated Hacker News with {items} items listens on http://{}.", self.address));
        self.tell(
            "It fails in every way we know: errors, resets, throttling, nulls that heal, items that never answer.\n",
        );
        self.tell("1. sync begins…");
        let mut first = self.start(&["sync", "hn", "--quiet"])?;
        let killed_at = self.kill_half_way(&mut first).await?;
        self.tell(&format!("   …and is killed (SIGKILL) after {} requests.\n", out::grouped(killed_at)));
        self.tell("2. What the store knows after the crash:");
        self.finish(self.start(&["status"])?).await?;
        self.tell("\n3. sync again, to the end:");
        let synced = self.finish(self.start(&["sync", "hn"])?).await?;
        self.tell("\n4. verify: every id, against the remote:");
        let verified = self.finish(self.start(&["verify", "hn", "--sample", "all"])?).await?;
        self.tell("\n5. The items that never answer, each with its reason:");
        let letters = self.finish(self.start(&["dead-letters", "list", "hn"])?).await?;
        self.conclude(killed_at, &synced, &verified, &letters)
    }

    fn conclude(&self, killed_at: u64, synced: &Ended, verified: &Ended, letters: &Ended) -> anyhow::Result<Json> {
        let stats = self.sim.stats().report();
        let unreachable =
            (1..=self.items).filter(|id| matches!(self.sim.expected(*id), Expected::Unreachable(_))).count();
        // Dead letters are planned by the simulator, so "finished, but something is unaccounted for" is right here.
        let expected = if unreachable == 0 { Exit::Complete } else { Exit::Unaccounted };
        if [synced.code, verified.code] != [i32::from(expected.code()); 2] {
            let (synced, verified) = (synced.code, verified.code);
            let message = format!("the demo did not end as planned: sync ended with {synced}, verify with {verified}");
            return Err(Trouble::new(Exit::Failed, message).hint("run it with --keep and look at the store").into());
        }
        self.tell(&format!(
            "\nDone. {} requests for {} items, {} of them before the crash; {} while the remote had asked for silence.\n\
             {unreachable} items never answer, and are exactly the dead letters listed: exit code {} says so to scripts.\n\
             Next: highwater sync hn --last 10000, and you have the newest real ones in ./highwater.db.",
            out::grouped(stats.requests),
            out::grouped(self.items),
            out::grouped(killed_at),
            stats.retry_after_violations,
            expected.code(),
        ));
        Ok(json!({
            "items": self.items,
            "requests": stats.requests,
            "requests_before_kill": killed_at,
            "requests_while_told_to_wait": stats.retry_after_violations,
            "never_answer": unreachable,
            "sync": synced.result,
            "verify": verified.result,
            "dead_letters": letters.result["dead_letters"],
        }))
    }

    fn start(&self, arguments: &[&str]) -> anyhow::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(arguments).arg("--config").arg(self.folder.join("highwater.toml"));
        command.env_remove("HIGHWATER_STORE").stdin(Stdio::null()).kill_on_drop(true);
        if self.global.json {
            command.arg("--json").stdout(Stdio::piped());
        } else if self.global.quiet {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        command.spawn().context("cannot start a second highwater")
    }

    async fn finish(&self, child: Child) -> anyhow::Result<Ended> {
        let output = child.wait_with_output().await?;
        let code = output.status.code().context("a second highwater was killed from outside")?;
        let result = if self.global.json {
            serde_json::from_slice(&output.stdout).context("a second highwater printed no result")?
        } else {
            Json::Null
        };
        Ok(Ended { code, result })
    }

    async fn kill_half_way(&self, child: &mut Child) -> anyhow::Result<u64> {
        let half = async {
            while self.sim.stats().report().requests < self.items / 2 {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            status = child.wait() => anyhow::bail!("sync ended before it could be killed: {}", status?),
            waited = tokio::time::timeout(KILL_WAIT_MAX, half) => waited.context("sync makes no progress")?,
        }
        child.kill().await?;
        Ok(self.sim.stats().report().requests)
    }

    fn tell(&self, text: &str) {
        if !self.global.quiet && !self.global.json {
            out::data(text);
        }
    }
}
