//! `cargo xtask fuzz`: coverage-guided cases for the targets in `fuzz/`, on the stable compiler. What it learns is kept
//! beside the build; a case that breaks a target is left where libFuzzer says.

use std::fs;

use anyhow::Context;

use crate::workspace::{Workspace, run as run_command};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which reader
    #[arg(value_parser = ["feed", "mail"])]
    target: String,
    /// How long
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
}

/// What cargo-fuzz asks of a nightly compiler, spelled for a stable one; no sanitizer, since there is no unsafe code.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";
/// Named, so that the flags are not used for build scripts.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn run(args: &Args, workspace: &Workspace) -> anyhow::Result<()> {
    let (built, corpus) = (workspace.scratch("fuzz"), workspace.scratch("fuzz-corpus").join(&args.target));
    fs::create_dir_all(&corpus).with_context(|| format!("cannot make {}", corpus.display()))?;
    let mut build = workspace.cargo(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", PLATFORM]);
    run_command(build.arg("--bin").arg(&args.target).arg("--target-dir").arg(&built).env("RUSTFLAGS", FLAGS))?;
    let binary = built.join(PLATFORM).join("release").join(&args.target);
    let mut fuzz = workspace.command(binary);
    fuzz.current_dir(&corpus).arg(&corpus).args(["-max_len=20000", "-timeout=10", "-print_final_stats=1"]);
    run_command(fuzz.arg(format!("-max_total_time={}", args.seconds)))
}
