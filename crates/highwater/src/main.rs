//! The `highwater` command.

mod allocators;
mod args;
mod arrange;
mod commands;
mod config;
mod credentials;
mod exit;
mod instance;
mod keyring;
mod location;
mod mailbox;
mod notify;
mod out;
mod progress;
mod remote;
mod settings;
mod signals;
mod watchdog;

use std::{io::IsTerminal, process::ExitCode, time::Duration};

use highwater_engine::EngineError;
use highwater_store::{ErrorKind, StoreError};

use crate::{
    args::Args,
    exit::{Exit, Trouble},
};

/// A tenth less processor time for an item than with the system's; fetching is mostly small, short-lived buffers.
/// Built to ask for no huge pages: it uses a small part of many, and where memory is virtual a system takes milliseconds
/// to clear one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::from_command_line();
    start_logging(args.global.verbose, args.global.quiet);
    // The only provider compiled in; a second call would mean one is installed already.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    // One thread fetches, others decode and write. More threads that fetch would spend a sixth of the time on waking each
    // other, and one already does twenty times what any of the sources allows.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(beside()).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return complain(&anyhow::Error::new(error).context("cannot start the runtime")).into(),
    };
    let exit = runtime.block_on(commands::run(args)).unwrap_or_else(|error| complain(&error));
    // A write that hangs may not keep the process from ending; what it was to commit is fetched again.
    runtime.shutdown_timeout(HANGING_MAX);
    out::end(exit).into()
}

/// How many threads decode and write: enough to have a few wait for the disk. Each keeps memory of its own, ten
/// megabytes where mail is large, and who is handed work is anybody.
fn beside() -> usize {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    (2 * cores).max(8)
}

const HANGING_MAX: Duration = Duration::from_millis(500);

fn start_logging(verbose: u8, quiet: bool) {
    let level = match (quiet, verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, _) => "debug",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("HIGHWATER_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}

/// Prints an error with its causes and a hint, and says how to exit.
fn complain(error: &anyhow::Error) -> Exit {
    let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
    out::complain(&format!("error: {}", chain.join(": ")));
    if let Some(hint) = error.downcast_ref::<Trouble>().and_then(|trouble| trouble.hint.as_deref()) {
        out::complain(&format!("hint: {hint}"));
    } else if let Some(hint) = hint_of(error) {
        out::complain(&format!("hint: {hint}"));
    }
    exit_of(error)
}

fn exit_of(error: &anyhow::Error) -> Exit {
    if let Some(trouble) = error.downcast_ref::<Trouble>() {
        return trouble.exit;
    }
    if is_about_credentials(error) {
        return Exit::Credentials;
    }
    if matches!(error.downcast_ref(), Some(EngineError::Spent(_))) {
        return Exit::Unaccounted;
    }
    store_error(error).map_or(Exit::Failed, |error| location::exit_of(error.kind))
}

/// The text says what to do.
fn is_about_credentials(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(EngineError::Account(_)))
}

fn hint_of(error: &anyhow::Error) -> Option<&'static str> {
    match store_error(error).map(|error| error.kind) {
        Some(ErrorKind::Full) => Some("make room and run the same command again; nothing that was committed is lost"),
        Some(ErrorKind::Unavailable) => Some("nothing that was committed is lost; run the same command again later"),
        Some(ErrorKind::Corrupt) => Some("check the files with 'highwater verify --store'"),
        _ if is_about_credentials(error) => None,
        _ if matches!(error.downcast_ref(), Some(EngineError::Remote(_))) => {
            Some("check base_url and the network; what is mirrored already is safe, run the same command again")
        }
        _ => None,
    }
}

fn store_error(error: &anyhow::Error) -> Option<&StoreError> {
    match error.downcast_ref() {
        Some(EngineError::Store(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}
