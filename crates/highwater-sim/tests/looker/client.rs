//! The client: a virtual environment of Python, and the script that runs in it.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::Value;
use tokio::process::Command;

use crate::python;

const PACKAGE: &str = "looker-sdk==26.22.0";

/// The Python that has the client.
pub(super) fn install() -> PathBuf {
    python::with("looker-client", PACKAGE)
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
