//! What people use today, from `bench/peers`: installed on demand, skipped with a reason where that fails.

use std::{
    collections::BTreeMap,
    fs, mem,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};

use super::{LONG_ROUNDS, ROUNDS, Rate, child};
use crate::workspace::run as run_command;

pub(super) struct Peer {
    pub(super) name: &'static str,
    script: &'static str,
    runtime: Runtime,
    /// For at most ten seconds a run: the rate is what counts.
    items_max: u64,
    /// It takes part in so many.
    rounds: usize,
    /// How many times as fast the product must be.
    pub(super) target: Option<f64>,
}

pub(super) const PEERS: [Peer; 4] = [
    Peer {
        name: "aiohttp + sqlite3",
        script: "aiohttp_sqlite.py",
        runtime: Runtime::Python,
        items_max: 50_000,
        rounds: LONG_ROUNDS,
        target: Some(6.0),
    },
    Peer {
        name: "undici + better-sqlite3",
        script: "undici_sqlite.mjs",
        runtime: Runtime::Node,
        items_max: 100_000,
        rounds: ROUNDS,
        target: Some(2.0),
    },
    Peer {
        name: "dlt, async resource",
        script: "dlt_async.py",
        runtime: Runtime::Python,
        items_max: 25_000,
        rounds: LONG_ROUNDS,
        target: Some(10.0),
    },
    Peer {
        name: "dlt, REST source",
        script: "dlt_rest.py",
        runtime: Runtime::Python,
        items_max: 4_000,
        rounds: LONG_ROUNDS,
        target: None,
    },
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Runtime {
    Python,
    Node,
}

/// Those that can run, and why the others cannot.
pub(super) struct Peers {
    folder: PathBuf,
    ready: Vec<&'static Peer>,
    skipped: Vec<(&'static str, String)>,
}

impl Peers {
    pub(super) fn none() -> Self {
        Peers { folder: PathBuf::new(), ready: Vec::new(), skipped: Vec::new() }
    }

    pub(super) fn install(folder: &Path) -> Self {
        let mut peers = Peers { folder: folder.to_owned(), ..Peers::none() };
        for runtime in [Runtime::Python, Runtime::Node] {
            let all = PEERS.iter().filter(|peer| peer.runtime == runtime);
            match runtime.install(folder) {
                Ok(()) => peers.ready.extend(all),
                Err(error) => all.for_each(|peer| peers.skip(peer, &error)),
            }
        }
        peers
    }

    /// A peer that fails is skipped from then on, and said to be.
    pub(super) fn run_all(
        &mut self,
        round: usize,
        scratch: &Path,
        url: &str,
        items: u64,
        tell: fn(&str, Rate) -> Rate,
    ) -> BTreeMap<&'static str, Rate> {
        let mut rates = BTreeMap::new();
        for peer in mem::take(&mut self.ready) {
            if round >= peer.rounds {
                continue;
            }
            match peer.run(&self.folder, scratch, url, items) {
                Ok(rate) => {
                    rates.insert(peer.name, tell(peer.name, rate));
                    self.ready.push(peer);
                }
                Err(error) => self.skip(peer, &error),
            }
        }
        rates
    }

    /// Names and reasons.
    pub(super) fn skipped(&self) -> &[(&'static str, String)] {
        &self.skipped
    }

    fn skip(&mut self, peer: &Peer, error: &anyhow::Error) {
        self.skipped.push((peer.name, format!("{error:#}")));
    }
}

impl Peer {
    fn run(&self, folder: &Path, scratch: &Path, url: &str, items: u64) -> anyhow::Result<Rate> {
        let store_folder = scratch.join("peer");
        fs::create_dir_all(&store_folder)?;
        let mut command = Command::new(self.runtime.program(folder));
        command.arg(folder.join(self.script)).args([url, &items.min(self.items_max).to_string()]);
        let report = child::report(command.arg(store_folder.join("peer.db")), scratch);
        fs::remove_dir_all(&store_folder)?;
        report
    }
}

impl Runtime {
    fn program(self, folder: &Path) -> PathBuf {
        match self {
            Runtime::Python => folder.join(".venv/bin/python"),
            Runtime::Node => "node".into(),
        }
    }

    /// Does nothing if the packages can be loaded already.
    fn install(self, folder: &Path) -> anyhow::Result<()> {
        if self.loads(folder) {
            return Ok(());
        }
        match self {
            Runtime::Python => {
                run_quietly(Command::new("python3").args(["-m", "venv", ".venv"]), folder)?;
                let pip = ["-m", "pip", "install", "--quiet", "--requirement", "requirements.txt"];
                run_quietly(Command::new(self.program(folder)).args(pip), folder)?;
            }
            Runtime::Node => run_quietly(Command::new("npm").args(["install", "--silent"]), folder)?,
        }
        ensure!(self.loads(folder), "installed, but its packages do not load");
        Ok(())
    }

    fn loads(self, folder: &Path) -> bool {
        let mut command = Command::new(self.program(folder));
        match self {
            Runtime::Python => command.args(["-c", "import aiohttp, dlt.destinations, sqlalchemy"]),
            // The native part is loaded only when a database is opened.
            Runtime::Node => command.args(["-e", "require('undici'); new (require('better-sqlite3'))(':memory:')"]),
        };
        command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

fn run_quietly(command: &mut Command, folder: &Path) -> anyhow::Result<()> {
    run_command(command.current_dir(folder).stdout(Stdio::null())).context("cannot be installed")
}
