//! The client: a virtual environment of Python, and the script that runs in it.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command as Blocking, Stdio},
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

const PACKAGE: &str = "firebase-admin==7.7.0";

/// The Python that has the client, made on first use.
pub(super) fn install() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("firebase-client");
    let (python, mark) = (home.join("bin/python"), home.join("installed"));
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == PACKAGE) {
        return python;
    }
    run(Blocking::new("python3").args(["-m", "venv", "--clear"]).arg(&home));
    run(Blocking::new(&python).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]));
    fs::write(mark, PACKAGE).unwrap();
    python
}

fn run(command: &mut Blocking) {
    let hint = "this test needs python3 with venv, and PyPI; set HIGHWATER_SKIP_CLIENTS to go without";
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {hint}"));
    assert!(output.status.success(), "{command:?}: {}; {hint}", String::from_utf8_lossy(&output.stderr));
}

pub(super) struct Client {
    process: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Client {
    pub(super) fn start(python: &Path, address: SocketAddr) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/firebase/listen.py");
        let mut command = Command::new(python);
        command.arg(script).arg(address.to_string()).args(["/v0/updates", "/v0/maxitem"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let (stdin, stdout) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Client { process, stdin, lines: BufReader::new(stdout).lines() }
    }

    /// The next thing the client has seen.
    pub(super) async fn next(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("the client runs on");
        serde_json::from_str(&line).unwrap()
    }

    /// The end of its input ends it.
    pub(super) async fn stop(mut self) {
        drop(self.stdin);
        drop(self.lines);
        assert!(self.process.wait().await.unwrap().success());
    }
}
