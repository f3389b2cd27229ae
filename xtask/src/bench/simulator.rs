//! The simulated remote as a process of its own, for as long as the value lives.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, anyhow};
use serde_json::Value;

pub(super) struct Simulator {
    child: Child,
    url: String,
}

impl Simulator {
    /// `faults` is a preset or a file.
    pub(super) fn start(highwater: &Path, api: &str, items: u64, faults: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(highwater);
        command.args(["simulate", api, "--listen", "127.0.0.1:0", "--seed", "1", "--quiet"]);
        command.args(["--items", &items.to_string(), "--faults", faults]);
        let child = command.stdout(Stdio::piped()).spawn().context("cannot start the simulator")?;
        let mut simulator = Simulator { child, url: String::new() };
        simulator.url = simulator.read_url()?;
        Ok(simulator)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// One of the simulator's own pages.
    pub(super) fn page(&self, path: &str) -> anyhow::Result<Value> {
        let address = self.url.strip_prefix("http://").unwrap_or(&self.url);
        let mut stream = TcpStream::connect(address).context("cannot reach the simulator")?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").context("the simulator's answer has no body")?;
        serde_json::from_str(body).with_context(|| path.to_owned())
    }

    fn read_url(&mut self) -> anyhow::Result<String> {
        let output = self.child.stdout.as_mut().expect("the output was piped");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let url = line.trim_end().strip_prefix("listening on ");
        url.map(str::to_owned).ok_or_else(|| anyhow!("the simulator said {line:?} instead of where it listens"))
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
