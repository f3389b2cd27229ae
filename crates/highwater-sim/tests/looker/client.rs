//! The client: a virtual environment of Python, and the script that runs in it.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command as Blocking, Stdio},
};

use serde_json::Value;
use tokio::process::Command;

const PACKAGE: &str = "looker-sdk==26.22.0";

/// The Python that has the client, made on first use.
pub(super) fn install() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("looker-client");
    let (python, mark) = (home.join("bin/python"), home.join("installed"));
    // Tests that need it run in processes of their own.
    let lock = fs::File::create(home.with_extension("lock")).unwrap();
    lock.lock().unwrap();
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

/// Runs the script, and gives what it found.
pub(super) async fn report(python: &Path, address: SocketAddr) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/looker/call.py");
    let mut command = Command::new(python);
    command.arg(script).arg(address.to_string()).stdin(Stdio::null()).kill_on_drop(true);
    // The client would read a looker.ini in the current folder.
    command.current_dir(env!("CARGO_TARGET_TMPDIR"));
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
