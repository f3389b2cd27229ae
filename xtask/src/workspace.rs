//! Where the workspace is, and how its commands are run from it.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};
use serde::Deserialize;

pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Asks cargo, which knows about `CARGO_TARGET_DIR` and configuration files.
    pub(crate) fn locate() -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Metadata {
            workspace_root: PathBuf,
            target_directory: PathBuf,
        }
        let mut command = cargo();
        command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["metadata", "--no-deps", "--format-version=1"]);
        let metadata: Metadata = serde_json::from_str(&read(&mut command)?).context("cargo metadata")?;
        Ok(Workspace { root: metadata.workspace_root, target: metadata.target_directory })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// For files that only the tools need.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.target.join(name)
    }

    pub(crate) fn release_binary(&self, name: &str) -> PathBuf {
        self.target.join("release").join(name).with_extension(env::consts::EXE_EXTENSION)
    }

    pub(crate) fn cargo<I: IntoIterator<Item: AsRef<OsStr>>>(&self, args: I) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root).args(args);
        command
    }

    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }
}

/// Runs with our own standard streams; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    ensure!(status.success(), "{} ended with {status}", shown(command));
    Ok(())
}

/// Runs and returns what it wrote to its standard output.
pub(crate) fn read(command: &mut Command) -> anyhow::Result<String> {
    command.stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot start {}", shown(command)))?;
    ensure!(output.status.success(), "{} ended with {}", shown(command), output.status);
    String::from_utf8(output.stdout).with_context(|| format!("output of {}", shown(command)))
}

/// The command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words: Vec<_> = std::iter::once(program).chain(command.get_args()).map(OsStr::to_string_lossy).collect();
    format!("`{}`", words.join(" "))
}

/// The cargo that runs us, so that a `+toolchain` is kept.
fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
